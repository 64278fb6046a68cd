"""Reads the logs of one LoadGen run into one frozen type, with the unit of every figure in its name.

`mlperf_log_detail.txt` is the source, because the official checkers read it too; the summary is read only to compare
the verdicts. Key names: LoadGen 4.1 to 6.0.17 (https://github.com/mlcommons/inference/tree/master/loadgen, results.cc
and test_settings_internal.cc).
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from crowdperf.kit.text_documents import given_bytes
from crowdperf.logs.detail_log import DetailLog, LoggedValues
from crowdperf.logs.detail_log import LogError as LogError
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.summary_log import summary_lines
from crowdperf.rules.names import (
    FIGURE_KEYS,
    METRIC_OF_SCENARIO,
    PLAIN_LATENCY_METRIC,
    TOKEN_KEYS,
    Metric,
    Mode,
    Scenario,
    UnknownName,
    parse_scenario,
)

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What a JSON file can hold."""

_POWER_TIME = "%m-%d-%Y %H:%M:%S.%f"
_TOKEN_ERROR = "token"
"""In LoadGen's errors about an answer without tokens, or with one: "n_tokens argument missing or attempted to record 0
as number of tokens" (logging.cc, RecordSampleCompletion, 6.0.17)."""
_MODES = {"PerformanceOnly": Mode.PERFORMANCE, "AccuracyOnly": Mode.ACCURACY}
LATE_REASON = "performance constraints not satisfied (too many queries over the latency target)"
"""What is said of a Server run whose rate was too high."""

SHORT_REASON = "minimum duration not met"
"""What is said of a run that ended too early; of an Offline run, because its planned rate was too low."""

