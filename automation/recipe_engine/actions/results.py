"""Finds the records of results in a folder, and says whether the results are still what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import sha256_of
from ..documents.comparison import DEFAULT_TOLERANCE_PERCENT, Difference
from ..documents.resultrecord import RECORD_FILE, ResultRecord, parse_record
from ..rules.errors import RequestError


class NoResult(RequestError):
    """A path that holds no result with a record; CM's code for what is not found is 16."""

    code = 16


class FoundResult(NamedTuple):
    """A result in ``folder`` and its record."""

    folder: Path
    record: ResultRecord


def result_folder(i: Mapping[str, Any], given: str = "") -> Path:
    """The folder that a call names as a word or with ``--result``. Raises RequestError when it names none."""
    word = given or str(i.get("result") or i.get("artifact") or "").strip()
    if not word:
        raise RequestError("no result was named", hint="cm reproduce script FOLDER, a folder of results or one of them")
    return Path(os.path.abspath(os.path.expanduser(word)))


def parse_tolerance(given: Any) -> float:
    """How many percent a figure may be off; raises RequestError for an invalid number."""
    if given in (None, ""):
        return DEFAULT_TOLERANCE_PERCENT
    try:
        value = float(str(given).strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise RequestError(f"--tolerance={given} is not a number of percent >= 0", hint="--tolerance=10")
    return value


def find_results(folder: Path) -> tuple[FoundResult, ...]:
    """All results with a record in a folder and below it, in order of their folders.

    Raises NoResult when there is none or one cannot be read, BadRecord when one cannot be used.
    """
    if folder.is_file() and folder.name == RECORD_FILE:
        folder = folder.parent
    if not folder.is_dir():
        raise NoResult(f"{folder} is not a result folder: {'it is a file' if folder.exists() else 'it does not exist'}")
    found = tuple(FoundResult(place, _read_record(place / RECORD_FILE)) for place in sorted(_places(folder)))
    if not found:
        raise NoResult(
            f"{folder} is not a result folder: neither it nor a folder below it holds a {RECORD_FILE}",
            hint="results made by an older version, or copied without it, have none; make the result again",
        )
    return found


def _places(folder: Path) -> Iterator[Path]:
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if not name.startswith(".")]
        if RECORD_FILE in files and os.path.isfile(os.path.join(place, RECORD_FILE)):  # reading a pipe would never end
            yield Path(place)


def _read_record(path: Path) -> ResultRecord:
    try:
        return parse_record(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise NoResult(f"{path} cannot be read: {error}") from None


def edited_files(result: FoundResult) -> Iterator[Difference]:
    """The files of a result that were changed since it was recorded.

    Where a group of the record's inputs is called like the file, it holds the file's lines ``key = value``: those that
    were edited are named.
    """
    for name, recorded in sorted(result.record.files.items()):
        path = result.folder / name
        now = sha256_of(path) if path.is_file() else None
        if now == recorded:
            continue
        lines = result.record.inputs.get(name)
        edited = list(_edited_lines(name, lines, path)) if lines and now else []
        note = "the file is gone" if now is None else "edited after the result was made"
        yield from edited or [Difference("result", name, recorded, now, note)]


def _edited_lines(name: str, recorded: Mapping[str, Any], path: Path) -> Iterator[Difference]:
    text = path.read_text(encoding="utf-8", errors="replace")
    rows = [line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#")]
    now = {key.strip(): value.strip() for key, _, value in rows}
    for key in sorted(recorded.keys() | now.keys()):
        if recorded.get(key) != now.get(key):
            yield Difference("result", f"{name} {key}", recorded.get(key), now.get(key), "this line was edited")
