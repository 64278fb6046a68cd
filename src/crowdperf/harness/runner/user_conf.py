"""The keys that a user may set in LoadGen's `user.conf`, and the file that LoadGen gets.

LoadGen silently ignores a line without spaces around `=` and a key it does not know. So every problem in a user's file
is reported, and LoadGen's file is written by `render`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crowdperf.harness.base.errors import ConfigError
from crowdperf.kit.records import Problem
from crowdperf.logs.user_conf import ConfRow, conf_rows
from crowdperf.rules.names import Scenario

KEYS = ("max_duration", "max_query_count", "min_duration", "min_query_count", "performance_sample_count_override",
        "target_latency", "target_qps")  # fmt: skip
"""The keys a user may set in any run (times in ms): how long a run is, how it is paced, and Server's limit."""

MEASURED_KEYS: Mapping[str, str] = {
    "max_async_queries": "it ends a Server run while queries wait",
    "sample_concatenate_permutation": "it changes how samples are drawn, and the rules fix it for each model",
    "target_latency_percentile": "it changes how many queries may be late, and the rules fix it for each scenario",
}
"""The keys that change the measurement, with the reason: only for runs that are not MLPerf results. LoadGen expects
the percentile in percent (99)."""

_FIXED_KEYS: Mapping[str, str] = {
    "coalesce_queries": "Server's queries have one sample each, and it would join them",
    "performance_issue_same": "compliance test TEST04 sets it: give --compliance_test",
    "performance_issue_same_index": "compliance test TEST04 sets it: give --compliance_test",
    "performance_issue_unique": "compliance tests set it: give --compliance_test",
    "accuracy_log_rng_seed": "compliance tests set it: give --compliance_test",
    "accuracy_log_probability": "compliance tests set it: give --compliance_test",
    "accuracy_log_sampling_target": "compliance tests set it: give --compliance_test",
    "qsl_rng_seed": "the seeds are those of the round, inside LoadGen, which ignores this line",
    "sample_index_rng_seed": "the seeds are those of the round, inside LoadGen, which ignores this line",
    "schedule_rng_seed": "the seeds are those of the round, inside LoadGen, which ignores this line",
    "samples_per_query": "the rules fix it: 8 in MultiStream, 1 in SingleStream and Server",
    "accuracy_sample_count_override": "an accuracy run answers the whole data set",
    "mode": "set by the run's mode",
}
"""Keys of LoadGen that no user.conf may set here, with the reason."""

_OF_SCENARIOS: Mapping[str, tuple[Scenario, ...]] = {
    "max_async_queries": (Scenario.SERVER,),
    "target_latency_percentile": (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.SERVER),
}
"""Keys that LoadGen reads in some scenarios only."""

_SCENARIOS = ("*", *(scenario.value for scenario in Scenario if scenario.issued_as is scenario))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLine:
    """One setting, with its number."""

    row: ConfRow
    value: float


def parse(text: str, source: str) -> tuple[ConfLine, ...]:
    """Return the settings in order. Raises ConfigError with every problem. `source` is for the message."""
    lines: list[ConfLine] = []
    problems: list[Problem] = []
    for row in conf_rows(text):
        where, scenario, key = f"line {row.number}", row.scenario, row.key
        if not row.is_read:
            problems.append(Problem(where, repr(row.text), "model.scenario.key = number, with spaces around ="))
            continue
        if scenario not in _SCENARIOS:
            problems.append(Problem(f"{where}, scenario", repr(scenario), ", ".join(_SCENARIOS)))
        is_known = key in KEYS or key in MEASURED_KEYS
        if not is_known:
            reason = f" ({_FIXED_KEYS[key]})" if key in _FIXED_KEYS else ""
            problems.append(Problem(f"{where}, key", repr(key) + reason, ", ".join((*KEYS, *MEASURED_KEYS))))
        value = _number(row.value)
        if value is None:
            problems.append(Problem(f"{where}, value", repr(row.value), "a number from 0"))
        elif key == "target_latency_percentile" and not 1 < value <= 100:
            problems.append(Problem(f"{where}, value", f"{value:g}", "a percentage above 1, up to 100: 99 for p99"))
        elif scenario in _SCENARIOS and is_known:
            lines.append(ConfLine(row=row, value=value))
    if problems:
        raise ConfigError(source, problems)
    return tuple(lines)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def require_rules(lines: Sequence[ConfLine], source: str) -> None:
    """Raise ConfigError, with every problem, for lines that a run which counts for MLPerf may not have."""
    problems = [
        Problem(
            f"line {line.row.number}, key",
            f"{line.row.key!r} ({MEASURED_KEYS[line.row.key]})",
            f"{', '.join(KEYS)} in a run with execution_mode valid",
        )
        for line in lines
        if line.row.key in MEASURED_KEYS
    ]
    if problems:
        hint = "remove the lines, or use execution_mode test or fast, whose results are not MLPerf results"
        raise ConfigError(source, problems, hint)


def effective(lines: Sequence[ConfLine], model: str, scenario: Scenario) -> dict[str, float]:
    """Return the value of each key for one model and scenario, without keys that LoadGen does not read in it.

    scenario: as LoadGen knows it. Lines of Interactive are those of Server of another model name.
    """
    return {
        line.row.key: line.value
        for line in sorted(lines, key=lambda line: line.row.closeness)
        if line.row.is_about((model,), scenario.value) and scenario in _OF_SCENARIOS.get(line.row.key, tuple(Scenario))
    }


def render(model: str, scenario: Scenario, values: Mapping[str, float]) -> str:
    """Return the text of a user.conf with one line per key, in key order."""
    head = "# Written by the harness from run.json. LoadGen reads it once per run. Times in ms.\n"
    return head + "".join(f"{model}.{scenario.value}.{key} = {_text(values[key])}\n" for key in sorted(values))


def _text(value: float) -> str:
    """Return a number as LoadGen reads it: whole ones without a point, as its counts are."""
    return str(int(value)) if value % 1 == 0 else repr(value)
