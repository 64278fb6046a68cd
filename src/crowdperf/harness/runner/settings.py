"""Decides every setting of a run and remembers the origin of each value. Pure: measurements are arguments.

Order of authority: run.json, the user's own user.conf, the rules of the model and scenario, the warm-up estimate, a
default.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.user_conf import MEASURED_KEYS
from crowdperf.kit.records import Problem
from crowdperf.logs.rates import CHOSEN_ORIGIN, KEPT_ORIGIN
from crowdperf.rules.compliance import SERVER_RATE_PARTS
from crowdperf.rules.names import ExecutionMode, Mode, Scenario
from crowdperf.rules.query_counts import LONGEST_TEST_S, fewest_queries
from crowdperf.rules.record import Record

OFFLINE_RATE_MARGIN = {ExecutionMode.TEST: 2.0, ExecutionMode.FAST: 1.25, ExecutionMode.VALID: 1.25}
"""LoadGen makes 1.1 x duration x rate samples, and the run is INVALID when they last too short a time. The warm-up
rate may be too low on a busy machine, so more than its fastest slice is requested. A run is then up to 38 % longer
than its minimum, and a test run of seconds up to twice as long, because other work disturbs a short run more."""

SUSTAINED_RATE_MARGIN = 3.0
"""At most so many times the rate over all slices is requested. On a busy machine the fastest slice of 50 ms had a core
to itself, the run will not: runs of 2 s became 13 to 28 s long (2 cores, seven programs, 2026-11-29). A run is
too short where the machine becomes three times as fast after the warm-up."""

SERVER_LOAD = 0.05
"""Part of the measured one-at-a-time rate that a Server run is sent when no rate is given: a low, safe rate, not the
peak. A default run should stay VALID while other programs use the machine. For the peak, search it with `--find` and
give the result as target_qps."""

SLOW_NETWORK_MS = 5.0
SLOW_SERVER_LOAD = 0.4
"""The same for networks that take longer than SLOW_NETWORK_MS: what other programs do to the machine for some
milliseconds matters less to them, and 100 queries at a twentieth of their rate would take minutes."""

LOADGEN_OVERHEAD_MS = {
    Scenario.SINGLE_STREAM: 0.002, Scenario.MULTI_STREAM: 0.004, Scenario.SERVER: 0.01, Scenario.OFFLINE: 0.0001
}  # fmt: skip
"""The overhead of LoadGen and its Python interface per query, per sample in Offline: in the streams the minimum
measured with 6.0.17 (an expected latency must not be too high, or LoadGen runs out of queries), in Server a generous
value (a thread is woken for each query), in Offline two thirds of the CPU time of the issuing thread (a rate must not
be too low)."""

MIN_ANSWERS = 5
"""Samples of a short Offline run of the user's own model, or two of each slot of the batches if that is more, unless
they take longer than LONGEST_TEST_S: medians of one answer mean nothing. This project's choice."""

Value = TypeVar("Value", int, float)


