"""The memory that LoadGen uses for the queries it generates before a run."""

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.runner.settings import Settings
from crowdperf.kit.records import Problem
from crowdperf.rules.names import Mode, Scenario

_MEMORY_PER_QUERY_BYTES = 450
_MEMORY_PER_SAMPLE_BYTES = {
    Scenario.SINGLE_STREAM: 25, Scenario.MULTI_STREAM: 25, Scenario.SERVER: 25, Scenario.OFFLINE: 400
}  # fmt: skip
"""Peak growth of a process per generated query and sample, measured with LoadGen 6.0.17 and a fast SUT, rounded
up."""


def expected_memory_bytes(settings: Settings) -> int:
    """Return an estimate of the memory that LoadGen uses for the queries it generates before a performance run, 0 in
    accuracy mode."""
    if settings.mode is Mode.ACCURACY:
        return 0
    seconds = settings.min_duration_ms.value / 1000.0
    samples_per_query = 8 if settings.scenario is Scenario.MULTI_STREAM else 1
    if settings.scenario.is_stream and settings.target_latency_ms is not None:
        queries = max(settings.min_query_count.value, 2.0 * seconds * 1000.0 / settings.target_latency_ms.value)
    else:
        rate = settings.target_qps.value if settings.target_qps is not None else 0.0
        queries = max(settings.min_query_count.value, 1.1 * seconds * rate)
    per_query = 0 if settings.scenario is Scenario.OFFLINE else _MEMORY_PER_QUERY_BYTES
    per_sample = _MEMORY_PER_SAMPLE_BYTES[settings.scenario.issued_as]
    return int(queries * (per_query + samples_per_query * per_sample))


def require_memory(settings: Settings, available_bytes: int | None) -> None:
    """Raise ConfigError when LoadGen would need more memory than is available. None: unknown, so there is no check."""
    needed = expected_memory_bytes(settings)
    if available_bytes is None or needed <= available_bytes:
        return
    found = f"{settings.min_duration_ms.value} ms ({settings.min_duration_ms.origin.value})"
    most_ms = int(settings.min_duration_ms.value * available_bytes / needed)
    allowed = (
        f"at most about {most_ms} ms at this speed: LoadGen generates all queries of a run before it starts, "
        f"here about {needed / 1e9:.0f} GB of them, and {available_bytes / 1e9:.0f} GB can be used"
    )
    hint = "use a shorter run, a lower rate (batch_size 1, threads 1), or a machine with more memory"
    raise ConfigError("the run", [Problem("min_duration_ms", found, allowed)], hint)
