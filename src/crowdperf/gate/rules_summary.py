"""Rules on the summary: LoadGen derives it from the same data as the detail log, so the log determines every line."""

import functools
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from crowdperf.gate.derivation import PERCENTILES, SECOND_NS, has_token_latencies, readable, usable
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import Violation, log_rule
from crowdperf.gate.views import RunView
from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import Json
from crowdperf.logs.summary_log import summary_lines

_TWO_DECIMALS = 0.00501
"""LoadGen writes some rates with two decimals. In the detail log they have six digits."""

_SIX_DIGITS, _LONGEST_NUMBER = 1.1e-5, 40
_MAX_PER_NAME = 10
_YES_NO = {True: "Yes", False: "NO"}

_LEADING: Mapping[str, Mapping[str, str]] = {
    "Offline": {
        "Samples per second": "result_samples_per_second",
        "Tokens per second": "result_tokens_per_second",
    },
    "Server": {
        "Completed samples per second": "result_completed_samples_per_sec",
        "Scheduled samples per second": "result_scheduled_samples_per_sec",
        "Completed tokens per second": "result_completed_tokens_per_second",
    },
    "SingleStream": {
        "QPS w/ loadgen overhead": "result_qps_with_loadgen_overhead",
        "QPS w/o loadgen overhead": "result_qps_without_loadgen_overhead",
        "TPS w/ loadgen overhead": "result_token_throughput_with_loadgen_overhead",
    },
}
_OF_LATER_LOADGENS = {
    f"{word} Time per Output Token (ns)": f"result_time_to_output_token_{word.lower()}"
    for word in ("Min", "Max", "Mean")
}
"""Lines that are called otherwise before LoadGen 5.1."""

_WITHOUT_OVERHEAD = "TPS w/o loadgen overhead"

_VERDICT = {
    "Performance constraints satisfied": "result_perf_constraints_met",
    "Min duration satisfied": "result_min_duration_met",
    "Min queries satisfied": "result_min_queries_met",
    "Early stopping satisfied": "early_stopping_met",
}
_PARAMETERS = {
    "samples_per_query": "effective_samples_per_query",
    "target_qps": "effective_target_qps",
    "max_async_queries": "effective_max_async_queries",
    "min_duration (ms)": "effective_min_duration_ms",
    "max_duration (ms)": "effective_max_duration_ms",
    "min_query_count": "effective_min_query_count",
    "max_query_count": "effective_max_query_count",
    "accuracy_log_rng_seed": "effective_accuracy_log_rng_seed",
    "accuracy_log_probability": "effective_accuracy_log_probability",
    "accuracy_log_sampling_target": "effective_accuracy_log_sampling_target",
    "print_timestamps": "effective_print_timestamps",
    "performance_issue_unique": "effective_performance_issue_unique",
    "performance_issue_same": "effective_performance_issue_same",
    "performance_issue_same_index": "effective_performance_issue_same_index",
    "performance_sample_count": "effective_performance_sample_count",
    "accuracy_sample_count": "effective_accuracy_sample_count",
    "qsl_rng_seed": "effective_qsl_rng_seed",
    "sample_index_rng_seed": "effective_sample_index_rng_seed",
    "schedule_rng_seed": "effective_schedule_rng_seed",
}
_EARLY_STOPPING = ("early_stopping_result", "early_stopping_ttft_result", "early_stopping_tpot_result")


def _lines(run: RunView) -> Mapping[str, Sequence[tuple[str, int]]]:
    """The values of each `name : value` line with their line numbers: of a name the first ones."""
    return _lines_of(run.summary.text)


