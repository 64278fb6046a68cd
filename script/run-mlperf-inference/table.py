"""Renders the outcomes of a call as plain text: aligned columns, no colour, every label and reason in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .outcome import ScenarioOutcome, score_text, target_text

HEADINGS = ("Scenario", "Metric", "Value", "Unit", "LoadGen", "Accuracy", "Score", "Target", "Pass")
RIGHT_ALIGNED = frozenset(("Value", "Score", "Target"))
ABSENT = "-"


def format_value(value: float) -> str:
    """A figure with about four significant digits below 1000 and thousands separators above."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def short_name(name: str) -> str:
    """A metric's name without what stands in brackets; results.json has the whole name."""
    return name.partition(" (")[0]


def accuracy_cells(outcome: ScenarioOutcome) -> list[tuple[str, str, str]]:
    """Name, score and target of each metric of the accuracy run, at least one row of them."""
    score = None if outcome.accuracy is None else outcome.accuracy.accuracy
    metrics = [] if score is None else score["metrics"]
    cells = [(metric["name"], score_text(metric["value"]), target_text(metric)) for metric in metrics]
    return cells or [(ABSENT, ABSENT, ABSENT)]


def rows_of(outcome: ScenarioOutcome) -> list[tuple[str, ...]]:
    """The rows of one scenario, in the order of HEADINGS; a second accuracy metric stands below the first."""
    name = value = unit = verdict = ABSENT
    if outcome.performance is not None:
        verdict = "VALID" if outcome.performance.result["valid"] else "INVALID"
        metric = outcome.performance.result["metric"]
        if metric is not None:
            name, value, unit = short_name(metric["name"]), format_value(metric["value"]), metric["unit"]
    passed = "NO" if outcome.problems else "yes"
    first, *others = accuracy_cells(outcome)
    rows = [(outcome.scenario.value, name, value, unit, verdict, *first, passed)]
    return rows + [("", "", "", "", "", *cells, "") for cells in others]


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
    lines += align([HEADINGS, *(row for outcome in outcomes for row in rows_of(outcome))])
    problems = [*(problem for outcome in outcomes for problem in outcome.problems), *missing]
    if problems:
        lines += ["", "Not passed:", *(f"  {problem}" for problem in problems)]
    lines += ["", label, *notes]
    return "\n".join(lines) + "\n"
