"""The rules on one point, E1-E13 and E17-E19: that config.yaml, point.yaml, the figures and the events say the same.

E14 is in steadyrules.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise

from crowdperf.endpoints import steadyrules as steadyrules  # its import enters E14
from crowdperf.endpoints.clientfiles import CONFIG, SCORES, SUMMARY, Distribution
from crowdperf.endpoints.findings import POINT_RULES, CurveView, Finding, PointView, Says, rule
from crowdperf.endpoints.pointfiles import POINT, PROVENANCE
from crowdperf.endpoints.regions import SUBMITTERS_CHOICE
from crowdperf.endpoints.samples import differences

_CLOSE = 1e-3
_MAX_FAILED = 0.01
_LATENCIES = ("ttft", "tpot", "latency")
_FIXED = ("concurrency", "agentic_inference")
_NS_PER_S = 1e9
_NEEDS_EVENTS = "events.jsonl of the point (--events), or its values in docs/provenance.json"


def point_findings(curve: CurveView) -> Iterator[Finding]:
    """Yield what the rules on points find in each point of a curve."""
    for point in curve.points:
        for one_rule in POINT_RULES.values():
            yield from one_rule(point, curve)


def _plain(name: str) -> str:
    """A model's name without its hub, case and punctuation: openai/gpt-oss-120b -> gptoss120b."""
    return re.sub(r"[^a-z0-9]", "", name.rsplit("/", 1)[-1].lower())


