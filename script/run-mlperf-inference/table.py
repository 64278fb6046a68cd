"""Renders the outcomes of a call as plain text: aligned columns, no colour, every label and reason in words. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crowdperf.kit.numbers import quantity
from crowdperf.kit.terminal import aligned
from crowdperf.logs import text_metrics
from crowdperf.logs.answer_metrics import STATISTICS
from crowdperf.logs.efficiency import efficiency_lines

from .outcome import score_text, target_text
from .runsettings import settings_lines

HEADINGS = ("Scenario", "Metric", "Value", "Unit", "LoadGen", "Accuracy", "Score", "Target", "Pass")
RIGHT_ALIGNED = frozenset(("Value", "Score", "Target", *STATISTICS))
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


def result_rows(scenarios: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each scenario of results.json, in the order of HEADINGS; further accuracy metrics stand below it."""
    rows = []
    for row in scenarios:
        figure = [ABSENT] * 4
        if (performance := row["performance"]) is not None:
            figure[3] = "VALID" if performance["valid"] else "INVALID"
            if (metric := performance["metric"]) is not None:
                figure[:3] = metric["name"], quantity(metric["value"]), metric["unit"]
        metrics = (row["accuracy"] or {}).get("metrics", ())
        cells = [(score["name"], score_text(score["value"]), target_text(score)) for score in metrics]
        first, *others = cells or [(ABSENT, ABSENT, ABSENT)]
        is_judged = bool(cells) or not row["passed"]  # without an accuracy run nobody knows whether it passes
        passed = ABSENT if not is_judged else "yes" if row["passed"] else "NO"
        rows.append((row["scenario"], *figure, *first, passed))
        rows += [("", "", "", "", "", *more, "") for more in others]
    return rows


def narrow(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows with short names of metrics, and two lines for a target that is a range."""
    for row in rows:
        least, separator, most = row[7].partition(" to ")
        yield (row[0], short_name(row[1]), *row[2:7], f"{least}{separator}".rstrip(), row[8])
        if most:
            yield ("", "", "", "", "", "", "", most, "")


def token_lines(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens per second and the latencies of tokens, and what the answers are; `scenarios`: the rows of results.json.

    None without answers that are made token by token.
    """
    texts = [(row["scenario"], found) for row in scenarios if (found := (row["performance"] or {}).get("text"))]
    if not texts:
        return []
    cells = [(name, *cells) for name, text in texts for cells in text_metrics.metric_rows(text)]
    rows = [("Answers", *text_metrics.HEADINGS), *cells]
    said = [wrapped(f"{name}: {words}", "  ") for name, text in texts for words in text_metrics.said_of(text)]
    return [*aligned(rows, RIGHT_ALIGNED), *said]


def render(title: str, results: Mapping[str, Any]) -> str:
    """The whole table with its label above; below it what did not pass and why, what disturbed the runs, their
    settings and the notes. `results`: the content of results.json."""
    lines = [wrapped(title), wrapped(results["label"]), ""]
    lines += aligned([HEADINGS, *narrow(result_rows(results["scenarios"]))], RIGHT_ALIGNED)
    problems = [*(problem for row in results["scenarios"] for problem in row["problems"]), *results["missing"]]
    if problems:
        lines += ["", "Not passed:", *(wrapped(problem, "  ") for problem in problems)]
    if results["disturbances"]:
        lines += ["", *map(wrapped, results["disturbances"])]
    if tokens := token_lines(results["scenarios"]):
        lines += ["", *tokens]
    measured = [(row["scenario"], row["performance"]) for row in results["scenarios"] if row["performance"]]
    efficiency = [wrapped(f"{name}: {line}", "  ") for name, found in measured for line in efficiency_lines(found)]
    lines += ["", "Energy and cost:", *efficiency] if efficiency else []
    if settings := settings_lines(results["scenarios"]):
        lines += ["", *settings]
    made_by = [f"Made by {results['made_by']}"] if results["made_by"] else []
    lines += ["", *map(wrapped, (*results["notes"], *made_by))]
    return "\n".join(lines) + "\n"


def warnings_of(results: Mapping[str, Any]) -> list[str]:
    """The lines of the table that a terminal shows as warnings."""
    return [wrapped(text) for text in (results["label"], *results["disturbances"])]
