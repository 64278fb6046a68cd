"""Rules on a performance run's logs, the result's own and those of compliance tests alike."""

import dataclasses
from collections.abc import Iterator

from crowdperf.gate.derivation import at_key, contradiction, given, lasted_s, messages, other_seeds, unreadable
from crowdperf.gate.listing import join
from crowdperf.gate.rulebook import (
    BOTH,
    LOADGEN,
    NEWER,
    OLDER,
    OURS,
    RULES_TEXT,
    SINCE,
    Scope,
    Severity,
    Violation,
    rule,
)
from crowdperf.gate.rules_accuracy import TOLERATED
from crowdperf.gate.steps import Step
from crowdperf.gate.views import ACCURACY, DETAIL, SUMMARY, RunView
from crowdperf.logs.run_log import parse_summary_verdict

OF_EVERY_TEST = ("RUN-003", "RUN-007", "RUN-015", "RUN-016", "RUN-021")
"""Requirements that also apply to a test whose results do not count: a readable log, with the round's seeds,
scenario and mode."""

NEEDED = (SUMMARY, DETAIL)
POWER = ("spl.txt",)
_POWER_FILES = ("client.json", "client.log", "ptd_logs.txt", "server.json", "server.log")
BY_FOLDER = (
    "MLPerf inference rules (inference_policies ac93e89, inference_rules.adoc, table of benchmarks): the limits of the "
    "folder's scenario. The checker judges an Interactive run of LoadGen by those of Server"
)
_EMPTY_LOG_BYTES = 16
"""LoadGen writes four: 1,427 of 1,430 published logs of performance runs have them."""

_P99 = "result_99.00_percentile_latency_ns"
_EARLY_STOPPING = ("SingleStream", "MultiStream", "Server")
_INFERRED = (("SingleStream", "MultiStream"), ("MultiStream", "Offline"), ("SingleStream", "Offline"))
_OTHER_SEEDS = ("TEST05",)


def _asks(run: RunView, key: str, minimum: float) -> Iterator[Violation]:
    value = run.detail.number(key)
    if run.detail.is_usable and not (value is not None and value >= minimum):
        yield at_key(run.detail, key, f"at least {minimum:g}")


@rule("RUN-001", Scope.RUN, "A performance run has its two logs.", source=BOTH)
def has_logs(run: RunView) -> Iterator[Violation]:
    for name in NEEDED:
        if join(run.folder, name) not in run.scenario.tree.listing.sizes:
            yield Violation(path=join(run.folder, name), found="missing", allowed=", ".join(NEEDED))


@rule("RUN-002", Scope.RUN, "No other files are next to the logs.", source=OLDER, step=Step.TREE)
def has_only_logs(run: RunView) -> Iterator[Violation]:
    has_power = join(run.scenario.folder, "performance/power") in run.scenario.tree.listing.folders
    known = {*NEEDED, ACCURACY, *TOLERATED, *(POWER if has_power else ())}
    for name in run.scenario.tree.listing.files_in(run.folder):
        if name not in known:
            yield Violation(path=join(run.folder, name), found="a stray file", allowed=", ".join(sorted(known)))


@rule("RUN-003", Scope.RUN, "The detail log can be read to its end.", source=BOTH)
def log_is_readable(run: RunView) -> Iterator[Violation]:
    yield from unreadable(run.detail)


@rule("RUN-004", Scope.RUN, "LoadGen calls the run VALID.", source=OLDER)
def is_valid(run: RunView) -> Iterator[Violation]:
    if run.detail.is_usable and run.detail.values.get("result_validity") != "VALID":
        yield at_key(run.detail, "result_validity", "VALID")


@rule("RUN-005", Scope.RUN, "The summary is of the same run and is also VALID.", source=OURS)
def summary_agrees(run: RunView) -> Iterator[Violation]:
    if run.summary.is_missing:
        return
    verdict = parse_summary_verdict(run.summary.text)
    if run.summary.problem or verdict is not True:
        line = run.summary.line_of("Result is")
        written = run.summary.text.splitlines()[line - 1].strip()[:60] if line else ""
        found = run.summary.problem or (written if verdict is False else "no line 'Result is'")
        yield Violation(path=run.summary.path, found=found, allowed="Result is : VALID", line=line)


@rule("RUN-006", Scope.RUN, "LoadGen logged no error.", source=OLDER)
def has_no_errors(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.errors, "no message with is_error")
    count = run.detail.number("num_errors")
    if run.detail.is_usable and not run.detail.errors and count:
        yield at_key(run.detail, "num_errors", "0")


@rule("RUN-007", Scope.RUN, "The run has the seeds of the round.", source=BOTH)
def has_seeds(run: RunView) -> Iterator[Violation]:
    if not run.detail.is_usable or run.test in _OTHER_SEEDS:
        return
    yield from other_seeds(run.detail, run.scenario.tree.round, ", and each round has its own LoadGen builds")


