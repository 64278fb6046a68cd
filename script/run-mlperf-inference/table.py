"""Renders the outcomes of a call as plain text: aligned columns, no colour, every label and reason in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .outcome import ScenarioOutcome

HEADINGS = ("Scenario", "Metric", "Value", "Unit", "LoadGen", "Accuracy", "Target", "Pass")
RIGHT_ALIGNED = frozenset(("Value", "Accuracy", "Target"))
ABSENT = "-"


def format_value(value: float) -> str:
    """A figure with about four significant digits below 1000 and thousands separators above."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def format_percent(value: float | None) -> str:
    """A percentage with three places, or a dash."""
    return ABSENT if value is None else f"{value:.3f} %"


def short_name(name: str) -> str:
    """A metric's name without what stands in brackets; results.json has the whole name."""
    return name.partition(" (")[0]


def row_of(outcome: ScenarioOutcome) -> tuple[str, ...]:
    """The cells of one scenario, in the order of HEADINGS."""
    name = value = unit = verdict = ABSENT
    if outcome.performance is not None:
        verdict = "VALID" if outcome.performance.result["valid"] else "INVALID"
        metric = outcome.performance.result["metric"]
        if metric is not None:
            name, value, unit = short_name(metric["name"]), format_value(metric["value"]), metric["unit"]
    accuracy = target = ABSENT
    if outcome.accuracy is not None and outcome.accuracy.accuracy is not None:
        accuracy = format_percent(outcome.accuracy.accuracy["accuracy_percent"])
        target = format_percent(outcome.accuracy.accuracy["target_accuracy_percent"])
    passed = "NO" if outcome.problems else "yes"
    return (outcome.scenario.value, name, value, unit, verdict, accuracy, target, passed)


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of each column below each other; the first row holds the headings."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    is_right = [heading in RIGHT_ALIGNED for heading in rows[0]]
    lines = []
    for row in rows:
        cells = zip(row, widths, is_right, strict=True)
        padded = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells]
        lines.append("  ".join(padded).rstrip())
    return lines


def render(
    title: str, label: str, notes: Sequence[str], outcomes: Sequence[ScenarioOutcome], missing: Sequence[str] = ()
) -> str:
    """The whole table with its label above; the notes, the reasons for every NO and what is ``missing`` below."""
    lines = [f"{title}: {label}", ""]
    lines += align([HEADINGS, *(row_of(outcome) for outcome in outcomes)])
    problems = [*(problem for outcome in outcomes for problem in outcome.problems), *missing]
    if problems:
        lines += ["", "Not passed:", *(f"  {problem}" for problem in problems)]
    lines += ["", label, *notes]
    return "\n".join(lines) + "\n"
