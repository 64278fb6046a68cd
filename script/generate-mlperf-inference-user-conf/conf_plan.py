"""The settings of runs that are still to be made, each with its origin, and how long the runs will take. Pure.

Order of authority: what the user gives, what was found on this system (find-performance has put its margin into it
already), the rules. A target that none of them gives is left to the harness, which measures it before the run.

The durations follow LoadGen: Offline makes 1.1 x duration x rate samples, and at least the minimum of the rules; the
other scenarios go on until both the shortest duration and the fewest queries are reached.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdperf.rules import query_counts
from crowdperf.rules.benchmarks import BENCHMARKS, Benchmark
from crowdperf.rules.names import ExecutionMode, Mode, Scenario, duration_text

MIN_QUERY_COUNT = {
    **{scenario: (count, "rule") for scenario, count in query_counts.MIN_QUERY_COUNT.items()},
    Scenario.SERVER: (
        query_counts.SERVER_QUERY_COUNT,
        "this project's choice: early stopping then allows one late query, the rule is 100",
    ),
}
"""The fewest queries that the harness asks for, with the origin."""

OFFLINE_SLACK = 1.1
"""LoadGen makes so many times the samples that the planned rate needs (LoadGen 6.0.17)."""


@dataclass(frozen=True, slots=True)
class Value:
    """A setting and the words that say where it comes from."""

    value: float
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the user gives for one scenario; None where nothing."""

    target: float | None = None
    min_duration_ms: int | None = None
    min_query_count: int | None = None
    performance_sample_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One scenario: its settings by LoadGen's key, whose target may be missing, and what is known of its speed.

    `measured`: the latency in ms or rate per second that was seen here. `dataset_count`: samples of the validation set;
    None for a model that the rules do not know.
    """

    loadgen_name: str
    scenario: Scenario
    settings: Mapping[str, Value]
    measured: float | None
    dataset_count: int | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def target(self) -> Value | None:
        """The setting that tells the speed; None where the harness measures it."""
        return self.settings.get(self.scenario.target_key)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of user.conf, each with its origin as a comment."""
        where = f"{self.loadgen_name}.{self.scenario.issued_as.value}"
        return tuple(
            f"{where}.{key} = {setting.value:g}  # {setting.origin}"
            if key.startswith("target")
            else f"{where}.{key} = {int(setting.value)}  # {setting.origin}"
            for key, setting in sorted(self.settings.items())
        )


SAMPLES_RULE = "rule, of a smaller data set all samples"
"""The origin of a sample count: the size of the data set is known only when the run has opened it (`_tiny` ones are
small)."""


def plan_scenario(
    model: str,
    scenario: Scenario,
    execution_mode: ExecutionMode,
    given: Overrides,
    recorded: Mapping[str, Any] | None,
    unused_in: str = "",
) -> Planned:
    """The settings of one scenario; ``recorded`` is its entry in the configuration of the system, None without one.

    unused_in: the kind of runs that do not go by what is recorded ("test runs"); empty where they do.
    """
    kept, recorded = recorded, None if unused_in else recorded
    row = BENCHMARKS.get(model)
    settings: dict[str, Value] = {}
    rule = f"rule of {execution_mode.value} runs"
    settings["min_duration"] = _chosen(given.min_duration_ms, execution_mode.min_duration_ms, rule)
    fewest, origin = MIN_QUERY_COUNT.get(scenario.issued_as, (1, "rule"))
    if row is not None and scenario is Scenario.OFFLINE and execution_mode is ExecutionMode.VALID:
        fewest = row.record.offline_min_sample_count
    settings["min_query_count"] = _chosen(given.min_query_count, fewest, origin)
    samples = given.performance_sample_count
    if samples is None and row is not None:
        samples = row.record.performance_sample_count
    if samples is not None:
        origin = "you" if given.performance_sample_count is not None else SAMPLES_RULE
        settings["performance_sample_count_override"] = Value(samples, origin)
    target, notes, key = _target(scenario, given, recorded), [], scenario.target_key
    if target is not None:
        settings[key] = target
    else:
        why = f"no {key} is recorded or given"
        if kept and key in kept:
            why = f"a {key} of {float(kept[key]):g} is recorded, and {unused_in} do not use it"
        notes.append(f"{scenario.value}: {why}, so the harness measures it before the run")
    if scenario.is_server and row is not None and not _has_token_limits(row):
        if (limit_ms := row.record.server_target_latency_ms) is None:
            notes.append(f"{scenario.value}: no round has it for {model}, so that the rules have no target_latency")
        else:
            settings["target_latency"] = Value(limit_ms, "rule")
    measured = float(recorded.get("measured") or recorded[key]) if recorded else None
    return Planned(
        loadgen_name=row.record.loadgen_name_in(scenario) if row else model,
        scenario=scenario,
        settings=settings,
        measured=measured,
        dataset_count=row.record.dataset_count if row else None,
        notes=tuple(notes),
    )


def _has_token_limits(row: Benchmark) -> bool:
    """Whether LoadGen limits the first token and those after it, and not the whole answer."""
    return row.record.generation is not None and row.record.generation.has_token_latencies


def _chosen(given: int | None, otherwise: int, rule: str) -> Value:
    return Value(otherwise, rule) if given is None else Value(given, "you")


def _target(scenario: Scenario, given: Overrides, recorded: Mapping[str, Any] | None) -> Value | None:
    if given.target is not None:
        return Value(given.target, "you")
    if not recorded:
        return None
    return Value(float(recorded[scenario.target_key]), str(recorded.get("origin") or "recorded"))


def expected_s(planned: Planned, mode: Mode) -> tuple[float, bool]:
    """About how long LoadGen takes, in seconds; False where it may take longer, because the speed is not known."""
    speed = planned.measured or (planned.target.value if planned.target else None)
    is_stream = planned.scenario.is_stream
    if mode is Mode.ACCURACY:
        if planned.scenario.is_server:
            speed = planned.measured  # the harness paces such a run by what it measures, not by the target
        if speed is None or planned.dataset_count is None:
            return 0.0, False
        samples_per_query = 8 if planned.scenario is Scenario.MULTI_STREAM else 1
        queries = planned.dataset_count / samples_per_query
        return (queries * speed / 1000.0, True) if is_stream else (planned.dataset_count / speed, True)
    shortest_s = planned.settings["min_duration"].value / 1000.0
    fewest = planned.settings["min_query_count"].value
    if speed is None:
        return shortest_s, False
    if is_stream:
        return max(shortest_s, fewest * speed / 1000.0), True
    if planned.scenario.is_server:
        rate = planned.target.value if planned.target else speed
        return max(shortest_s, fewest / rate), True
    rate = planned.target.value if planned.target else speed
    return max(OFFLINE_SLACK * shortest_s * rate / speed, fewest / speed), True


def duration_line(planned: Planned, mode: Mode) -> str:
    """What a user is told of the length of one run."""
    seconds, is_known = expected_s(planned, mode)
    what = f"{planned.scenario.value} {mode.value}"
    if mode is Mode.ACCURACY and not is_known:
        return f"{what}: every sample once, duration unknown"
    return f"{what}: {'about' if is_known else 'at least'} {duration_text(seconds)}"