@rule("E1", "The client ran with the seeds that point.yaml declares.", POINT_RULES)
def seeds_agree(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says = Says("E1", f"{point.path}/{CONFIG}")
    pairs = (
        ("scheduler_random_seed", point.config.scheduler_seed, point.declared.scheduler_seed),
        ("dataloader_random_seed", point.config.sample_seed, point.declared.sample_seed),
    )
    for key, used, declared in pairs:
        if used != declared:
            yield says.error(f"settings.runtime.{key} = {used}", f"{declared}, as in {POINT}")


@rule("E2", "The client ran at the concurrency of the folder.", POINT_RULES)
def concurrency_agrees(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says, config = Says("E2", f"{point.path}/{CONFIG}"), point.config
    if config.load_pattern != point.declared.load_pattern:
        yield says.error(f"load_pattern.type = {config.load_pattern}", f"{point.declared.load_pattern}, as in {POINT}")
    if not point.is_dedicated_offline and config.concurrency != point.number:
        yield says.error(f"load_pattern.target_concurrency = {config.concurrency}", str(point.number))


@rule("E3", "The client requested the model and the data set of the point.", POINT_RULES)
def model_agrees(point: PointView, curve: CurveView) -> Iterator[Finding]:
    """The name that a server gives a model may go on after the benchmark's: gpt-oss-120b-mxfp4."""
    says, dataset = Says("E3", f"{point.path}/{CONFIG}"), point.config.performance_dataset
    if not _plain(point.config.model).startswith(_plain(point.declared.model)) or not point.declared.model:
        yield says.error(f"model_params.name = {point.config.model!r}", f"{point.declared.model!r}, as in {POINT}")
    if dataset is None or dataset.name != point.declared.dataset:
        found = f"performance data set {dataset.name!r}" if dataset else "no performance data set"
        yield says.error(found, f"{point.declared.dataset!r}, as in {POINT}")


@rule("E4", "The run finished.", POINT_RULES)
def run_is_complete(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says = Says("E4", f"{point.path}/{SUMMARY}")
    if point.summary.state != "complete" or not point.summary.is_complete:
        found = f"state = {point.summary.state!r}, complete = {str(point.summary.is_complete).lower()}"
        yield says.error(found, "'complete' and true: otherwise the values cover only part of the run")


@rule("E5", "Requests did not fail.", POINT_RULES)
def few_failed(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says, summary = Says("E5", f"{point.path}/{SUMMARY}"), point.summary
    if summary.failed:
        found = f"n_samples_failed = {summary.failed} of {summary.issued}"
        is_many = summary.failed > _MAX_FAILED * summary.issued
        yield says.error(found, f"at most {_MAX_FAILED:.0%}") if is_many else says.warning(found, "0")


@rule("E6", "Whole passes over the data set were issued.", POINT_RULES)
def passes_are_whole(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says, size = Says("E6", f"{point.path}/{SUMMARY}"), curve.dataset_samples(point)
    if curve.is_agentic:
        yield says.unchecked("turns are issued, not samples", "a summary that counts conversations")
    elif not size:
        yield says.unchecked(f"size of data set {point.declared.dataset!r} unknown", f"dataset_samples in {PROVENANCE}")
    elif not point.summary.issued or point.summary.issued % size:
        yield says.error(f"n_samples_issued = {point.summary.issued}", f"a multiple of the data set's {size} samples")


@rule("E7", "Percentiles rise from the minimum to the maximum.", POINT_RULES)
def percentiles_rise(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says = Says("E7", f"{point.path}/{SUMMARY}")
    for name in (*_LATENCIES, "input_tokens", "output_tokens"):
        values: Distribution = getattr(point.summary, name)
        order = [("min", values.least)]
        order += [(f"p{percent:g}", value) for percent, value in sorted(values.percentiles.items())]
        order.append(("max", values.greatest))
        known = [(key, value) for key, value in order if value is not None]
        for (lower, less), (upper, more) in pairwise(known):
            if less > more:
                yield says.error(f"{name}: {lower} = {less:g} above {upper} = {more:g}", "rising values")
        p50 = values.percentile(50.0)
        if values.median is not None and p50 is not None and values.median != p50:
            yield says.error(f"{name}: median = {values.median:g}", f"p50 = {p50:g}")


@rule("E8", "Rates, means and totals follow from each other, and from the events.", POINT_RULES)
def figures_follow(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says, summary = Says("E8", f"{point.path}/{SUMMARY}"), point.summary
    rates = (("qps", summary.qps, summary.completed), ("tps", summary.tps, summary.output_tokens.total))
    for name, rate, amount in rates:
        follows = amount / summary.duration_s if amount is not None and summary.duration_ns > 0 else None
        if not _is_close(rate, follows):
            yield says.error(f"{name} = {_shown(rate)}", f"{_shown(follows)}, by the samples and duration_ns")
    answered = summary.completed if summary.latency.mean else None
    total, mean = summary.latency.total, summary.latency.mean
    if answered is not None and mean and not _is_close((total or 0.0) / mean, answered):
        yield says.error(f"latency.total / latency.avg = {(total or 0.0) / mean:g}", f"{answered} completed samples")
    greatest = summary.latency.greatest
    if greatest is not None and greatest > summary.duration_ns:
        yield says.error(f"latency.max = {greatest:g} ns", f"at most duration_ns = {summary.duration_ns}")
    yield from _mean_follows(point)
    unequal = differences(summary, point.derived) if point.derived else ()
    if not point.derived and point.provenance:
        unequal = point.provenance.differences
    for difference in unequal[:5]:
        yield says.error(difference, "the value computed from events.jsonl")


def _mean_follows(point: PointView) -> Iterator[Finding]:
    """The client's average is the plain mean over the accuracy data sets whose score is one number."""
    average = point.accuracy.average if point.accuracy else None
    scores = [one.values[""] for one in point.accuracy.runs if "" in one.values] if point.accuracy else []
    follows = sum(scores) / len(scores) if scores else None
    if average is not None and not _is_close(average, follows):
        says = Says("E8", f"{point.path}/{SCORES}")
        yield says.error(f"average_accuracy = {average:g}", f"{_shown(follows)}, the mean of the scores")


def _is_close(value: float | None, follows: float | None) -> bool:
    if value is None or follows is None:
        return value is follows
    return math.isclose(value, follows, rel_tol=_CLOSE)


def _shown(value: float | None) -> str:
    return "no value" if value is None else f"{value:g}"


@rule("E9", "Accuracy results are complete.", POINT_RULES)
def accuracy_is_complete(point: PointView, curve: CurveView) -> Iterator[Finding]:
    """What follows :: in the name of a data set is the client's preset for a model."""
    says = Says("E9", f"{point.path}/{SCORES}")
    for score in point.accuracy.scores if point.accuracy else ():
        wanted = score.unit_samples * score.repeats
        answered = None if score.issued is None else score.issued - score.missing
        size = curve.edition.dataset_samples.get(score.dataset.partition("::")[0], 0)
        if score.unit_samples < size:
            yield says.error(f"{score.dataset}: unit_samples = {score.unit_samples}", f"the data set's {size} samples")
        if not score.is_complete:
            yield says.error(f"{score.dataset}: complete = false", "true")
        if score.total_samples < wanted:
            found = f"{score.dataset}: total_samples = {score.total_samples}"
            yield says.error(found, f"{wanted}: {score.unit_samples} samples, {score.repeats} times")
        if not score.is_inline and answered is not None and (answered < wanted or (score.scored or 0) < answered):
            found = f"{score.dataset}: {score.issued} issued, {score.missing} missing, {score.scored} scored"
            yield says.error(found, f"{wanted} answered and scored")


@rule("E10", "The region is that of the concurrency.", POINT_RULES)
def region_fits(point: PointView, curve: CurveView) -> Iterator[Finding]:
    declared = point.declared.region
    if curve.regions is None or not declared or declared == SUBMITTERS_CHOICE or point.is_dedicated_offline:
        return
    region = curve.regions.region_of(point.declared.concurrency)
    if region is not None and declared != region.value:
        says = Says("E10", f"{point.path}/{POINT}")
        yield says.error(f"region = {declared}", f"{region.value}: {curve.regions.bounds(region)}")


@rule("E11", "The name of the folder is the concurrency.", POINT_RULES)
def folder_is_named_so(point: PointView, curve: CurveView) -> Iterator[Finding]:
    if point.declared.concurrency != point.number:
        yield Says("E11", point.path).error(f"r{point.number}", f"r{point.declared.concurrency}, as in {POINT}")


@rule("E12", "The run lasted as long as the rules require.", POINT_RULES)
def lasted(point: PointView, curve: CurveView) -> Iterator[Finding]:
    if point.is_dedicated_offline:
        return
    floor = curve.edition.floor_s(point.number, is_agentic=curve.is_agentic)
    span = point.issue_span_s
    seconds, name = (point.summary.duration_s, "duration_ns") if span is None else (span, "issued over")
    if seconds < floor:
        yield Says("E12", f"{point.path}/{SUMMARY}").error(f"{name}: {seconds:.1f} s", f"at least {floor:g} s")


@rule("E13", "The result records its client and time.", POINT_RULES)
def has_provenance(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says, known = Says("E13", f"{point.path}/{SUMMARY}"), point.provenance
    if not point.summary.git_sha and not (known and known.client_commit):
        yield says.error("git_sha = null", f"the client's commit, there or in {PROVENANCE}")
    if not point.summary.started_at and not (known and known.started_utc):
        yield says.error("test_started_at = 0", f"when the run began, there or in {PROVENANCE}")


@rule("E17", "The results are those of a model, not of a stand-in.", POINT_RULES)
def is_no_stand_in(point: PointView, curve: CurveView) -> Iterator[Finding]:
    says = Says("E17", f"{point.path}/{POINT}")
    if curve.provenance and curve.provenance.label:
        yield says.error(f"labeled: {curve.provenance.label}", f"no label in {PROVENANCE}")
    if point.is_echo:
        yield says.error(f"{point.echoed} of {point.summary.issued} answers are their prompt", "answers of a model")
    if point.declared.dataset not in curve.edition.dataset_samples:
        known = ", ".join(curve.edition.dataset_samples)
        yield says.warning(f"data set {point.declared.dataset!r}", f"one of the edition's: {known}")


@rule("E18", "No token arrived before its request was waiting for it.", POINT_RULES)
def no_negative_times(point: PointView, curve: CurveView) -> Iterator[Finding]:
    """Chunks that outrun the client's hand-over between processes give negative times per token."""
    says = Says("E18", f"{point.path}/{SUMMARY}")
    for name in () if point.is_dedicated_offline else _LATENCIES:
        values: Distribution = getattr(point.summary, name)
        p10 = values.percentile(10.0)
        if p10 is not None and p10 < 0:
            yield says.error(f"{name}: p10 = {p10:g} ns", "0 or more")
        elif values.least is not None and values.least < 0:
            yield says.warning(f"{name}: min = {values.least:g} ns", "0 or more")


@rule("E19", "As many requests were in flight as the folder's name requires.", POINT_RULES)
def in_flight_as_declared(point: PointView, curve: CurveView) -> Iterator[Finding]:
    if point.is_dedicated_offline:
        return
    says, greatest = Says("E19", f"{point.path}/{SUMMARY}"), point.greatest_in_flight
    if point.config.load_pattern not in _FIXED:
        yield says.error(f"load pattern {point.config.load_pattern}", " or ".join(_FIXED))
    elif greatest is None:
        yield says.unchecked("requests under way at once", _NEEDS_EVENTS)
    elif greatest != point.number:
        yield says.error(f"at most {greatest} requests in progress at once", str(point.number))