class Origin(enum.Enum):
    """The origin of a value. A target or a shape is given by the user. Every other value of run.json may come from
    the user, from a default of the recipe that runs the harness, or from another recipe: then it is the request's."""

    USER = "user"
    REQUEST = "request"
    RULE = "rule"
    ESTIMATE = CHOSEN_ORIGIN
    COMPLIANCE = "compliance test"
    SEARCH = "find-performance"
    KEPT = KEPT_ORIGIN
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting(Generic[Value]):
    """A value and its origin."""

    value: Value
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the work is cut up. threads: CPU threads of one instance. is_spinning: waiting threads keep their cores
    busy. wait_s: how long a Server batch may wait to fill."""

    batch_size: Setting[int]
    instances: Setting[int]
    threads: Setting[int]
    is_spinning: bool
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of a run. None: the scenario has no such setting.

    target_latency_ms: the limit in Server, the expected latency in streams. user_lines: further user.conf values of the
    user. rule_lines: those that the benchmark's record requires. departures: user.conf's names of the settings that
    make the run measure something else than the rules require.
    """

    scenario: Scenario
    mode: Mode
    shape: Shape
    target_qps: Setting[float] | None
    target_latency_ms: Setting[float] | None
    min_duration_ms: Setting[int]
    min_query_count: Setting[int]
    performance_sample_count: Setting[int]
    user_lines: Mapping[str, float]
    departures: tuple[str, ...] = ()
    rule_lines: Mapping[str, float] = field(default_factory=dict)

    @property
    def conf_values(self) -> dict[str, float]:
        """The settings as LoadGen's user.conf keys."""
        values: dict[str, float] = {**self.rule_lines, **self.user_lines}
        values["min_duration"] = self.min_duration_ms.value
        values["min_query_count"] = self.min_query_count.value
        values["performance_sample_count_override"] = self.performance_sample_count.value
        if self.target_qps is not None:
            values["target_qps"] = self.target_qps.value
        if self.target_latency_ms is not None:
            values["target_latency"] = self.target_latency_ms.value
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The inputs of the decisions in addition to the request.

    user_lines: the user's user.conf for this model and scenario. dataset_count: validation samples. audit_values: the
    settings of a compliance test, None in an ordinary run.
    """

    rules: Record
    user_lines: Mapping[str, float]
    dataset_count: int
    audit_values: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """The measurements of a short run before the test, in one scenario.

    query_latency_ms: a fast query (10th percentile): one sample in SingleStream and Server, eight in MultiStream. None
    in Offline. samples_per_second: the fastest slice in Offline and Server. sustained_samples_per_second: all slices
    together. None in the streams, and the last one also of texts.
    """

    query_latency_ms: float | None
    samples_per_second: float | None
    sustained_samples_per_second: float | None = None


def _pick(given: Value | None, line: Value | None, otherwise: Setting[Value]) -> Setting[Value]:
    for value in (given, line):
        if value is not None:
            return Setting(value, Origin.USER)
    return otherwise


def _whole_line(lines: Mapping[str, float], key: str) -> int | None:
    return int(lines[key]) if key in lines else None


def _fewest_queries(config: RunConfig, rules: Record, shape: Shape) -> Setting[int]:
    if config.scenario is Scenario.OFFLINE:
        if config.execution_mode is ExecutionMode.VALID:
            return Setting(rules.offline_min_sample_count, Origin.RULE)
        at_once = shape.batch_size.value * shape.instances.value
        return Setting(max(MIN_ANSWERS, 2 * at_once) if rules.recipes.is_own else 1, Origin.RULE)
    origin = Origin.DEFAULT if config.scenario.is_server else Origin.RULE
    return Setting(fewest_queries(config.scenario, rules), origin)


def _target_qps(config: RunConfig, circumstances: Circumstances, warm_up: WarmUp) -> Setting[float] | None:
    if config.scenario.is_stream:
        return None
    given = config.target_qps if config.target_qps is not None else circumstances.user_lines.get("target_qps")
    if config.scenario is Scenario.OFFLINE:
        rate = offline_rate(warm_up.samples_per_second) * OFFLINE_RATE_MARGIN[config.execution_mode]
        if warm_up.sustained_samples_per_second is not None:
            rate = min(rate, offline_rate(warm_up.sustained_samples_per_second) * SUSTAINED_RATE_MARGIN)
    else:
        rate = server_rate(warm_up)
        if config.mode is Mode.ACCURACY:
            return Setting(_rounded(rate), Origin.ESTIMATE)  # pacing only; a low given rate would stretch it to hours
        rate *= SERVER_LOAD if (warm_up.query_latency_ms or 0.0) < SLOW_NETWORK_MS else SLOW_SERVER_LOAD
    wanted = _pick(given, None, Setting(_rounded(rate), Origin.ESTIMATE))
    part = SERVER_RATE_PARTS.get(config.compliance_test or "")
    if part is None or not config.scenario.is_server:
        return wanted
    return Setting(wanted.value * part, Origin.COMPLIANCE)


def offline_rate(measured: float | None) -> float:
    """Return the samples per second in Offline of work that was measured at a rate without LoadGen."""
    return 1.0 / (1.0 / measured + LOADGEN_OVERHEAD_MS[Scenario.OFFLINE] / 1000.0) if measured else 0.0


def server_rate(warm_up: WarmUp) -> float:
    """Return the queries per second that the system answers one at a time, or in batches if a query is so slow that
    the joint rate of several instances counts."""
    latency_ms = warm_up.query_latency_ms or 0.0
    alone = 1000.0 / (latency_ms + LOADGEN_OVERHEAD_MS[Scenario.SERVER])
    return alone if latency_ms < SLOW_NETWORK_MS else max(alone, warm_up.samples_per_second or 0.0)


def _queries_in_time(fewest: Setting[int], query_s: float) -> Setting[int]:
    """Return the minimum queries of a test run: `fewest`, or fewer if they would last too long."""
    in_time = max(1, int(LONGEST_TEST_S / query_s)) if query_s > 0 else fewest.value
    return fewest if in_time >= fewest.value else Setting(in_time, Origin.ESTIMATE)


def _min_query_count(
    config: RunConfig, rules: Record, warm_up: WarmUp, target_qps: Setting[float] | None, shape: Shape
) -> Setting[int]:
    fewest = _fewest_queries(config, rules, shape)
    if config.scenario is Scenario.OFFLINE and config.execution_mode is not ExecutionMode.VALID:
        rate = warm_up.samples_per_second
        return _queries_in_time(fewest, 1.0 / rate if rate else 0.0)
    if config.execution_mode is not ExecutionMode.TEST:
        return fewest
    if target_qps is not None:
        return _queries_in_time(fewest, 1.0 / target_qps.value)
    return _queries_in_time(fewest, (warm_up.query_latency_ms or 0.0) / 1000.0)


def _target_latency_ms(config: RunConfig, circumstances: Circumstances, warm_up: WarmUp) -> Setting[float] | None:
    if config.scenario is Scenario.OFFLINE:
        return None
    line = circumstances.user_lines.get("target_latency")
    if config.scenario.is_server:
        limit_ms = circumstances.rules.server_target_latency_ms
        given_ms = line if config.target_latency_ms is None else config.target_latency_ms
        if limit_ms is None or given_ms is not None:
            return None if given_ms is None else Setting(given_ms, Origin.USER)
        return Setting(limit_ms, Origin.RULE)
    expected = (warm_up.query_latency_ms or 0.0) + LOADGEN_OVERHEAD_MS[config.scenario]
    return _pick(config.target_latency_ms, line, Setting(_rounded(expected), Origin.ESTIMATE))


def _exceeds_limit(config: RunConfig, rules: Record, target_latency_ms: Setting[float] | None) -> bool:
    """Return whether a Server run allows more time than the rules of an MLPerf model."""
    limit_ms = rules.server_target_latency_ms
    if not config.scenario.is_server or not rules.is_official or target_latency_ms is None or limit_ms is None:
        return False
    return target_latency_ms.value > limit_ms


def _departures(
    config: RunConfig, circumstances: Circumstances, target_latency_ms: Setting[float] | None
) -> tuple[str, ...]:
    found = [key for key in circumstances.user_lines if key in MEASURED_KEYS]
    if _exceeds_limit(config, circumstances.rules, target_latency_ms):
        found.append("target_latency")
    return tuple(sorted(found))


def _require_limits(
    config: RunConfig,
    circumstances: Circumstances,
    target_latency_ms: Setting[float] | None,
    shortest: tuple[int, int],
) -> None:
    """Raise ConfigError for a Server limit that LoadGen would cut off, and in a run of the full rules for a longer one
    and for an end before the shortest duration in ms or the fewest queries (`shortest`)."""
    problems = []
    is_server = config.scenario.is_server
    if is_server and target_latency_ms is not None and target_latency_ms.value % 1:
        allowed = "whole milliseconds in Server: LoadGen 6.0.17 drops the fraction"
        problems.append(Problem("target_latency_ms", f"{target_latency_ms.value:g}", allowed))
    if config.execution_mode is ExecutionMode.VALID:
        if _exceeds_limit(config, circumstances.rules, target_latency_ms) and target_latency_ms is not None:
            allowed = (
                f"at most {circumstances.rules.server_target_latency_ms:g} (the rules' limit), or mode test or fast"
            )
            problems.append(Problem("target_latency_ms", f"{target_latency_ms.value:g}", allowed))
        for key, least in zip(("max_duration", "max_query_count"), shortest, strict=True):
            if 0 < circumstances.user_lines.get(key, 0.0) < least:
                found = f"{circumstances.user_lines[key]:g}"
                problems.append(Problem(key, found, f"at least {least}: the run would end too early to count"))
    if problems:
        raise ConfigError("the run", problems)


def _audited(audit_values: Mapping[str, int] | None, key: str, otherwise: Setting[int]) -> Setting[int]:
    """Return the settings of the compliance test, which override all others in LoadGen."""
    is_set = audit_values is not None and key in audit_values
    return Setting(audit_values[key], Origin.COMPLIANCE) if is_set and audit_values is not None else otherwise


def _rounded(value: float) -> float:
    """Return `value` with four digits: an estimate is not more exact, and people read it."""
    return float(f"{value:.4g}")


def resolve(config: RunConfig, shape: Shape, circumstances: Circumstances, warm_up: WarmUp) -> Settings:
    """Return every setting with its origin. Raises ConfigError for a performance sample count the data set cannot
    give."""
    lines = circumstances.user_lines
    rules, count = circumstances.rules, circumstances.dataset_count
    samples = _pick(
        config.performance_sample_count,
        _whole_line(lines, "performance_sample_count_override"),
        Setting(min(rules.performance_sample_count or count, count), Origin.RULE),
    )
    if not 1 <= samples.value <= circumstances.dataset_count:
        allowed = f"1 to {circumstances.dataset_count}, the samples of the data set"
        raise ConfigError("the run", [Problem("performance_sample_count", str(samples.value), allowed)])
    duration = Setting(config.execution_mode.min_duration_ms, Origin.RULE)
    target_qps = _target_qps(config, circumstances, warm_up)
    queries = _min_query_count(config, rules, warm_up, target_qps, shape)
    min_duration_ms = _pick(config.min_duration_ms, _whole_line(lines, "min_duration"), duration)
    min_query_count = _pick(config.min_query_count, _whole_line(lines, "min_query_count"), queries)
    target_latency_ms = _target_latency_ms(config, circumstances, warm_up)
    _require_limits(config, circumstances, target_latency_ms, (min_duration_ms.value, min_query_count.value))
    audit_values = circumstances.audit_values
    managed = {"min_duration", "min_query_count", "performance_sample_count_override", "target_qps", "target_latency"}
    return Settings(
        scenario=config.scenario,
        mode=config.mode,
        shape=shape,
        target_qps=target_qps,
        target_latency_ms=target_latency_ms,
        min_duration_ms=_audited(audit_values, "min_duration", min_duration_ms),
        min_query_count=_audited(audit_values, "min_query_count", min_query_count),
        performance_sample_count=samples,
        user_lines={key: value for key, value in lines.items() if key not in managed},
        departures=_departures(config, circumstances, target_latency_ms),
    )