@functools.lru_cache(maxsize=2)
def _lines_of(text: str) -> Mapping[str, Sequence[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for line in summary_lines(text):
        values = found.setdefault(line.name.strip(" *"), [])
        if len(values) < _MAX_PER_NAME:
            values.append((line.value, line.number))
    return found


def _agrees(written: str, value: Json) -> bool:
    """Whether a line agrees with the detail log: a text, a truth value as 0 or 1, a number as LoadGen writes it."""
    if isinstance(value, str):
        return written == value.strip()
    if isinstance(value, bool):
        return written == str(int(value))
    if isinstance(value, int) and written.isascii() and written.isdigit():
        return len(written) < _LONGEST_NUMBER and int(written) == value
    wanted = number_of(value)
    try:
        number = float(written)
    except ValueError:
        return False
    slack = _TWO_DECIMALS if re.fullmatch(r"-?[0-9]+\.[0-9][0-9]", written) else 0.0
    return wanted is not None and abs(number - wanted) <= slack + _SIX_DIGITS * abs(wanted)


def _compare(run: RunView, wanted: Mapping[str, str], *, is_whole: bool = True) -> Iterator[Violation]:
    """Compare the lines of these names with the detail log's values of these keys, if it has them.

    is_whole: a summary without one of the lines is also a finding.
    """
    lines = _lines(run)
    for name, key in wanted.items():
        if key not in run.detail.values:
            continue
        value = run.detail.values[key]
        allowed = f"{key} = {str(value)[:60]} of the detail log"
        for written, number in lines.get(name, ()):
            if not _agrees(written, value):
                yield Violation(path=run.summary.path, found=f"{name} : {written[:60]}", allowed=allowed, line=number)
        if name not in lines and is_whole:
            yield Violation(path=run.summary.path, found=f"no line {name!r}", allowed=allowed)


def _with_summary(run: RunView) -> Iterator[LogView]:
    """Yield the detail log if both logs exist. RUN-001, RUN-003 and RUN-005 are about the others."""
    if run.summary.is_usable and run.summary.text.strip():
        yield from usable(run)


@log_rule("SUM-001", "The summary is of the scenario, mode and SUT of the detail log.")
def is_of_same_run(run: RunView) -> Iterator[Violation]:
    """The summary of an accuracy run has none of these lines. One that has them is of another run."""
    if run.test and run.detail.is_usable and not (run.summary.is_missing or run.summary.text.strip()):
        found = run.summary.problem or "an empty file"
        yield Violation(path=run.summary.path, found=found, allowed=f"the summary of the run in {run.detail.path}")
    names = {"Scenario": "effective_scenario", "Mode": "effective_test_mode", "SUT name": "sut_name"}
    for _ in readable(run) if run.is_accuracy else _with_summary(run):
        yield from _compare(run, names, is_whole=not run.is_accuracy)


@log_rule("SUM-002", "The summary has the results of the detail log.")
def has_same_figures(run: RunView) -> Iterator[Violation]:
    for log in _with_summary(run):
        yield from _compare(run, _figure_lines(log, _lines(run)))
        yield from _compare(run, _OF_LATER_LOADGENS, is_whole=False)
        yield from _tokens_without_overhead(run, log)


def _tokens_without_overhead(run: RunView, log: LogView) -> Iterator[Violation]:
    """The one value that the two logs have in two units: the detail log has tokens per nanosecond (results.cc)."""
    key = "result_token_throughput"
    rate = log.number(key)
    if log.scenario != "SingleStream" or rate is None:
        return
    for written, number in _lines(run).get(_WITHOUT_OVERHEAD, [("no such line", 0)]):
        if not _agrees(written, rate * SECOND_NS):
            found, allowed = f"{_WITHOUT_OVERHEAD} : {written[:60]}", f"{rate * SECOND_NS:g}: {key} = {rate:g} per ns"
            yield Violation(path=run.summary.path, found=found, allowed=allowed, line=number or None)


def _figure_lines(log: LogView, lines: Container[str]) -> dict[str, str]:
    """The values in the summary of a performance run: name of the line, key of the detail log."""
    scenario = log.scenario
    kind, per = ("_query", "per_query_") if scenario == "MultiStream" else ("", "")
    names = dict(_LEADING.get(scenario or "", {}))
    names |= {f"{word} latency (ns)": f"result_{word.lower()}{kind}_latency_ns" for word in ("Min", "Max", "Mean")}
    names |= {f"{at} percentile latency (ns)": f"result_{at}_percentile_{per}latency_ns" for at in PERCENTILES}
    share = log.number("effective_target_latency_percentile")
    if scenario in ("SingleStream", "MultiStream") and share is not None:
        at = f"{share * 100:.2f}"
        spelt = [f"{share * 100:.{digits}f}th percentile latency (ns)" for digits in (1, 0)]
        name = next((one for one in spelt if one in lines), spelt[0])  # one digit since d7bbf881 of February 2025
        names[name] = f"result_{at}_percentile_{per}latency_ns"
    if has_token_latencies(log) and scenario != "Offline":
        names |= {f"{word} First Token latency (ns)": f"result_first_token_{word.lower()}_latency_ns"
                  for word in ("Min", "Max", "Mean")}  # fmt: skip
        names |= {f"{at} percentile first token latency (ns)": f"result_first_token_{at}_percentile_latency_ns"
                  for at in PERCENTILES}  # fmt: skip
        names |= {f"{at} percentile time to output token (ns)": f"result_time_per_output_token_{at}_percentile_ns"
                  for at in PERCENTILES}  # fmt: skip
    return names


@log_rule("SUM-003", "The summary has the verdict of the detail log and its reasons.")
def has_same_verdict(run: RunView) -> Iterator[Violation]:
    for log in _with_summary(run):
        yield from _compare(run, {"Result is": "result_validity"})
        lines = _lines(run)
        for name, key in _VERDICT.items():
            value = log.values.get(key)
            wanted = _YES_NO[value] if isinstance(value, bool) else None
            for written, number in lines.get(name, [] if wanted is None else [("no such line", 0)]):
                if wanted is not None and written != wanted:
                    allowed = f"{wanted}: {key} = {value} in the detail log"
                    yield Violation(
                        path=run.summary.path, found=f"{name}: {written[:60]}", allowed=allowed, line=number or None
                    )
        text = "".join(run.summary.text.split())
        for key in _EARLY_STOPPING:
            wanted = log.text(key)
            if wanted and "".join(wanted.split()) not in text:
                yield Violation(path=run.summary.path, found=f"not {key} of the detail log", allowed=wanted.strip())


@log_rule("SUM-004", "The summary has the parameters and seeds of the detail log.")
def has_same_parameters(run: RunView) -> Iterator[Violation]:
    for log in _with_summary(run):
        latency = {
            "ttft_latency (ns)": "requested_server_ttft_latency",
            "tpot_latency (ns)": "requested_server_tpot_latency",
        }
        if not has_token_latencies(log):
            latency = {"target_latency (ns)": "effective_target_latency_ns"}
        yield from _compare(run, {**_PARAMETERS, **latency})


_COUNTED = re.compile(r"^(No|[0-9]+) (warning|error)s? encountered", re.IGNORECASE | re.MULTILINE)


@log_rule("SUM-005", "The summary counts the errors and warnings of the detail log.")
def counts_same_messages(run: RunView) -> Iterator[Violation]:
    for log in readable(run) if run.is_accuracy and run.summary.is_usable else _with_summary(run):
        counts = {"warning": log.warning_count, "error": log.error_count}
        found = {kind.lower(): number for number, kind in _COUNTED.findall(run.summary.text)}
        for kind, count in counts.items():
            written = found.get(kind, "none reported").lower()
            if written != (str(count) if count else "no"):
                line = run.summary.line_of("encountered")
                allowed = f"{count or 'no'}: the messages of the detail log"
                yield Violation(
                    path=run.summary.path, found=f"{kind}s encountered: {written[:20]}", allowed=allowed, line=line
                )
