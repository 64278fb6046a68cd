"""Writes results as CSV: one line for each figure, with its validity and the place in the log that it stands in. Pure.

The first five columns are those of the results_summary.csv that NVIDIA's submissions have.
"""

from collections.abc import Iterator, Sequence

from crowdperf.kit.csv_cells import csv_text
from crowdperf.logs.result_rows import Row
from crowdperf.logs.run_facts import Evidence, RunFacts

COLUMNS = ("system", "benchmark", "scenario", "metric", "value", "unit", "validity", "label", "file", "line", "sha256")


def validity(facts: RunFacts) -> str:
    """LoadGen's verdict as a word; "no verdict" where it gives none."""
    return {True: "VALID", False: "INVALID", None: "no verdict"}[facts.is_valid]


def _where(evidence: Evidence) -> tuple[str, int, str]:
    return evidence.file, evidence.line, evidence.sha256


def _lines(row: Row) -> Iterator[tuple[object, ...]]:
    start = (row.system, row.model, row.scenario.value)
    for facts in row.performance:
        if facts.figure is not None:
            figure = facts.figure
            yield (*start, figure.name, figure.value, figure.unit, validity(facts), row.label,
                   *_where(figure.evidence))  # fmt: skip
        else:
            file = (facts.run.relative / "mlperf_log_detail.txt").as_posix()
            yield (*start, "", "", "", validity(facts), row.label, file, "", facts.detail_sha256)
    for facts in row.accuracy:
        for score in facts.scores:
            verdict = {True: "passed", False: "missed", None: "no target"}[score.is_passed]
            value = score.line if score.value is None else score.value
            yield (*start, f"accuracy {score.name}".strip(), value, "", verdict, row.label, *_where(score.evidence))


def results_csv(rows: Sequence[Row]) -> str:
    """The text of results_summary.csv."""
    return csv_text(COLUMNS, (line for row in rows for line in _lines(row)))
