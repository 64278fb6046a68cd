"""LoadGen's `user.conf` format, read and written: `model.scenario.key = number`, `#` comments, `*` for any.

LoadGen silently ignores a line without blanks around `=` (seen with 6.0.17) and a key it does not know; so a file
from a user is read here, every problem in it is reported, and what LoadGen gets is written by `render`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlperf_results.names import Scenario

from harness.errors import ConfigError, Problem

KEYS = (
    "coalesce_queries",
    "max_async_queries",
    "max_duration",
    "max_query_count",
    "min_duration",
    "min_query_count",
    "performance_sample_count_override",
    "sample_concatenate_permutation",
    "target_latency",
    "target_latency_percentile",
    "target_qps",
)
"""The keys a user may set (times in ms). The rest changes what is measured: samples per query, seeds, compliance
settings."""

_SCENARIOS = ("*", *(scenario.value for scenario in Scenario))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLine:
    """One setting, for one model or `*`, in one scenario or `*`."""

    model: str
    scenario: str
    key: str
    value: float


def parse(text: str, source: str) -> tuple[ConfLine, ...]:
    """Return the settings in order; raises ConfigError with every problem. `source` is for the message."""
    lines: list[ConfLine] = []
    problems: list[Problem] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        content = raw.partition("#")[0].strip()
        if not content:
            continue
        where = f"line {number}"
        name, separator, value_text = content.partition(" = ")
        parts = name.strip().split(".")
        if not separator or len(parts) != 3:
            problems.append(Problem(where, repr(content), "model.scenario.key = number, with blanks around ="))
            continue
        model, scenario, key = parts
        if scenario not in _SCENARIOS:
            problems.append(Problem(f"{where}, scenario", repr(scenario), ", ".join(_SCENARIOS)))
        if key not in KEYS:
            problems.append(Problem(f"{where}, key", repr(key), ", ".join(KEYS)))
        value = _number(value_text)
        if value is None:
            problems.append(Problem(f"{where}, value", repr(value_text.strip()), "a number from 0"))
        elif scenario in _SCENARIOS and key in KEYS:
            lines.append(ConfLine(model=model, scenario=scenario, key=key, value=value))
    if problems:
        raise ConfigError(source, problems)
    return tuple(lines)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def effective(lines: Sequence[ConfLine], model: str, scenario: Scenario) -> dict[str, float]:
    """Return the value of each key for one model and scenario.

    The closest line wins, as in LoadGen: model.scenario, *.scenario, model.*, *.*; among equals the last one.
    """
    chosen: dict[str, float] = {}
    for wanted in (("*", "*"), (model, "*"), ("*", scenario.value), (model, scenario.value)):
        for line in lines:
            if (line.model, line.scenario) == wanted:
                chosen[line.key] = line.value
    return chosen


def render(model: str, scenario: Scenario, values: Mapping[str, float]) -> str:
    """Return the text of a user.conf with one line per key, in key order."""
    head = "# Written by the harness from run.json; LoadGen reads it once per run. Times in ms.\n"
    return head + "".join(f"{model}.{scenario.value}.{key} = {values[key]!r}\n" for key in sorted(values))