_CHECKS = (
    ("result_perf_constraints_met", LATE_REASON),
    ("result_min_duration_met", SHORT_REASON),
    ("result_min_queries_met", "minimum query count not met"),
    ("early_stopping_met", "early stopping not satisfied (too few queries, or too many over the latency target)"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """The random seeds in effect: they tell the MLPerf round that the LoadGen build belongs to."""

    qsl: int
    sample_index: int
    schedule: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Latencies of a performance run; of whole queries in MultiStream, of samples elsewhere (Offline: the one
    query)."""

    min_ns: int
    mean_ns: int
    max_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p97_ns: int
    p99_ns: int
    p99_9_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFigures:
    """What LoadGen measured of answers that are made token by token. ttft: time to the first token; tpot: time per
    output token after it; None in Offline."""

    per_second: float
    ttft: Latencies | None
    tpot: Latencies | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStopping:
    """What LoadGen's early-stopping statistics said; the estimates exist in the stream scenarios only, and with token
    latencies they are those of the first token (SingleStream)."""

    is_met: bool
    text: str
    p90_estimate_ns: int | None
    p99_estimate_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSettings:
    """The settings LoadGen worked with, after all configuration layers."""

    min_duration_ms: int
    min_query_count: int
    samples_per_query: int
    target_qps: float
    target_latency_ns: int
    performance_sample_count: int
    accuracy_sample_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """The figure of a performance run in the unit of its metric, and the key of the detail log that it stands at."""

    metric: Metric
    value: float
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGenLog:
    """All that a finished LoadGen run says about itself.

    `is_valid` is LoadGen's own verdict *and* no logged error. An accuracy run has no verdict: it is valid without
    errors. `metric`, `latencies` and `early_stopping` are None after an accuracy run. Latencies are those of
    answers: a run with token latencies and failed requests has none, nor a figure made of them, since LoadGen
    counts the microseconds of failed requests among them (and divides by their tokens less one, which is below 0).
    published: tokens per second where LoadGen measures or infers them, else `metric`: what the official checkers
    publish. tokens: of a run that LoadGen measured by tokens. started: in the machine's own time,
    `2026-11-21T01:02:03`. began_local_s: the same in seconds since 1970. settings: the values of the keys that
    begin with requested_ and effective_. lines: where the last message of each key stands.
    """

    loadgen_version: str
    scenario: Scenario
    mode: Mode
    is_valid: bool
    invalid_reasons: tuple[str, ...]
    errors: tuple[str, ...]
    error_count: int
    warnings: tuple[str, ...]
    metric: MetricValue | None
    published: MetricValue | None
    tokens: TokenFigures | None
    latencies: Latencies | None
    early_stopping: EarlyStopping | None
    is_min_duration_met: bool | None
    is_min_query_count_met: bool | None
    query_count: int | None
    generated_query_count: int
    generated_samples_per_query: int
    qsl_total_count: int
    duration_s: float
    started: str
    began_local_s: float
    seeds: Seeds
    effective: EffectiveSettings
    settings: Mapping[str, Json] = field(repr=False)
    lines: Mapping[str, int] = field(repr=False)


def _moment(values: LoggedValues, key: str) -> datetime:
    text = values.text(key)
    try:
        return datetime.strptime(text, _POWER_TIME)
    except ValueError as error:
        message = f"the detail log's {key!r} should be a time like 11-21-2026 01:02:03.456, found {text!r}"
        raise LogError(message) from error


def _duration_s(values: LoggedValues) -> float:
    begin, end = (_moment(values, key) for key in ("power_begin", "power_end"))
    return (end - begin).total_seconds()


def _spread(values: LoggedValues, bound: str, percentile: str) -> Latencies | None:
    """Return latencies whose keys have a word ("min") and a number ("99.00") in the gaps of these names; None where one
    is below 0, which no latency is."""

    def at(text: str) -> int:
        return values.integer(percentile.format(text))

    found = Latencies(
        min_ns=values.integer(bound.format("min")),
        mean_ns=values.integer(bound.format("mean")),
        max_ns=values.integer(bound.format("max")),
        p50_ns=at("50.00"),
        p90_ns=at("90.00"),
        p95_ns=at("95.00"),
        p97_ns=at("97.00"),
        p99_ns=at("99.00"),
        p99_9_ns=at("99.90"),
    )
    return found if min(astuple(found)) >= 0 else None


def latency_keys(scenario: Scenario) -> tuple[str, str]:
    """Return the keys of a scenario's latencies, with a gap for min, mean or max, and with one for "99.00"."""
    if scenario is Scenario.MULTI_STREAM:
        return "result_{}_query_latency_ns", "result_{}_percentile_per_query_latency_ns"
    return "result_{}_latency_ns", "result_{}_percentile_latency_ns"


def _tokens(values: LoggedValues, scenario: Scenario) -> TokenFigures | None:
    if not values.has("requested_use_token_latencies"):
        return None
    if scenario is Scenario.OFFLINE:
        return TokenFigures(per_second=values.number("result_tokens_per_second"), ttft=None, tpot=None)
    return TokenFigures(
        per_second=values.number("result_completed_tokens_per_second"),
        ttft=_spread(values, "result_first_token_{}_latency_ns", "result_first_token_{}_percentile_latency_ns"),
        tpot=_spread(values, "result_time_to_output_token_{}", "result_time_per_output_token_{}_percentile_ns"),
    )


def _published(values: LoggedValues, scenario: Scenario) -> MetricValue | None:
    for key, metric in TOKEN_KEYS.get(scenario, {}).items():
        if values.has(key):
            return MetricValue(metric=metric, value=values.number(key), key=key)
    return _metric(values, scenario)


def _early_stopping(values: LoggedValues) -> EarlyStopping:
    texts = ("early_stopping_result", "early_stopping_ttft_result", "early_stopping_tpot_result")
    said = [values.text(key).strip() for key in texts if values.has(key)]
    if not said:
        raise LogError(f"the detail log has none of the keys {', '.join(texts)}: the run ended early")
    return EarlyStopping(
        is_met=values.flag("early_stopping_met"),
        text="; ".join(filter(None, said)),
        p90_estimate_ns=values.integer_or_none("early_stopping_latency_ss"),
        p99_estimate_ns=values.integer_or_none("early_stopping_latency_ms"),
    )


def _metric(values: LoggedValues, scenario: Scenario) -> MetricValue | None:
    """Return the scenario's figure; None where a stream run was too short for an early-stopping estimate.

    With token latencies the estimates of SingleStream are those of the first token, so the official checkers take the
    percentile itself.
    """
    if scenario is Scenario.SINGLE_STREAM and values.has("requested_use_token_latencies"):
        key = "result_90.00_percentile_latency_ns"
        return MetricValue(metric=PLAIN_LATENCY_METRIC, value=values.number(key) / 1e6, key=key)
    key = FIGURE_KEYS[scenario]
    if scenario.is_stream and not (values.has(key) and values.integer(key) > 0):
        return None
    divisor = 1e6 if scenario.is_stream else 1.0
    return MetricValue(metric=METRIC_OF_SCENARIO[scenario], value=values.number(key) / divisor, key=key)


def _invalid_reasons(values: LoggedValues, given: Sequence[str], errors: Sequence[str]) -> tuple[str, ...]:
    reasons = [text for key, text in _CHECKS if values.has(key) and not values.flag(key)]
    reasons += [*given]
    reasons += [f"LoadGen error: {text}" for text in errors]
    return tuple(reason for reason in dict.fromkeys(reasons) if reason)


def _effective(values: LoggedValues) -> EffectiveSettings:
    return EffectiveSettings(
        min_duration_ms=values.integer("effective_min_duration_ms"),
        min_query_count=values.integer("effective_min_query_count"),
        samples_per_query=values.integer("effective_samples_per_query"),
        target_qps=values.number("effective_target_qps"),
        target_latency_ns=values.integer("effective_target_latency_ns"),
        performance_sample_count=values.integer("effective_performance_sample_count"),
        accuracy_sample_count=values.integer_or_none("effective_accuracy_sample_count")
        or values.integer("qsl_reported_total_count"),  # LoadGen 4.1 has no key of its own for it
    )


def _scenario_and_mode(values: LoggedValues) -> tuple[Scenario, Mode]:
    mode_text = values.text("effective_test_mode")
    if mode_text not in _MODES:
        raise LogError(
            f"test mode {mode_text!r} of the detail log is not supported here. Supported: {', '.join(_MODES)}"
        )
    try:
        return parse_scenario(values.text("effective_scenario")), _MODES[mode_text]
    except UnknownName as error:
        raise LogError(f"the detail log's effective_scenario: {error}") from error


def parse_detail_log(text: str) -> LoadGenLog:
    """Return what a whole detail log says; raises LogError when it is damaged or ends before the result."""
    return log_of(DetailLog(text))


def log_of(detail: DetailLog) -> LoadGenLog:
    """Return what a whole detail log says; raises LogError where it is damaged or ends before the result."""
    values = detail.values
    scenario, mode = _scenario_and_mode(values)
    is_performance = mode is Mode.PERFORMANCE
    errors = tuple(detail.errors)
    error_count = max(len(errors), values.integer_or_none("num_errors") or 0)
    is_accepted = values.text("result_validity") == "VALID" if is_performance else True
    log = LoadGenLog(
        loadgen_version=values.text("loadgen_version"),
        scenario=scenario,
        mode=mode,
        is_valid=is_accepted and error_count == 0,
        invalid_reasons=_invalid_reasons(values, detail.invalid_reasons, errors),
        errors=errors,
        error_count=error_count,
        warnings=tuple(detail.warnings),
        metric=_metric(values, scenario) if is_performance else None,
        published=_published(values, scenario) if is_performance else None,
        tokens=_tokens(values, scenario) if is_performance else None,
        latencies=_spread(values, *latency_keys(scenario)) if is_performance else None,
        early_stopping=_early_stopping(values) if is_performance else None,
        is_min_duration_met=values.flag("result_min_duration_met") if is_performance else None,
        is_min_query_count_met=values.flag("result_min_queries_met") if is_performance else None,
        query_count=values.integer_or_none("result_query_count"),
        generated_query_count=values.integer("generated_query_count"),
        generated_samples_per_query=values.integer("generated_samples_per_query"),
        qsl_total_count=values.integer("qsl_reported_total_count"),
        duration_s=_duration_s(values),
        started=_moment(values, "power_begin").strftime("%Y-%m-%dT%H:%M:%S"),
        began_local_s=(_moment(values, "power_begin") - datetime(1970, 1, 1)).total_seconds(),
        seeds=Seeds(
            qsl=values.integer("effective_qsl_rng_seed"),
            sample_index=values.integer("effective_sample_index_rng_seed"),
            schedule=values.integer("effective_schedule_rng_seed"),
        ),
        effective=_effective(values),
        settings=values.beginning("requested_", "effective_"),
        lines={key: event.line for key, event in detail.last.items()},
    )
    is_failed = log.tokens is not None and any(_TOKEN_ERROR in error for error in errors)
    return _of_answers(log) if is_failed else log


def _of_answers(log: LoadGenLog) -> LoadGenLog:
    """Return a log of failed requests without the latencies that they are counted in; rates count answers only."""
    tokens, stopping = log.tokens, log.early_stopping
    is_rate = log.metric is not None and log.metric.metric.higher_is_better
    return replace(
        log,
        metric=log.metric if is_rate else None,
        published=log.published if is_rate else None,
        tokens=None if tokens is None else replace(tokens, ttft=None, tpot=None),
        latencies=None,
        early_stopping=None if stopping is None else replace(stopping, p90_estimate_ns=None, p99_estimate_ns=None),
    )


def parse_summary_verdict(text: str) -> bool | None:
    """Return LoadGen's verdict in a summary text: True for VALID, False for INVALID, None where it gives none."""
    return next((line.value == "VALID" for line in summary_lines(text) if line.name == "Result is"), None)


def read_detail_log(path: Path) -> DetailLog:
    """Return a detail log, whatever is in it; raises LogError where it cannot be read."""
    return DetailLog(_read(path))


def read_run_logs(paths: RunPaths) -> LoadGenLog:
    """Return what the logs in `paths.folder` say; raises LogError for a missing, damaged or contradicting log."""
    return checked_by_summary(paths, log_of(read_detail_log(paths.detail_log)), _read(paths.summary_log))


def checked_by_summary(paths: RunPaths, detail: LoadGenLog, summary_text: str) -> LoadGenLog:
    """Return what a detail log says where the summary agrees; raises LogError, which calls them as `paths` does."""
    verdict = parse_summary_verdict(summary_text)
    if detail.mode is Mode.PERFORMANCE and verdict is None:
        raise LogError(f"{paths.summary_log} has no line 'Result is': the run ended early")
    is_contradiction = (verdict is True and not detail.is_valid and detail.error_count == 0) or (
        verdict is False and detail.is_valid
    )
    if is_contradiction:
        raise LogError(f"{paths.summary_log} and {paths.detail_log.name} disagree on VALID: they are not of one run")
    return detail


def _read(path: Path) -> str:
    try:
        return given_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        why = (
            f"{error.strerror} (did the run start at all?)" if isinstance(error, FileNotFoundError) else error.strerror
        )
        raise LogError(f"cannot read LoadGen's log {path}: {why}") from error
    except UnicodeDecodeError as error:
        raise LogError(f"{path} is not UTF-8 text (byte {error.start}): damaged on disk or by a copy") from error
