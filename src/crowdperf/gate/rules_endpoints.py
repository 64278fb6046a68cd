"""Rules on results in the layout of MLPerf Endpoints (endpoints.py): those of the newer checker, then additional ones.

The checker treats config.yaml as a record of the run: it uses the requested duration instead of the measured one. Rules
of another source read result_summary.json and accuracy_results.json instead.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from crowdperf.gate.documents import JsonFile
from crowdperf.gate.endpoints import AUDITS, EndpointsView, numbers_in
from crowdperf.gate.rulebook import CLIENT, CLOSED, NEWER, OURS, RULES_TEXT, Scope, Severity, Violation, rule, shown
from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import part
from crowdperf.logs.round_tables import Limit
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS

OF_ANY_LAYOUT = (
    "ACC-015", "MEAS-001", "MEAS-002", "MEAS-003", "MEAS-005", "MEAS-007", "MEAS-008", "MEAS-009", "MEAS-010",
    "SCEN-004",
    "SCEN-005", "SYN-001", "SYN-003", "SYN-004", "SYN-005",
)  # fmt: skip
"""Rules on a scenario that also apply without LoadGen."""

_SECOND_NS = 1e9
_RUNTIME = ("settings", "runtime")
_SEEDS = (("dataloader_random_seed", "sample_index"), ("scheduler_random_seed", "schedule"))
_TYPES = {"Offline": ("offline",), "Server": ("online", "server"), "Interactive": ("online", "interactive")}
_CLOSE = 0.02
_BUSY = 0.2
"""A client that spends four fifths of a SingleStream run outside of its requests measures itself. A warning, because
there is no published result of the client to compare with."""
_PERCENT = 1.0001
"""A score up to this is a fraction: the client's scorers write those, the checker's table has percent."""

_PERCENTILE = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?")

_SCORED = {"qwen3-vl-235b-a22b"}
"""Models whose score the checker compares."""


def _file(source: JsonFile, allowed: str) -> Iterator[Violation]:
    if not source.is_usable:
        yield Violation(path=source.path, found=source.problem or "missing", allowed=allowed)


def _of_config(view: EndpointsView, name: str, allowed: str, *keys: str) -> Violation:
    words = f"{'.'.join(keys)} = {shown(view.setting(*keys))}"
    return Violation(path=view.config.path, found=words, allowed=allowed, line=view.config.source.line_of(name))


def _of_summary(view: EndpointsView, name: str, found: str, allowed: str) -> Violation:
    return Violation(
        path=view.summary.path, found=found, allowed=allowed, line=view.summary.line_of(name.split(".")[0])
    )


@rule("EP-001", Scope.ENDPOINTS, "The round accepts this model from an endpoint.", source=NEWER)
def model_is_allowed(view: EndpointsView) -> Iterator[Violation]:
    table, models = view.table, view.scenario.tree.round.models.values()
    if table is not None and not table.may_be_endpoints:
        allowed = f"LoadGen's logs, or from endpoints: {', '.join(one.name for one in models if one.may_be_endpoints)}"
        yield Violation(path=view.scenario.folder, found=f"{table.name} without LoadGen's logs", allowed=allowed)


@rule("EP-002", Scope.ENDPOINTS, "The client's three files can be read: the checker ends with an exception otherwise.",
      source=NEWER)  # fmt: skip
def files_are_readable(view: EndpointsView) -> Iterator[Violation]:
    if view.config.source.is_missing or view.config.problem:
        found = view.config.problem or "missing"
        yield Violation(path=view.config.path, found=found, allowed="the configuration of the run, a YAML mapping")
    yield from _file(view.summary, "the metrics of the performance run, a JSON object")
    yield from _file(view.scores, "the scores of the accuracy run, a JSON object")


@rule("EP-003", Scope.ENDPOINTS, "The run has the seeds of the round.", source=NEWER)
def has_seeds(view: EndpointsView) -> Iterator[Violation]:
    """The QSL's seed does not exist there. The client's examples have 42."""
    table = view.scenario.tree.round
    for name, seed in _SEEDS:
        wanted = getattr(table.seeds, seed)
        if view.config.fields and view.setting(*_RUNTIME, name) != wanted:
            yield _of_config(view, name, f"{wanted} (the seeds of {table.name})", *_RUNTIME, name)


@rule("EP-004", Scope.ENDPOINTS, "The requested duration is long enough.", source=NEWER)
def asks_for_duration(view: EndpointsView) -> Iterator[Violation]:
    value = number_of(view.setting(*_RUNTIME, "min_duration_ms"))
    if view.config.fields and not (value is not None and value >= FULL_RULES_MIN_DURATION_MS):
        allowed = f"at least {FULL_RULES_MIN_DURATION_MS}"
        yield _of_config(view, "min_duration_ms", allowed, *_RUNTIME, "min_duration_ms")


@rule("EP-005", Scope.ENDPOINTS, "The configuration is of the scenario of its folder.", source=NEWER)
def type_is_that_of_folder(view: EndpointsView) -> Iterator[Violation]:
    """In a folder Interactive the checker does not look at it."""
    kind, types = view.setting("type"), _TYPES.get(view.scenario.scenario or "")
    if not view.config.fields:
        return
    is_right = isinstance(kind, str) and (types is None or kind.lower() in types)
    if not is_right:
        found = _of_config(view, "type", " or ".join(types or ("offline", "online")), "type")
        yield dataclasses.replace(found, source=OURS if view.scenario.scenario == "Interactive" else "")


@rule("EP-006", Scope.ENDPOINTS, "Token latencies are in the bounds of the folder's scenario.", source=NEWER)
def token_latencies(view: EndpointsView) -> Iterator[Violation]:
    limits = view.table.token_latency_ns.get(view.scenario.scenario or "") if view.table else None
    for metric, limit in (limits or {}).items():
        value = view.percentile(metric, "99.0")
        if view.summary.is_usable and not (value is not None and value < limit):
            name = f"{metric}.early_stopping_percentiles.99.0"
            yield _of_summary(view, metric, f"{name} = {value}", f"below {limit:g} ns")


@rule("EP-007", Scope.ENDPOINTS, "Latencies are in the bounds of the folder's scenario.", source=NEWER)
def latencies(view: EndpointsView) -> Iterator[Violation]:
    table = view.table
    if table is None or table.needs_token_latencies:
        return
    limit, value = table.latency_ns.get(view.scenario.scenario or ""), view.percentile("latency", "99.0")
    if limit is not None and view.summary.is_usable and not (value is not None and value <= limit):
        name = "latency.early_stopping_percentiles.99.0"
        yield _of_summary(view, "latency", f"{name} = {value}", f"at most {limit:g} ns")


def published_figure(view: EndpointsView) -> tuple[str, float | None]:
    """Return the name and the value of the published result: samples a second, tokens a second, or latency."""
    scenario, name = view.scenario.scenario, view.table.name if view.table else ""
    if scenario == "Server":
        return "tps", view.figure("tps")
    if scenario == "SingleStream" and name.endswith("-edge"):
        return "latency.early_stopping_percentiles.90.0", view.percentile("latency", "90.0")
    if scenario == "SingleStream":
        return "latency.avg", view.figure("latency", "avg")
    if scenario == "Interactive":
        return "qps", view.figure("qps")
    issued, duration = view.figure("n_samples_issued"), view.figure("duration_ns")
    rate = issued * _SECOND_NS / duration if issued is not None and duration else None
    return "n_samples_issued / duration_ns", rate


@rule("EP-008", Scope.ENDPOINTS, "The summary has the scenario's result.", source=NEWER)
def has_figure(view: EndpointsView) -> Iterator[Violation]:
    name, value = published_figure(view)
    if view.summary.is_usable and not (value is not None and value > 0):
        yield _of_summary(view, name, f"{name} = {value}", "a number above 0")


@rule("EP-009", Scope.ENDPOINTS, "The accuracy run covers the whole data set.", source=NEWER)
def covers_data_set(view: EndpointsView) -> Iterator[Violation]:
    if view.table is None or not view.scores.is_usable:
        return
    counted = [one for one in view.entries if one.get("dataset_type") in (None, "accuracy")]
    count, wanted = sum(_samples(one) for one in counted), view.table.accuracy_samples_in(view.scenario.scenario or "")
    if count != wanted:
        found = f"total_samples = {count:g} in {len(counted)} data sets of the type accuracy"
        line = view.scores.line_of("total_samples")
        yield Violation(path=view.scores.path, found=found, allowed=f"exactly {wanted}", line=line)


def _samples(entry: object) -> float:
    if not isinstance(entry, dict):
        return 0.0
    counts = entry.get("response_counts")
    issued = counts.get("issued") if isinstance(counts, dict) else None
    return number_of(entry.get("total_samples") if entry.get("total_samples") is not None else issued) or 0.0


@rule("EP-010", Scope.ENDPOINTS, "There is a score.", source=NEWER)
def has_score(view: EndpointsView) -> Iterator[Violation]:
    if view.scores.is_usable and not any(one.get("score") is not None for one in view.entries):
        yield Violation(path=view.scores.path, found="no score in accuracy_scores", allowed="a score of each data set")


@rule("EP-011", Scope.ENDPOINTS, "The score reaches its target.", source=RULES_TEXT, divisions=CLOSED)
def score_reaches_target(view: EndpointsView) -> Iterator[Violation]:
    """The checker compares the score of qwen3-vl only."""
    table = view.table
    limits = table.targets_in(view.scenario.scenario or "") if table is not None else ()
    own = tuple(Limit(one.metric, one.value) for one in table.rules_targets if one.is_least) if table else ()
    source = NEWER if table is not None and table.name in _SCORED else RULES_TEXT
    for limit in own or limits:
        for name, score in _scores(view).items():
            value, line = _like(score, limit.value), view.scores.line_of("score")
            if _is_of(name, limit.metric, len(limits)) and not value >= limit.value:
                words = f"score{f'.{name}' if name else ''} = {value:g}"
                allowed = f"at least {limit.value:g} ({limit.metric})"
                yield Violation(path=view.scores.path, found=words, allowed=allowed, line=line, source=source)


def _scores(view: EndpointsView) -> Mapping[str, float]:
    """The score of the accuracy run by its metric's name. For several data sets the mean by their samples, each once
    (gpt-oss-120b: language/gpt-oss-120b/eval_mlperf_accuracy.py of mlcommons/inference b66003e1)."""
    entries = [one for one in view.entries if one.get("dataset_type") in (None, "accuracy")]
    if len(entries) == 1:
        return dict(numbers_in(entries[0].get("score")))
    pairs = [(number_of(one.get("score")), number_of(one.get("unit_samples"))) for one in entries]
    known = [(score, samples) for score, samples in pairs if score is not None and samples]
    if not pairs or len(known) != len(pairs):
        return {}
    return {"": sum(score * samples for score, samples in known) / sum(samples for _, samples in known)}


def _is_of(name: str, metric: str, metric_count: int) -> bool:
    """Whether a number of a score is this metric's. One without a name is the only metric's, or the overall score."""
    if not name:
        return metric_count == 1 and metric != "non_live"
    plain = metric.lower()
    return name.lower() in (plain, plain.split("_")[-1], plain.replace("_score", ""))


def _like(value: float, limit: float) -> float:
    """A fraction as a percentage if the limit is one."""
    return value * 100 if limit > _PERCENT >= value else value


@rule("EP-012", Scope.ENDPOINTS, "The compliance tests that the client can make passed.", source=NEWER)
def audits_passed(view: EndpointsView) -> Iterator[Violation]:
    for test, audit in view.audits.items():
        if audit.is_missing and test != "TEST04":
            continue  # asked of no model there
        allowed = f'{{"test": "{AUDITS[test]}", "passed": true}}'
        if not audit.is_usable:
            yield Violation(path=audit.path, found=audit.problem or "missing", allowed=allowed)
        elif audit.fields.get("test") != AUDITS[test] or audit.fields.get("passed") is not True:
            found = f"test = {shown(audit.fields.get('test'))}, passed = {shown(audit.fields.get('passed'))}"
            yield Violation(path=audit.path, found=found, allowed=allowed, line=audit.line_of("passed"))


@rule("EP-013", Scope.ENDPOINTS, "The answers are as long as TEST09 requires.", source=NEWER)
def answers_are_as_long(view: EndpointsView) -> Iterator[Violation]:
    limits = view.table.test_limits.get("TEST09") if view.table else None
    value = view.figure("output_sequence_lengths", "avg")
    if not limits or not view.summary.is_usable:
        return
    if not (value is not None and limits["least_tokens"] <= value <= limits["most_tokens"]):
        allowed = f"{limits['least_tokens']:g} to {limits['most_tokens']:g} tokens"
        yield _of_summary(view, "output_sequence_lengths", f"output_sequence_lengths.avg = {value}", allowed)


@rule("EP-014", Scope.ENDPOINTS, "The run did last long enough.", source=RULES_TEXT)
def lasted(view: EndpointsView) -> Iterator[Violation]:
    duration, needed_s = view.figure("duration_ns"), FULL_RULES_MIN_DURATION_MS / 1000
    if view.summary.is_usable and not (duration is not None and duration >= needed_s * _SECOND_NS):
        found = "no duration_ns" if duration is None else f"duration_ns = {duration:.0f}: {duration / _SECOND_NS:.3f} s"
        yield _of_summary(view, "duration_ns", found, f"at least {needed_s:g} s")


@rule("EP-015", Scope.ENDPOINTS, "The run finished.", source=CLIENT)
def came_to_end(view: EndpointsView) -> Iterator[Violation]:
    state = view.summary.fields.get("state")
    if view.summary.is_usable and state != "complete":
        yield _of_summary(view, "state", f"state = {shown(state)}", '"complete"')
    elif view.summary.fields.get("complete", True) is not True:
        yield _of_summary(view, "complete", "complete = false: metrics of a part of the run", "true")


@rule("EP-016", Scope.ENDPOINTS, "No sample failed, and each was answered.", source=CLIENT)
def nothing_failed(view: EndpointsView) -> Iterator[Violation]:
    keys = ("n_samples_issued", "n_samples_completed", "n_samples_failed")
    issued, completed, failed = (view.figure(key) for key in keys)
    if view.summary.is_usable and (issued != completed or failed != 0):
        found = f"{issued} issued, {completed} completed, {failed} failed"
        yield _of_summary(view, "n_samples_failed", found, "as many completed as issued, none failed")


@rule("EP-017", Scope.ENDPOINTS, "The run used every sample of the performance set.", source=RULES_TEXT)
def issued_enough(view: EndpointsView) -> Iterator[Violation]:
    issued, wanted = view.figure("n_samples_issued"), view.table.performance_samples if view.table else 0
    if view.summary.is_usable and issued is not None and issued < wanted:
        yield _of_summary(view, "n_samples_issued", f"n_samples_issued = {issued:g}", f"at least {wanted}")


@rule("EP-018", Scope.ENDPOINTS, "The rates follow from the samples and the duration.", source=CLIENT)
def rates_follow(view: EndpointsView) -> Iterator[Violation]:
    completed, qps = view.figure("n_samples_completed"), view.figure("qps")
    window = view.figure("legacy_loadgen_window_duration_ns")
    duration = window or view.figure("duration_ns")
    if completed is not None and qps is not None and duration:
        wanted = (completed - (1 if window else 0)) * _SECOND_NS / duration
        if abs(qps - wanted) > _CLOSE * wanted:
            yield _of_summary(view, "qps", f"qps = {qps:g}", f"{wanted:g}, by the samples and the duration")
    length, tps = view.figure("output_sequence_lengths", "avg"), view.figure("tps")
    if completed is not None and length is not None and tps is not None and duration:
        wanted = completed * length * _SECOND_NS / duration
        if abs(tps - wanted) > _CLOSE * wanted:
            yield _of_summary(view, "tps", f"tps = {tps:g}", f"{wanted:g}, by the tokens and the duration")


@rule("EP-019", Scope.ENDPOINTS, "The result records its client and time.", source=OURS,
      severity=Severity.WARNING)  # fmt: skip
def has_provenance(view: EndpointsView) -> Iterator[Violation]:
    """A warning: the client of ea332753 writes 0 for the time, and null for the commit of an installed package."""
    if not view.summary.is_usable:
        return
    if not view.summary.fields.get("git_sha"):
        found = f"git_sha = {shown(view.summary.fields.get('git_sha'))}"
        yield _of_summary(view, "git_sha", found, "the commit of the client")
    if not view.figure("test_started_at"):
        found = f"test_started_at = {view.figure('test_started_at')}"
        yield _of_summary(view, "test_started_at", found, "when the run began")


@rule("EP-020", Scope.ENDPOINTS, "Percentiles are there in both forms, and the estimates are not better.", source=OURS,
      severity=Severity.WARNING)  # fmt: skip
def percentiles_are_both_there(view: EndpointsView) -> Iterator[Violation]:
    """An early-stopping estimate of p99 is the latency of a later query than p99 itself: far below, it is another's."""
    for metric in ("latency", "ttft", "tpot"):
        estimate = view.percentile(metric, "99.0")
        plain = view.figure(metric, "percentiles", "99")
        plain = view.figure(metric, "percentiles", "99.0") if plain is None else plain
        if estimate is not None and (plain is None or estimate < plain * (1 - _CLOSE)):
            found = f"{metric}: early-stopping p99 {estimate:g}, p99 {plain}"
            yield _of_summary(view, metric, found, "an estimate no less than the measured p99")


