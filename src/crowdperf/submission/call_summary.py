"""The lines that a call prints: those of cm4mlops' recipe, and the table of results. Pure."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from crowdperf.rules.names import Mode
from crowdperf.submission.assembly import Piece
from crowdperf.submission.measurements import label_of
from crowdperf.submission.request import Request
from crowdperf.submission.run_discovery import FoundRun, Sut, accuracy_run_of

SOURCE_FOLDERS = ("src", "code")
"""Where a tree holds the program: since v6.0, and before."""

RULE = "=" * 49


def cleaning(request: Request) -> list[str]:
    """Return the lines that announce --clean."""
    return [RULE, f"Cleaning {request.submission_folder} ...", RULE]


def head(request: Request, round_name: str, division: str) -> list[str]:
    """Return what is written for whom and where."""
    folders = ", ".join(map(str, request.results_folders))
    return [
        f"* MLPerf inference submission dir: {request.submission_folder}",
        f"* MLPerf inference results dir: {folders}",
        f"* MLPerf inference round: {round_name}",
        f"* MLPerf inference division: {division}",
        f"* MLPerf inference submitter: {request.submitter}",
    ]


def system(sut: Sut) -> list[str]:
    """Return what a system is."""
    return [
        f"* System: {sut.hw_name}",
        f"* Implementation: {sut.implementation}",
        f"* Device: {sut.device}",
        f"* Framework: {sut.backend}",
        f"* Framework Version: {sut.backend_version}",
        f"* Run Config: {sut.run_config}",
    ]


def model(name: str, pieces: Iterable[Piece]) -> list[str]:
    """Return a model and its files; of the program's sources, which are hundreds, the folder and how many there are."""
    paths = [piece.path for piece in pieces]
    sources = {path for path in paths if path.parts[2] in SOURCE_FOLDERS}
    folders = {Path(*path.parts[:5]).as_posix() for path in sources}
    return [
        f"* MLPerf inference model: {name}",
        *(f" * {path.as_posix()}" for path in paths if path not in sources),
        *(f" * {folder}/ ({len(sources)} files)" for folder in sorted(folders)),
    ]


def result_table(runs: Sequence[FoundRun]) -> list[str]:
    """Return a table with one row for each scenario."""
    rows = [("System", "Model", "Scenario", "Result", "Accuracy", "Verdict", "Label")]
    for run in runs:
        if run.mode is not Mode.PERFORMANCE or run.test or run.log is None:
            continue
        accuracy = accuracy_run_of(run, runs)
        metric = run.log.published
        result = f"{metric.value:.6g} {metric.metric.unit}" if metric else "-"
        metrics = (accuracy.accuracy.get("metrics") or ()) if accuracy else ()
        score = ", ".join(f"{row['name']} {row['value']:.6g}" for row in metrics)
        verdict = "VALID" if run.log.is_valid else "INVALID"
        label = label_of(run, accuracy)
        rows.append((*run.place_parts, result, score or "-", verdict, label or "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    bar = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [bar, lines[0], bar, *lines[1:], bar]
