"""Reads LoadGen's summary for people, `mlperf_log_summary.txt`, as every round since v0.7 wrote it. Pure.

The detail log says more (run_log.py), but that of v0.7 is in another form, and what NVIDIA's result tools print is a
line of the summary:

    Scenario : Offline
    Mode     : Performance
    Samples per second: 32008.2
    Result is : VALID
    ...
    min_query_count : 1

Sources: results.cc of LoadGen at tag v0.7 and 6.0.17 (https://github.com/mlcommons/inference/tree/master/loadgen).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from crowdperf.logs.detail_log import LogError
from crowdperf.rules.names import Mode, Scenario, UnknownName, parse_scenario

FIGURE_LINES: Mapping[Scenario, tuple[str, ...]] = {
    Scenario.SINGLE_STREAM: (r"\d+(?:\.\d+)?th percentile latency \(ns\)",),
    Scenario.MULTI_STREAM: ("Samples per query", r"\d+(?:\.\d+)?th percentile latency \(ns\)"),
    Scenario.OFFLINE: ("Samples per second",),
    Scenario.SERVER: ("Scheduled samples per second", "Completed samples per second"),
}
"""How the line with a scenario's figure begins, the one of older rounds first (MultiStream up to v1.1 counted samples
per query; Server's summary led with the scheduled rate up to v3.1, later with the completed one)."""


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """`name : value`, at this line of the file, from 1; `text` is the whole line."""

    number: int
    name: str
    value: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLog:
    """A summary; `figure` and `is_valid` are None where it gives none, as after an accuracy run.

    An accuracy run's summary names neither scenario nor mode in newer rounds: both are None then.
    """

    scenario: Scenario | None
    mode: Mode | None
    is_valid: bool | None
    figure: SummaryLine | None
    lines: tuple[SummaryLine, ...]

    def number(self, name: str) -> float | None:
        """The value of the first line of this name; None where there is none or it is no number."""
        found = next((line.value for line in self.lines if line.name == name), None)
        try:
            return None if found is None else float(found)
        except ValueError:
            return None


def summary_lines(text: str) -> tuple[SummaryLine, ...]:
    """Return the lines of a summary that have a name and a value."""
    found = []
    for number, line in enumerate(text.replace("\0", "").splitlines(), start=1):  # some of v0.7 hold NUL bytes
        name, separator, value = line.partition(":")
        if separator:
            found.append(SummaryLine(number, name.strip(), value.strip(), line.strip()))
    return tuple(found)


def _figure(lines: tuple[SummaryLine, ...], scenario: Scenario | None) -> SummaryLine | None:
    if scenario is None:
        return None
    results = [line for line in lines if line.name in ("Result is", "Min latency (ns)")]
    leading = [line for line in lines if not results or line.number < results[0].number]
    for found in (leading, lines):  # what stands above the verdict is the figure; elsewhere only where nothing does
        for pattern in FIGURE_LINES[scenario]:
            line = next((line for line in found if re.fullmatch(pattern, line.name)), None)
            if line is not None:
                return line
    return None


def parse_summary(text: str) -> SummaryLog:
    """Return what a summary says; raises LogError for a scenario that is not known."""
    lines = summary_lines(text)
    values = {line.name: line.value for line in reversed(lines)}  # the first line of a name counts
    scenario = None
    if "Scenario" in values:
        try:
            scenario = parse_scenario(values["Scenario"])
        except UnknownName as error:
            raise LogError(f"the summary's Scenario: {error}") from error
    words = values.get("Mode", "").removesuffix("Only").lower()
    mode = next((mode for mode in Mode if mode.value == words), None)
    verdict = values.get("Result is")
    return SummaryLog(
        scenario=scenario,
        mode=mode,
        is_valid=None if verdict is None else verdict == "VALID",
        figure=_figure(lines, scenario) if mode is not Mode.ACCURACY else None,
        lines=lines,
    )
