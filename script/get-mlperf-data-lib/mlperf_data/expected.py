"""Compares a folder with the files that should be in it and tells everything that is wrong at once."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlperf_data.digests import file_digest
from mlperf_data.errors import DataError

_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file that must be there. `name` is relative, with "/" between folders; what is None is not compared.

    A file without a size must not be empty.
    """

    name: str
    size_bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is wrong in a folder. `missing` and `extra` are names, the others "name: why"."""

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    wrong_size: tuple[str, ...] = ()
    wrong_hash: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """True when nothing is wrong."""
        return not any(items for _, items in self._kinds())

    def _kinds(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (
            ("missing", self.missing),
            ("extra (not part of the data set)", self.extra),
            ("of the wrong size", self.wrong_size),
            ("with the wrong checksum", self.wrong_hash),
            ("damaged", self.damaged),
        )

    def text(self, limit: int = _SHOWN_NAMES) -> str:
        """Return one line for each kind of problem: how many, and the first `limit` of them."""
        lines = []
        for kind, items in self._kinds():
            if items:
                more = f" and {len(items) - limit} more" if len(items) > limit else ""
                separator = "; " if kind not in ("missing", "extra (not part of the data set)") else ", "
                noun = "file" if len(items) == 1 else "files"
                lines.append(f"  {len(items)} {noun} {kind}: {separator.join(items[:limit])}{more}")
        return "\n".join(lines)

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            missing=self.missing + other.missing,
            extra=self.extra + other.extra,
            wrong_size=self.wrong_size + other.wrong_size,
            wrong_hash=self.wrong_hash + other.wrong_hash,
            damaged=self.damaged + other.damaged,
        )

    def require_clean(self, folder: Path, hint: str = "") -> None:
        """Raise DataError listing everything, unless nothing is wrong."""
        if not self.is_clean:
            raise DataError(f"{folder} is not the data that it should be:\n{self.text()}", hint)


def check_folder(folder: Path, files: Iterable[ExpectedFile], extra_patterns: Sequence[str] = ()) -> Findings:
    """Return everything that is wrong with `folder`.

    A file below `folder` whose relative name fits one of `extra_patterns` (as fnmatch says; "*" stands for "/" too) and
    is not expected is extra; other files do not matter. A file is read only where a checksum is known.
    """
    expected = tuple(files)
    names = {file.name for file in expected}
    missing: list[str] = []
    wrong_size: list[str] = []
    wrong_hash: list[str] = []
    damaged: list[str] = []
    for file in expected:
        path = folder / file.name
        try:
            size_bytes = path.stat().st_size if path.is_file() else None
            if size_bytes is None:
                missing.append(file.name)
            elif file.size_bytes is not None and size_bytes != file.size_bytes:
                wrong_size.append(f"{file.name}: {size_bytes} bytes, not {file.size_bytes}")
            elif size_bytes == 0 and file.size_bytes is None:
                wrong_size.append(f"{file.name}: empty")
            else:
                wrong_hash += _hash_problems(path, file)
        except OSError as error:
            damaged.append(f"{file.name}: {error.strerror}")
    extra = [
        name
        for name in (relative_names(folder) if extra_patterns else ())
        if name not in names and any(fnmatch.fnmatchcase(name, pattern) for pattern in extra_patterns)
    ]
    return Findings(
        missing=tuple(missing),
        extra=tuple(sorted(extra)),
        wrong_size=tuple(wrong_size),
        wrong_hash=tuple(wrong_hash),
        damaged=tuple(damaged),
    )


def _hash_problems(path: Path, file: ExpectedFile) -> Iterator[str]:
    for algorithm, wanted in (("sha256", file.sha256), ("md5", file.md5)):
        if wanted is not None:
            found = file_digest(path, algorithm)
            if found != wanted.lower():
                yield f"{file.name}: {algorithm} {found}, not {wanted.lower()}"


def relative_names(folder: Path) -> Iterator[str]:
    """Yield the names of all files below `folder`, relative, with "/" between folders; links to folders are not
    followed."""
    for place, _, names in os.walk(folder):
        prefix = Path(place).relative_to(folder).as_posix()
        yield from (name if prefix == "." else f"{prefix}/{name}" for name in names)
