"""The results in a folder, whether they are still what was recorded, and ``cm diff script A B``: what differs between
two of them, from their records alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import sha256_of
from ..documents.comparison import (
    Comparison,
    Difference,
    compare,
    diff_lines,
    difference_line,
    differing,
    parse_tolerance,
    visible,
)
from ..documents.resultrecord import RECORD_FILE, ResultRecord, parse_record
from ..rules.errors import RequestError
from ..rules.schema import is_yes


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
    for line in differing("result", recorded, now, f"{name} "):
        yield line._replace(note="this line was edited")


# --- cm diff script ---


class Pair(NamedTuple):
    """Two results side by side, and the files of each that were edited since."""

    sides: tuple[FoundResult, FoundResult]
    comparison: Comparison
    edited: tuple[list[Difference], ...]

    def lines(self, tolerance_percent: float) -> Iterator[str]:
        """The pair for a terminal."""
        for letter, side in zip("AB", self.sides, strict=True):
            yield f"{letter}: {side.folder} ({side.record.made_utc})"
        for letter, edited in zip("AB", self.edited, strict=True):
            for difference in edited:
                yield f"  ! {letter}: {difference_line(difference, ('recorded', 'now'))}"
        yield from diff_lines(self.comparison, tolerance_percent)

    def row(self, tolerance_percent: float) -> dict[str, Any]:
        """The pair as JSON."""
        return {
            **self.comparison.row(tolerance_percent),
            "is_identical": self.comparison.is_identical,
            "folders": [str(side.folder) for side in self.sides],
            "edited": [[difference._asdict() for difference in edited] for edited in self.edited],
        }


def diff_action(i: Mapping[str, Any]) -> dict[str, Any]:
    """Answers ``cm diff script A B``: results of the same name side by side; of one result each, those two.

    Raises RequestError for a folder without results.
    """
    words = [str(word) for word in (i.get("artifact"), *(i.get("artifacts") or ())) if word]
    if len(words) != 2:
        raise RequestError(f"two results are compared, found {len(words)}", hint="cm diff script FOLDER FOLDER")
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    first, second = (find_results(result_folder(i, word)) for word in words)
    are_single = len(first) == len(second) == 1
    sides = [{"": results[0]} if are_single else _by_name(results) for results in (first, second)]
    pairs = [_pair(one, sides[1][name]) for name, one in sides[0].items() if name in sides[1]]
    if not pairs:
        names = f"the first has {', '.join(sides[0])}; the second has {', '.join(sides[1])}"
        raise RequestError(f"no result of {words[0]} has the name of one of {words[1]}: {names}")
    alone = [sorted(sides[0].keys() - sides[1].keys()), sorted(sides[1].keys() - sides[0].keys())]
    is_identical = not any(alone) and all(pair.comparison.is_identical for pair in pairs)
    if i.get("out") == "con":
        lines = [line for pair in pairs for line in pair.lines(tolerance_percent)]
        lines += [f"only in {letter}: {', '.join(names)}" for letter, names in zip("AB", alone, strict=True) if names]
        sys.stdout.write("".join(visible(line) + "\n" for line in lines))
    answer = {
        "return": 0,
        "identical": is_identical,
        "results": [pair.row(tolerance_percent) for pair in pairs],
        "only_in_first": alone[0],
        "only_in_second": alone[1],
    }
    if is_yes(i.get("exit_code")) and not is_identical:
        if i.get("out") == "con":
            raise RequestError("the results differ")
        answer.update({"return": RequestError.code, "error": "the results differ"})  # 1, as git diff --exit-code
    return answer


def _pair(one: FoundResult, other: FoundResult) -> Pair:
    return Pair((one, other), compare(one.record, other.record), (list(edited_files(one)), list(edited_files(other))))


def _by_name(results: Sequence[FoundResult]) -> dict[str, FoundResult]:
    """Results by their names; raises RequestError where several have one name."""
    found: dict[str, FoundResult] = {}
    for result in results:
        name = result.record.name
        if name in found:
            raise RequestError(
                f"{name} was made more than once: {found[name].folder} and {result.folder}",
                hint="name the folder of one call, or of one run",
            )
        found[name] = result
    return found