@rule("RUN-008", Scope.RUN, "Enough different samples were in memory.", source=BOTH)
def has_samples_in_memory(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    if table is not None:
        yield from _asks(run, "effective_performance_sample_count", table.performance_samples)


@rule("RUN-009", Scope.RUN, "The requested duration is long enough.", source=BOTH)
def asks_for_duration(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    if table is not None and table.min_duration_ms:
        yield from _asks(run, "effective_min_duration_ms", table.min_duration_ms)


@rule("RUN-010", Scope.RUN, "The run did last long enough, from power_begin to power_end.", source=OURS)
def lasted(run: RunView) -> Iterator[Violation]:
    table, elapsed = run.scenario.model.table, lasted_s(run.detail)
    if table is None or not table.min_duration_ms or not run.detail.is_usable:
        return
    needed = table.min_duration_ms / 1000
    if elapsed is None or elapsed < needed:
        found = "no power_begin and power_end" if elapsed is None else f"{elapsed:.3f} s"
        yield contradiction(run.detail, "power_begin", found, f"at least {needed:g} s")
        return
    ended = run.detail.end_time_s
    if ended is None or ended < needed:
        found = f"power_end was logged after {'an unknown time' if ended is None else f'{ended:.3f} s'}"
        yield contradiction(run.detail, "power_end", found, f"at least {needed:g} s by the log's own clock")


@rule("RUN-011", Scope.RUN, "Early stopping was satisfied.", source=NEWER)
def early_stopping_was_met(run: RunView) -> Iterator[Violation]:
    if run.detail.scenario in _EARLY_STOPPING and run.detail.values.get("early_stopping_met") is not True:
        yield at_key(run.detail, "early_stopping_met", "true")


@rule("RUN-012", Scope.RUN, "The latency target is not looser than the benchmark's.", source=BOTH)
def latency_target_is_kept(run: RunView) -> Iterator[Violation]:
    table, scenario = run.scenario.model.table, run.detail.scenario
    limit = None if table is None or scenario is None else table.latency_ns.get(scenario)
    if limit is None or not run.detail.is_usable:
        return
    key = "effective_target_latency_ns" if scenario in _EARLY_STOPPING else _P99
    value = run.detail.number(key)
    if value is None or value > limit:
        yield at_key(run.detail, key, f"at most {limit:g}")
    limit = None if table is None else table.latency_ns.get(run.scenario.scenario or "")
    value = run.detail.number(_P99)
    if run.scenario.scenario == "Interactive" and limit is not None and (value is None or value > limit):
        yield dataclasses.replace(at_key(run.detail, _P99, f"at most {limit:g}"), source=BY_FOLDER)


@rule("RUN-013", Scope.RUN, "An Offline query has enough samples.", source=BOTH)
def offline_has_samples(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    if table is not None and run.detail.scenario == "Offline" and table.offline_min_samples:
        yield from _asks(run, "effective_samples_per_query", table.offline_min_samples)


@rule("RUN-014", Scope.RUN, "An Offline run has enough queries.", source=BOTH)
def has_queries(run: RunView) -> Iterator[Violation]:
    table, scenario = run.scenario.model.table, run.detail.scenario
    if table is not None and scenario is not None and table.min_queries.get(scenario):
        yield from _asks(run, "effective_min_query_count", table.min_queries[scenario])


@rule("RUN-015", Scope.RUN, "The log is of the scenario of its folder, or inference is requested and legal.",
      source=RULES_TEXT)  # fmt: skip
def scenario_is_that_of_folder(run: RunView) -> Iterator[Violation]:
    folder, logged = run.scenario.scenario, run.detail.scenario
    if not run.detail.is_usable or folder is None or logged == folder:
        return
    if (logged, folder) == ("Server", "Interactive"):
        return
    if not run.scenario.tree.options.infer_scenarios:
        hint = " (--infer_scenarios accepts the scenarios that an edge system may infer)"
        yield at_key(run.detail, "effective_scenario", folder + hint)
        return
    category = run.scenario.model.system.category or ""
    if (logged, folder) not in _INFERRED or category == "datacenter":
        pairs = ", ".join(f"{target} from {source}" for source, target in _INFERRED)
        yield at_key(run.detail, "effective_scenario", f"on edge systems: {pairs}")
    elif (logged, folder) == ("SingleStream", "MultiStream") and not run.detail.number("early_stopping_latency_ms"):
        yield at_key(run.detail, "early_stopping_latency_ms", "an estimate (662 queries at least)")


@rule("RUN-016", Scope.RUN, "The log is of a performance run.", source=OURS)
def mode_is_performance(run: RunView) -> Iterator[Violation]:
    mode = run.detail.values.get("effective_test_mode")
    if run.detail.is_usable and mode not in ("PerformanceOnly", "SubmissionRun"):
        yield at_key(run.detail, "effective_test_mode", "PerformanceOnly")


@rule("RUN-017", Scope.RUN, "The log has the scenario's result.", source=BOTH)
def has_figure(run: RunView) -> Iterator[Violation]:
    table, scenario = run.scenario.model.table, run.detail.scenario
    if table is None or not run.detail.is_usable:
        return
    key = table.metric_key(scenario or "")
    if key is None:
        yield at_key(run.detail, "effective_scenario", "a scenario of LoadGen")
        return
    value = run.detail.number(key)
    if value is None or value <= 0:
        yield at_key(run.detail, key, "a number above 0")


@rule("RUN-018", Scope.RUN, "All samples are used equally often if the model requires it.", source=OLDER)
def issues_equally(run: RunView) -> Iterator[Violation]:
    table, key = run.scenario.model.table, "effective_sample_concatenate_permutation"
    is_needed = table is not None and table.needs_equal_issue and run.detail.is_usable
    if is_needed and run.detail.values.get(key) is not True:
        yield at_key(run.detail, key, "true")


@rule("RUN-019", Scope.RUN, "Token latencies are measured and in bounds if the model requires it.", source=BOTH)
def token_latencies(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    if table is None or not table.needs_token_latencies or not run.detail.is_usable:
        return
    if not run.detail.values.get("requested_use_token_latencies"):
        yield at_key(run.detail, "requested_use_token_latencies", "true")
    scenario = run.scenario.scenario or ""
    if scenario not in ("Server", "Interactive"):
        return
    limits = table.token_latency_ns.get(scenario)
    if limits is None:
        yield at_key(run.detail, "effective_scenario", f"{table.name} has no {scenario}")
        return
    keys = {"ttft": "result_first_token_99.00_percentile_latency_ns",
            "tpot": "result_time_per_output_token_99.00_percentile_ns"}  # fmt: skip
    for name, key in keys.items():
        value = run.detail.number(key)
        if value is None or value >= limits[name]:
            found = at_key(run.detail, key, f"below {limits[name]:g}, the limit of {scenario}")
            yield dataclasses.replace(found, source=BY_FOLDER if scenario == "Interactive" else "")


@rule("RUN-020", Scope.RUN, "The name of a networked SUT shows it.", source=BOTH)
def network_sut_is_named(run: RunView) -> Iterator[Violation]:
    value = run.scenario.model.system.description.fields.get("is_network")
    is_networked = isinstance(value, str) and value.lower() == "true" and run.detail.is_usable
    if is_networked and "Network SUT" not in (run.detail.text("sut_name") or ""):
        yield at_key(run.detail, "sut_name", 'a name with "Network SUT"')


@rule("RUN-021", Scope.RUN, "No setting or result is logged twice with two values.", source=OURS)
def has_no_conflicts(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.conflicts, "one value")


@rule("RUN-022", Scope.RUN, "Power results need the official power checker.", source=BOTH, step=Step.CHECK,
      severity=Severity.WARNING)  # fmt: skip
def power_is_not_checked(run: RunView) -> Iterator[Violation]:
    """Their files must exist (REQUIRED_POWER_FILES of both checkers). Their content is not judged."""
    folder = join(run.scenario.folder, "performance/power")
    if not run.test and folder in run.scenario.tree.listing.folders:
        missing = set(_POWER_FILES).difference(run.scenario.tree.listing.files_in(folder))
        if missing:
            allowed = ", ".join(_POWER_FILES)
            found = f"without {', '.join(sorted(missing))}"
            yield Violation(path=folder, found=found, allowed=allowed, severity=Severity.ERROR)
        allowed = "what both official checkers accept: this gate does not judge power"
        yield Violation(path=folder, found="power logs, which this checker does not judge", allowed=allowed)


@rule("RUN-025", Scope.RUN, "A run that was to log no responses logged none.", source=LOADGEN,
      since=SINCE)  # fmt: skip
def logged_no_responses(run: RunView) -> Iterator[Violation]:
    """Otherwise it was run as a compliance test, whose settings were removed from the log."""
    path, log = join(run.folder, ACCURACY), run.detail
    is_silent = not any(log.values.get(f"effective_accuracy_log_{name}") for name in ("sampling_target", "probability"))
    size = run.scenario.tree.listing.sizes.get(path, 0)
    if is_silent and log.text("effective_test_mode") == "PerformanceOnly" and size > _EMPTY_LOG_BYTES:
        found = f"{size} bytes, though {given(log, 'effective_accuracy_log_sampling_target')}"
        yield Violation(path=path, found=found, allowed="[ and ]: an empty list")
