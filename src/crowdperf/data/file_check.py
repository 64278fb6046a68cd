"""Compares a folder with the files that should be in it and tells everything that is wrong at once."""

import fnmatch
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.whole_file import file_digest

_SHOWN_NAMES = 5
_SEPARATORS = {
    "missing": ", ",
    "extra (not part of the data set)": ", ",
    "empty": ", ",
    "with the wrong checksum": "; ",
    "damaged": "; ",
}
"""The kinds of problems, in the order of the text, with what stands between the files of one."""


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file that must be there, and not be empty. `name` is relative, with "/" between folders; a checksum that is
    None is not compared.
    """

    name: str
    sha256: str | None = None
    md5: str | None = None


def check_folder(folder: Path, files: Iterable[ExpectedFile], extra_patterns: Sequence[str] = ()) -> str:
    """Return everything that is wrong with `folder`, empty for nothing: a line for each kind of problem, with how many
    files have it and the first of them.

    A file below `folder` whose relative name fits one of `extra_patterns` (as fnmatch says; "*" stands for "/" too) and
    is not expected is extra; other files do not matter. A file is read only where a checksum is known.
    """
    expected = {file.name: file for file in files}
    found: dict[str, list[str]] = {kind: [] for kind in _SEPARATORS}
    for file in expected.values():
        for kind, text in _problems(os.path.join(folder, file.name), file):
            found[kind].append(text)
    found["extra (not part of the data set)"] = sorted(
        name
        for name in (relative_names(folder) if extra_patterns else ())
        if name not in expected and any(fnmatch.fnmatchcase(name, pattern) for pattern in extra_patterns)
    )
    return "\n".join(_line(kind, texts) for kind, texts in found.items() if texts)


def _problems(path: str, file: ExpectedFile) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a file. There may be 50,000 of them: `path` is a text, and is asked for once."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            yield "missing", file.name
        elif status.st_size == 0:
            yield "empty", file.name
        else:
            for algorithm, wanted in (("sha256", file.sha256), ("md5", file.md5)):
                if wanted is not None and (found := file_digest(Path(path), algorithm)) != wanted.lower():
                    yield "with the wrong checksum", f"{file.name}: {algorithm} {found}, not {wanted.lower()}"
    except (FileNotFoundError, NotADirectoryError):
        yield "missing", file.name
    except OSError as error:
        yield "damaged", f"{file.name}: {error.strerror}"


def _line(kind: str, texts: list[str]) -> str:
    more = f" and {len(texts) - _SHOWN_NAMES:,} more" if len(texts) > _SHOWN_NAMES else ""
    noun = "file" if len(texts) == 1 else "files"
    return f"  {len(texts):,} {noun} {kind}: {_SEPARATORS[kind].join(texts[:_SHOWN_NAMES])}{more}"


def relative_names(folder: Path) -> Iterator[str]:
    """Yield the names of all files below `folder`, relative, with "/" between folders; links to folders are not
    followed."""
    for place, _, names in os.walk(folder):
        prefix = Path(place).relative_to(folder).as_posix()
        yield from (name if prefix == "." else f"{prefix}/{name}" for name in names)
