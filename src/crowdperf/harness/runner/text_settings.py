"""Decides the settings of a run whose answers are texts: as for any other run, with LoadGen's limits for the first
token and the tokens after it. Pure.

A benchmark of MLPerf has its limits, and whether it is measured by tokens, in LoadGen's own configuration. For any
other they are written into user.conf. Times in ms. Source: loadgen/test_settings_internal.cc and mlperf.conf of LoadGen
6.0.17.
"""

from dataclasses import replace

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.settings import Circumstances, Origin, Setting, Settings, Shape, WarmUp, resolve
from crowdperf.kit.records import Problem
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, ExecutionMode, Scenario
from crowdperf.rules.record import Generation, TokenLimits

_PART_OF_TRACE = 0.9
"""LoadGen's rate for a trace, so that 1.1 times as many samples are fewer than the trace has."""
LATENCY_MARGIN = 1.6
"""LoadGen makes as many queries as last twice the duration at the expected latency, and all of them are issued if
every sample must be issued equally often. With a longer latency by this factor a run is a quarter longer than its
minimum, not twice."""
_WAVES = 2
"""Requests of a run with a given number in flight, times that number: with fewer it would never be reached, or only at
the start. This project's choice."""


def limits_of(config: RunConfig, generation: Generation) -> TokenLimits | None:
    """Return the limits of the scenario, or None if it has none."""
    limits = {Scenario.SERVER: generation.server, Scenario.INTERACTIVE: generation.interactive}
    return limits.get(config.scenario) if generation.has_token_latencies else None


def _refuse(config: RunConfig, generation: Generation) -> None:
    problems = []
    if config.scenario.is_server and generation.has_token_latencies and config.target_latency_ms is not None:
        allowed = "null: the limits are those of the first token and of the tokens after it"
        problems.append(Problem("target_latency_ms", f"{config.target_latency_ms:g}", allowed))
    for key, value in (("batch_size", config.batch_size), ("instances", config.instances)):
        if value is not None:
            allowed = "null: the engine works on as many requests at once as it can (text.max_in_flight bounds them)"
            problems.append(Problem(key, str(value), allowed))
    if config.preprocessed_path is not None:
        problems.append(Problem("preprocessed_path", str(config.preprocessed_path), "null: prompts are not stored"))
    if problems:
        raise ConfigError("the run", problems)


def _rule_lines(limits: TokenLimits | None, circumstances: Circumstances) -> dict[str, float]:
    if circumstances.rules.is_official:
        return {}
    lines: dict[str, float] = {"use_token_latencies": 1}
    if limits is not None:
        lines |= {"target_latency": 0, "ttft_latency": limits.ttft_ms, "tpot_latency": limits.tpot_ms}
        lines["target_latency_percentile"] = limits.percentile
    return lines


def issued_once(config: RunConfig, requests: int, duration_s: float) -> RunConfig:
    """Return the request of a run in which LoadGen issues each request once, all at once (Offline), so that the client
    can send each at its time in a trace, or after the answer before it in a conversation. duration_s: of the trace.
    Raises ConfigError for settings that this decides.

    LoadGen 6.0.17 has no arrivals but its own. Offline has max(min_query_count, 1.1 x duration x rate) samples, here
    the first of them, and the run lasts at least as long as the trace.
    """
    why = "each request of a trace, or turn of conversations, is issued once"
    problems = []
    if config.scenario is not Scenario.OFFLINE:
        problems.append(Problem("scenario", config.scenario.value, f"Offline: {why}"))
    for key in ("min_duration_ms", "min_query_count", "target_qps", "performance_sample_count"):
        if getattr(config, key) is not None:
            problems.append(
                Problem(
                    key,
                    f"{getattr(config, key):g}",
                    f"null: {why}",
                )
            )
    if problems:
        raise ConfigError("the run", problems)
    duration_s = max(duration_s, 0.001)
    rate = _PART_OF_TRACE * requests / duration_s
    return replace(
        config, min_duration_ms=max(1, int(duration_s * 1000)), min_query_count=requests, target_qps=rate
    )  # fmt: skip


def resolve_text(
    config: RunConfig, generation: Generation, threads: int, circumstances: Circumstances, measured: WarmUp
) -> Settings:
    """Return every setting with its origin. Raises ConfigError for settings that a run of texts does not support, or
    as `resolve`."""
    _refuse(config, generation)
    shape = Shape(
        batch_size=Setting(1, Origin.DEFAULT),
        instances=Setting(1, Origin.DEFAULT),
        threads=Setting(threads, Origin.DEFAULT if config.threads is None else Origin.USER),
        is_spinning=False,
        wait_s=0.0,
    )
    latency_ms = measured.query_latency_ms or 0.0
    if config.scenario is Scenario.MULTI_STREAM:
        latency_ms *= MULTI_STREAM_SAMPLES_PER_QUERY / 2
    if config.scenario.is_stream and config.execution_mode is not ExecutionMode.TEST:
        latency_ms *= LATENCY_MARGIN
    settings = resolve(config, shape, circumstances, replace(measured, query_latency_ms=latency_ms))
    in_flight = None if config.text is None else config.text.max_in_flight
    if config.scenario is Scenario.OFFLINE and circumstances.rules.recipes.is_own and in_flight is not None:
        wanted = Setting(_WAVES * in_flight, Origin.RULE)
        if settings.min_query_count.origin is not Origin.USER and settings.min_query_count.value < wanted.value:
            settings = replace(settings, min_query_count=wanted)
    if not generation.has_token_latencies:
        return settings
    return replace(
        settings,
        target_latency_ms=None if config.scenario.is_server else settings.target_latency_ms,
        rule_lines=_rule_lines(limits_of(config, generation), circumstances),
    )
