"""Compares every setting that a run gave LoadGen with the effective one in LoadGen's detail log.

LoadGen silently ignores a line it does not understand, drops fractions, and gives an audit.config priority over
everything else. So each value is looked up in the log after the run. Names and units of the log's keys: logs of LoadGen
4.1.30 to 6.0.17.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.settings import Settings
from crowdperf.logs.run_log import Json
from crowdperf.rules.names import Mode, Scenario

_ALL = tuple(scenario for scenario in Scenario if scenario.issued_as is scenario)
_SINGLE, _MULTI, _OFFLINE, _SERVER = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER
_LOG_DIGITS = 1e-5
"""LoadGen writes a number with six digits."""

_MODES = {Mode.PERFORMANCE: "PerformanceOnly", Mode.ACCURACY: "AccuracyOnly"}


@dataclass(frozen=True, slots=True)
class _Check:
    """The place of a key of user.conf or audit.config in the log. `factor` converts the written value to the log's
    unit. is_least: LoadGen may have used more (it rounds counts up to whole passes over the samples)."""

    key: str
    log_key: str
    scenarios: tuple[Scenario, ...] = _ALL
    factor: float = 1
    is_least: bool = False


_CHECKS = (
    _Check("min_duration", "effective_min_duration_ms"),
    _Check("max_duration", "effective_max_duration_ms"),
    _Check("min_query_count", "requested_min_query_count"),
    _Check("min_query_count", "effective_min_query_count", (_SINGLE, _MULTI, _SERVER), is_least=True),
    _Check("min_query_count", "effective_min_sample_count", (_OFFLINE,), is_least=True),
    _Check("max_query_count", "effective_max_query_count"),
    _Check("performance_sample_count_override", "effective_performance_sample_count"),
    _Check("target_qps", "effective_target_qps", (_OFFLINE, _SERVER)),
    _Check("target_latency", "effective_target_latency_ns", (_SERVER,), 1e6),
    _Check("target_latency", "requested_single_stream_expected_latency_ns", (_SINGLE,), 1e6),
    _Check("target_latency", "requested_multi_stream_expected_latency_ns", (_MULTI,), 1e6),
    _Check("target_latency_percentile", "effective_target_latency_percentile", (_SINGLE, _MULTI, _SERVER), 0.01),
    _Check("use_token_latencies", "requested_use_token_latencies"),
    _Check("ttft_latency", "requested_server_ttft_latency", (_SERVER,), 1e6),
    _Check("tpot_latency", "requested_server_tpot_latency", (_SERVER,), 1e6),
    _Check("coalesce_queries", "requested_server_coalesce_queries", (_SERVER,)),
    _Check("max_async_queries", "effective_max_async_queries", (_SERVER,)),
    _Check("sample_concatenate_permutation", "effective_sample_concatenate_permutation"),
    _Check("performance_issue_unique", "effective_performance_issue_unique"),
    _Check("performance_issue_same", "effective_performance_issue_same"),
    _Check("performance_issue_same_index", "effective_performance_issue_same_index"),
    _Check("accuracy_log_rng_seed", "effective_accuracy_log_rng_seed"),
    _Check("accuracy_log_probability", "effective_accuracy_log_probability"),
    _Check("accuracy_log_sampling_target", "effective_accuracy_log_sampling_target"),
    _Check("qsl_rng_seed", "effective_qsl_rng_seed"),
    _Check("sample_index_rng_seed", "effective_sample_index_rng_seed"),
    _Check("schedule_rng_seed", "effective_schedule_rng_seed"),
)

_UNTOUCHED: Mapping[str, float] = {
    "max_duration": 0, "max_query_count": 0, "coalesce_queries": 0, "max_async_queries": 0,
    "performance_issue_unique": 0, "performance_issue_same": 0, "performance_issue_same_index": 0,
    "accuracy_log_rng_seed": 0, "accuracy_log_probability": 0, "accuracy_log_sampling_target": 0,
}  # fmt: skip
"""LoadGen's expected value for a key that the run did not set."""

_PERCENTILES: Mapping[Scenario, float] = {_SINGLE: 90, _MULTI: 99, _SERVER: 99}
"""Of the rules, for each scenario with a latency (LoadGen's embedded mlperf.conf, 6.0.17)."""


def _expected(settings: Settings, audit_values: Mapping[str, int] | None) -> dict[str, float]:
    """Return the value that each key must have had, those of a compliance test above all."""
    percentile = _PERCENTILES.get(settings.scenario.issued_as)
    rules = {} if percentile is None else {"target_latency_percentile": percentile}
    return {**_UNTOUCHED, **rules, **settings.conf_values, **(audit_values or {})}


def _is_met(check: _Check, given: float, found: Json) -> bool:
    if not isinstance(found, int | float):
        return False
    wanted = given * check.factor
    is_close = found == wanted if isinstance(wanted, int) else math.isclose(found, wanted, rel_tol=_LOG_DIGITS)
    return is_close or (check.is_least and found > wanted)


def _differences(settings: Settings, given: Mapping[str, float], logged: Mapping[str, Json]) -> Iterator[str]:
    scenario = settings.scenario.issued_as
    for key, wanted in (("scenario", scenario.value), ("test_mode", _MODES[settings.mode])):
        found = logged.get(f"effective_{key}")
        if found != wanted:
            yield f"{key} {wanted} became {found}"
    for check in _CHECKS:
        if check.key not in given or scenario not in check.scenarios:
            continue
        if check.log_key not in logged:
            yield f"{check.key} {given[check.key]:.10g} is not in the log as {check.log_key}"
        elif not _is_met(check, given[check.key], logged[check.log_key]):
            yield f"{check.key} {given[check.key]:.10g} became {logged[check.log_key]} ({check.log_key})"


def require_same_settings(
    settings: Settings, audit_values: Mapping[str, int] | None, logged: Mapping[str, Json]
) -> None:
    """Raise HarnessError if LoadGen used other settings than the given ones.

    audit_values: the settings of a compliance test, None in an ordinary run. logged: the settings in LoadGen's log.
    """
    wrong = list(_differences(settings, _expected(settings, audit_values), logged))
    if wrong:
        message = f"LoadGen did not apply its settings: {'; '.join(wrong)}"
        raise HarnessError(message, "check user.conf and the detail log. The results of this run are meaningless")
