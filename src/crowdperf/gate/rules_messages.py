"""Rules on the messages of a log: none hidden or doubled, and all of them there."""

from collections.abc import Iterator
from typing import TypeAlias

from crowdperf.gate.derivation import (
    EQUALLY,
    FIRST_TOKENS,
    OUTPUT_TOKENS,
    QUERIES,
    SAMPLES,
    at_key,
    contradiction,
    has_token_latencies,
    is_before_5,
    messages,
    performance_rule,
    readable,
    usable,
    version_of,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import OURS, Violation, log_rule, shown
from crowdperf.gate.views import RunView
from crowdperf.kit.records import number_of

_SCENARIO_AND_MODE = ("scenario", "test_mode")
_SWITCHES = ("print_timestamps", "performance_issue_unique", "performance_issue_same", EQUALLY)
_AMOUNTS = (
    "min_duration_ms", "max_duration_ms", "min_query_count", "max_query_count", "qsl_rng_seed",
    "sample_index_rng_seed", "schedule_rng_seed", "accuracy_log_rng_seed", "accuracy_log_probability",
    "accuracy_log_sampling_target", "performance_issue_same_index",
)  # fmt: skip
"""Settings that each log has as requested and as effective."""

_TEXTS = (
    "loadgen_version", "loadgen_build_date_utc", "test_datetime", "sut_name", "qsl_name", "power_begin", "power_end",
)  # fmt: skip
_NUMBERS = (
    "effective_samples_per_query", "effective_target_qps", "effective_target_latency_ns",
    "effective_target_latency_percentile", "effective_max_async_queries", "effective_target_duration_ms",
    "effective_min_sample_count", "effective_performance_sample_count", "requested_performance_sample_count_override",
    "qsl_reported_total_count", "qsl_reported_performance_count", "generated_query_count",
    "generated_samples_per_query", "generated_query_duration",
)  # fmt: skip
_OF_LOADGEN_6 = ("requested_accuracy_sample_count_override", "effective_accuracy_sample_count")
_ASKED = {
    "Offline": ("requested_offline_expected_qps",),
    "SingleStream": (
        "requested_single_stream_expected_latency_ns", "requested_single_stream_target_latency_percentile",
    ),
    "MultiStream": (
        "requested_multi_stream_expected_latency_ns", "requested_multi_stream_target_latency_percentile",
        "requested_multi_stream_samples_per_query",
    ),
    "Server": (
        "requested_server_target_qps", "requested_server_target_latency_ns",
        "requested_server_target_latency_percentile", "requested_server_max_async_queries",
        "requested_server_num_issue_query_threads", "requested_server_find_peak_qps_decimals_of_precision",
        "requested_server_find_peak_qps_boundary_step_size",
    ),
}  # fmt: skip
_FOUND = {
    "Offline": ("result_samples_per_second",),
    "SingleStream": (
        "result_qps_with_loadgen_overhead", "result_qps_without_loadgen_overhead", "early_stopping_latency_ss",
        "early_stopping_latency_ms",
    ),
    "MultiStream": ("early_stopping_latency_ms", *QUERIES.keys(), QUERIES.mean),
    "Server": (
        "result_overlatency_query_count", "result_scheduled_samples_per_sec", "result_completed_samples_per_sec",
    ),
}  # fmt: skip
_OF_TOKENS = (
    *FIRST_TOKENS.keys(), FIRST_TOKENS.mean, *OUTPUT_TOKENS.keys(), OUTPUT_TOKENS.mean, "result_token_throughput",
    "result_token_throughput_with_loadgen_overhead",
)  # fmt: skip
_OF_TOKEN_LIMITS = ("requested_server_ttft_latency", "requested_server_tpot_latency")
_COUNTS_ERRORS = (5, 0, 16)
"""The first LoadGen that logs num_errors (mlcommons/inference fd021be1 of April 2025)."""

_NEVER_NEGATIVE = ("requested_", "effective_", "qsl_", "generated_")
_LARGEST = 2.0**64
"""LoadGen counts in 64 bits. Its seeds are the largest numbers."""


@log_rule("LOG-001", "No message is hidden behind something else on its line.", source=OURS, since=None)
def hides_no_line(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.hidden, ":::MLLOG at the beginning of its line, as LoadGen writes it")


@log_rule("LOG-002", "No message has a name twice.", source=OURS, since=None)
def doubles_no_name(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.doubled, "each name once: parsers use the last, people the first")


@log_rule("LOG-003", "Messages of errors and warnings are flagged as such.", since=None)
def flags_errors(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.unflagged, "is_error or is_warning true, as LoadGen writes these keys")


@log_rule("LOG-004", "The log counts its errors.")
def counts_errors(run: RunView) -> Iterator[Violation]:
    """The count is the last message of a performance log, so one that was cut has none."""
    for log in readable(run):
        count = log.number("num_errors")
        version = version_of(log)
        is_counted = version is not None and version >= _COUNTS_ERRORS
        if count is None and is_counted and any(usable(run)):
            least = ".".join(map(str, _COUNTS_ERRORS))
            yield at_key(log, "num_errors", f"a number: the last message since {least}")
        if count is not None and count != log.error_count:
            yield at_key(log, "num_errors", f"{log.error_count}: its error messages")


@log_rule("LOG-005", "One process wrote the log.")
def is_of_one_process(run: RunView) -> Iterator[Violation]:
    if run.detail.is_usable and len(run.detail.processes) > 1:
        found = "pid " + ", ".join(map(str, run.detail.processes[:5]))
        yield Violation(path=run.detail.path, found=found, allowed="one pid")


_Expected: TypeAlias = Iterator[tuple[str, type | tuple[type, ...], str]]
"""Keys with the Python type of the value and the type's name in words."""


def _texts(*keys: str) -> _Expected:
    yield from ((key, str, "a text") for key in keys)


def _flags(*keys: str) -> _Expected:
    yield from ((key, bool, "true or false") for key in keys)


def _numbers(*keys: str) -> _Expected:
    yield from ((key, (int, float), "a number") for key in keys)


def _of_any(log: LogView) -> _Expected:
    """What every log has in its scenario."""
    is_server, has_limits = log.scenario == "Server", has_token_latencies(log) and log.scenario != "Offline"
    switches = [name for name in _SWITCHES if name != EQUALLY or not is_before_5(log)]
    for prefix in ("requested_", "effective_"):
        yield from _texts(*(prefix + name for name in _SCENARIO_AND_MODE))
        yield from _flags(*(prefix + name for name in switches))
        yield from _numbers(*(prefix + name for name in _AMOUNTS))
    yield from _texts(*_TEXTS)
    yield from _flags(*(("requested_server_coalesce_queries",) if is_server else ()))
    yield from _numbers(*_NUMBERS, *_ASKED.get(log.scenario or "", ()), *(_OF_TOKEN_LIMITS if has_limits else ()))
    yield from _numbers(*(_OF_LOADGEN_6 if log.values.keys() & set(_OF_LOADGEN_6) else ()))
    yield "loadgen_file_sha1", dict, "digests by file"
    yield "loaded_qsl_set", list, "a list of samples"


def _of_performance(log: LogView) -> _Expected:
    """Additional keys of the log of a performance run."""
    has_tokens = has_token_latencies(log)
    stopping = (
        ("early_stopping_ttft_result", "early_stopping_tpot_result") if has_tokens else ("early_stopping_result",)
    )
    yield from _texts("result_validity", *stopping)
    yield from _flags("result_min_duration_met", "result_min_queries_met", "early_stopping_met")
    yield from _flags(*(("result_perf_constraints_met",) if log.scenario == "Server" else ()))
    tokens: tuple[str, ...] = ()
    if has_tokens:
        tokens = ("result_tokens_per_second",) if log.scenario == "Offline" else _OF_TOKENS
    yield from _numbers(
        "result_query_count", *SAMPLES.keys(), SAMPLES.mean, *_FOUND.get(log.scenario or "", ()), *tokens
    )


@log_rule("LOG-006", "The log has every message of its run, with a value of its type.")
def is_whole(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        for key, kind, name in (*_of_any(log), *(_of_performance(log) if any(usable(run)) else ())):
            value = log.values.get(key)
            is_number = kind == (int, float)
            if not isinstance(value, kind) or (is_number and (isinstance(value, bool) or log.number(key) is None)):
                found = f"{key} = {shown(value)}" if key in log.values else f"no {key}"
                allowed = f"{key} with {name}, as LoadGen writes it in {log.scenario}"
                yield contradiction(log, key, found, allowed)


@log_rule("LOG-007", "No number is larger than LoadGen counts, and no setting is negative.")
def counts_in_64_bits(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        for key, value in log.values.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            number = number_of(value) if is_number else 0.0
            if number is None or abs(number) >= _LARGEST:
                yield contradiction(log, key, f"{key} = {str(value)[:60]}", "a number below 2**64")
            elif number < 0 and key.startswith(_NEVER_NEGATIVE):
                yield contradiction(log, key, f"{key} = {str(value)[:60]}", "0 or more")


@performance_rule("LOG-008", "A run without an error ended naturally, as LoadGen says of every scenario but Server.")
def ended_naturally(log: LogView) -> Iterator[Violation]:
    """Otherwise the error with which LoadGen ended the run was removed from the log."""
    if log.scenario in ("SingleStream", "MultiStream", "Offline") and not (log.error_count or log.ends_naturally):
        allowed = "the message 'Ending naturally: ...', or the error that ended the run"
        yield contradiction(log, "generated_query_count", "no message of the run's end", allowed)