@rule("EP-021", Scope.ENDPOINTS, "Percentiles rise from the minimum to the maximum, with the mean between them.",
      source=CLIENT)  # fmt: skip
def percentiles_rise(view: EndpointsView) -> Iterator[Violation]:
    for metric in ("latency", "ttft", "tpot"):
        least, mean, greatest = (view.figure(metric, name) for name in ("min", "avg", "max"))
        for kind in ("percentiles", "early_stopping_percentiles"):
            known = [row for row in (("min", least), *_percentiles(view, metric, kind), ("max", greatest)) if row[1]]
            fall = next((pair for pair in pairwise(known) if (pair[0][1] or 0.0) > (pair[1][1] or 0.0)), None)
            if fall is not None:
                (name, value), (after, lower) = fall
                found = f"{metric}.{kind}: {name} {value:g}, {after} {lower:g}"
                yield _of_summary(view, metric, found, f"{after} no less than {name}")
        if None not in (least, mean, greatest) and not (least or 0.0) <= (mean or 0.0) <= (greatest or 0.0):
            allowed = f"{least:g} to {greatest:g}"
            yield _of_summary(view, metric, f"{metric}.avg = {mean:g}", allowed)


def _percentiles(view: EndpointsView, metric: str, kind: str) -> list[tuple[str, float | None]]:
    """The percentiles of a metric with their names, in the order of these."""
    values = part(view.summary.fields, metric, kind)
    rows = [(name, number_of(one)) for name, one in values.items()] if isinstance(values, dict) else []
    return sorted((row for row in rows if _PERCENTILE.fullmatch(row[0])), key=lambda row: float(row[0]))


