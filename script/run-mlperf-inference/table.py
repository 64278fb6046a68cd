"""Renders the outcomes of a call as plain text: aligned columns, no colour, every label and reason in words. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from mlperf_results import textfigures
from mlperf_results.terminal import aligned

from .outcome import ScenarioOutcome, score_text, target_text
from .runsettings import settings_lines

HEADINGS = ("Scenario", "Metric", "Value", "Unit", "LoadGen", "Accuracy", "Score", "Target", "Pass")
RIGHT_ALIGNED = frozenset(("Value", "Score", "Target", *textfigures.HEADINGS))
ABSENT = "-"
WIDTH = 100
"""Columns of a terminal that everything fits in."""
SHORT_NAMES = {
    "90th percentile latency": "p90 latency",
    "99th percentile latency of 8-sample queries": "p99 of 8-sample queries",
    "completed queries per second": "completed queries",
    "inferred tokens per second": "inferred tokens",
    "tokens per second": "tokens",
}
"""What metrics are called in the table, where the unit stands beside the figure."""


def format_value(value: float) -> str:
    """A figure with about four significant digits below 1000 and thousands separators above."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def short_name(name: str) -> str:
    """A metric's name for the table, without what stands in brackets; results.json has the whole name."""
    plain = name.partition(" (")[0]
    return SHORT_NAMES.get(plain, plain)


def wrapped(text: str, indent: str = "") -> str:
    """A text as lines of WIDTH columns; all but the first begin two columns further to the right."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def accuracy_cells(outcome: ScenarioOutcome) -> list[tuple[str, str, str]]:
    """Name, score and target of each metric of the accuracy run, at least one row; a range takes two."""
    score = None if outcome.accuracy is None else outcome.accuracy.accuracy
    metrics = [] if score is None else score["metrics"]
    cells = []
    for metric in metrics:
        least, separator, most = target_text(metric).partition(" to ")
        cells.append((metric["name"], score_text(metric["value"]), f"{least}{separator}".rstrip()))
        cells += [("", "", most)] if most else []
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


def token_lines(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens per second and the latencies of tokens, and what the answers are; `scenarios`: the rows of results.json.

    None without answers that are made token by token.
    """
    texts = [(row["scenario"], found) for row in scenarios if (found := (row["performance"] or {}).get("text"))]
    if not texts:
        return []
    rows = [("Answers", *textfigures.HEADINGS), *((name, *textfigures.cells(text)) for name, text in texts)]
    said = [wrapped(f"{name}: {textfigures.answers_text(text)}", "  ") for name, text in texts]
    return [*aligned(rows, RIGHT_ALIGNED), *said]


def render(title: str, results: Mapping[str, Any], outcomes: Sequence[ScenarioOutcome]) -> str:
    """The whole table with its label above; below it what did not pass and why, what disturbed the runs, their
    settings, the label and the notes. `results`: the content of results.json."""
    label = results["label"]
    lines = [wrapped(f"{title}: {label}"), ""]
    lines += aligned([HEADINGS, *(row for outcome in outcomes for row in rows_of(outcome))], RIGHT_ALIGNED)
    problems = [*(problem for outcome in outcomes for problem in outcome.problems), *results["missing"]]
    if problems:
        lines += ["", "Not passed:", *(wrapped(problem, "  ") for problem in problems)]
    if results["disturbances"]:
        lines += ["", *map(wrapped, results["disturbances"])]
    if tokens := token_lines(results["scenarios"]):
        lines += ["", *tokens]
    if settings := settings_lines(results["scenarios"]):
        lines += ["", *settings]
    lines += ["", *map(wrapped, (label, *results["notes"]))]
    return "\n".join(lines) + "\n"


def warnings_of(results: Mapping[str, Any]) -> list[str]:
    """The lines of the table that a terminal shows as warnings."""
    return [wrapped(text) for text in (results["label"], *results["disturbances"])]
