"""Appends metrics to metrics.csv and crowdperf.metrics, whole operations at a time, each once.

Effects: files below one folder, under its lock. What a kill cut off is removed by the next call, and an operation that
is in the file is not written again: its id says so.
"""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from crowdperf.fronts.metrics.metrics import Metric
from crowdperf.fronts.metrics.telemetry import CSV_HEADER, SEPARATOR, Session, Source, csv_text, json_text, operation_id
from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.terminal import aligned
from crowdperf.kit.whole_file import write_whole

CSV_NAME, JSON_NAME, SUMMARY_NAME = "metrics.csv", "crowdperf.metrics", "summary.txt"
LOCK_NAME = ".metrics.lock"
ROLL_OVER_BYTES = 20 * 1024 * 1024
"""VirtualClient begins metrics_1.csv when metrics.csv has grown to this (MetricsCsvFileLoggerProvider)."""


class _Marks(NamedTuple):
    """How records of a file begin and end; `first` begins an empty file."""

    first: str
    start: bytes
    end: bytes
    is_after_start: bool


_CSV_MARKS = _Marks(CSV_HEADER, b'"\n', b'"\n', is_after_start=True)
_JSON_MARKS = _Marks("", SEPARATOR.encode(), b"\n}\n", is_after_start=False)


def csv_files(folder: Path) -> list[Path]:
    """Return metrics.csv and those that followed it, in order."""
    found = [folder / CSV_NAME]
    while (path := folder / f"metrics_{len(found)}.csv").is_file():
        found.append(path)
    return [path for path in found if path.is_file()]


def _current(there: Sequence[Path], folder: Path, limit_bytes: int) -> Path:
    if not there:
        return folder / CSV_NAME
    return there[-1] if there[-1].stat().st_size < limit_bytes else folder / f"metrics_{len(there)}.csv"


def _append(path: Path, text: str, mark: _Marks, identity: str, count: int) -> bool:
    """Appends an operation's records in one write, after cutting off what a kill left unfinished; False if all are
    there."""
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with open(number, "rb", closefd=False) as file:
            there = file.read()
        whole = there.rfind(mark.end) + len(mark.end) if mark.end in there else 0
        key = identity.encode()
        if there.count(key, 0, whole) >= count:
            return False
        if key in there[:whole]:
            whole = max(there.rfind(mark.start, 0, there.find(key)) + mark.is_after_start * len(mark.start), 0)
        os.ftruncate(number, whole)
        os.lseek(number, 0, os.SEEK_END)
        block = (text if whole else mark.first + text.removeprefix(SEPARATOR)).encode()
        while block:
            block = block[os.write(number, block) :]
        return True
    finally:
        os.close(number)


def append(
    folder: Path, metrics: Sequence[Metric], session: Session, source: Source, *, limit_bytes: int = ROLL_OVER_BYTES
) -> bool:
    """Append one operation's metrics to both files; False where they are there already. Raises OSError."""
    if not metrics:
        return False
    identity, count = operation_id(session, source), len(metrics)
    rows = "".join(csv_text(metric, session, source) for metric in metrics)
    objects = "".join(SEPARATOR + json_text(metric, session, source) for metric in metrics)
    with file_lock(folder / LOCK_NAME):
        there = csv_files(folder)
        holder = next((path for path in there if identity in path.read_text(encoding="utf-8", errors="replace")), None)
        is_new = _append(holder or _current(there, folder, limit_bytes), rows, _CSV_MARKS, identity, count)
        return _append(folder / JSON_NAME, objects, _JSON_MARKS, identity, count) or is_new


def summary_text(folder: Path, experiment_id: str) -> str:
    """Return the metrics of an experiment as a table for people, from the rows that are on disk."""
    rows = []
    for path in csv_files(folder):
        with open(path, encoding="utf-8", newline="") as file:
            rows += [row for row in csv.DictReader(file) if row.get("ExperimentId") == experiment_id]
    shown = [("Scenario", "Metric", "Value", "Unit", "Label")]
    for row in rows:
        about = dict(pair.partition("=")[::2] for pair in (row["Metadata"] or "").split(";"))
        name = " ".join(filter(None, (row["ScenarioName"], about.get("scenario", ""))))
        value = row["MetricValue"] or ""
        shown.append((name, row["MetricName"] or "", value, row["MetricUnit"] or "", about.get("label", "")))
    return "\n".join([f"Experiment {experiment_id}", "", *aligned(shown), ""])


def write_summary(folder: Path, experiment_id: str) -> str:
    """Write summary.txt and return its text."""
    text = summary_text(folder, experiment_id)
    write_whole(folder / SUMMARY_NAME, text)
    return text


def remove_logs(folder: Path) -> list[str]:
    """Remove the files that this module writes, and no other; returns their names."""
    paths = [*csv_files(folder), folder / JSON_NAME, folder / SUMMARY_NAME]
    there = [path for path in paths if path.is_file()]
    for path in there:
        path.unlink()
    return [path.name for path in there]