@rule("EP-022", Scope.ENDPOINTS, "Latencies are within the run, in SingleStream one after the other.", source=CLIENT)
def latencies_fit_run(view: EndpointsView) -> Iterator[Violation]:
    duration, greatest = view.figure("duration_ns"), view.figure("latency", "max")
    first, mean = view.figure("ttft", "avg"), view.figure("latency", "avg")
    if duration and greatest is not None and greatest > duration * (1 + _CLOSE):
        yield _of_summary(view, "latency", f"latency.max = {greatest:g}", f"at most duration_ns = {duration:g}")
    if first is not None and mean is not None and first > mean * (1 + _CLOSE):
        yield _of_summary(view, "ttft", f"ttft.avg = {first:g}", f"at most latency.avg = {mean:g}")
    completed = view.figure("n_samples_completed")
    if view.scenario.scenario == "SingleStream" and duration and completed and mean is not None:
        share = completed * mean / duration
        if not _BUSY <= share <= 1 + _CLOSE:
            found = f"latency.avg = {mean:g} of {completed:g} samples: {share:.0%} of duration_ns"
            one = _of_summary(view, "latency", found, f"{_BUSY:.0%} to 100 %: the next sample follows the answer")
            yield dataclasses.replace(one, severity=Severity.WARNING if share < _BUSY else None)
