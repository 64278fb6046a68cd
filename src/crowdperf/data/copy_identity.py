"""The copy of a data set or a model that a user gave: where it is, and an identity that changes when the copy does."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError

NO_IDENTITY = "none"
"""Stands where nothing was given, so that an entry made from a given copy is not taken then."""


class GivenError(DataError):
    """A given path that cannot be read."""


def given_path(*values: object) -> Path | None:
    """Return the first of `values` that is not empty as an absolute path; None when all are."""
    texts = (str(value or "").strip() for value in values)
    text = next((text for text in texts if text), "")
    return Path(os.path.abspath(os.path.expanduser(text))) if text else None


def path_in(env: Mapping[str, Any]) -> Path | None:
    """Return the copy that the user of a recipe gave by `--path`; None without one."""
    return given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))


def refuse_beside(path: Path | None, made: str) -> None:
    """Raise GivenError where a path is given beside what is made here."""
    if path is not None:
        raise GivenError(f"--path={path} and {made} exclude each other", "leave one of them out")


def one_file(path: Path) -> Path:
    """Return the path of a file. Raises GivenError for another one."""
    if not path.is_file():
        raise GivenError(f"{path} is not a file", "check the path")
    return path


def only_file(pattern: str) -> Callable[[Path], Path]:
    """Return what finds a file by `pattern`: the path itself, or the only such file at or below a folder."""

    def find(path: Path) -> Path:
        found = sorted(path.rglob(pattern)) if path.is_dir() else []
        return one_file(found[0] if len(found) == 1 else path)

    return find


def identity(path: Path) -> str:
    """Return 16 hex digits for a file, or for a folder with all files below it: path, names, sizes, times of change.

    Contents are not read: this runs at each look into the cache. Raises GivenError.
    """
    if not path.exists():
        raise GivenError(f"{path} does not exist", "check the path")
    try:
        texts = [_text(path.name, path.stat())] if path.is_file() else list(_folder_texts(path))
    except OSError as error:
        raise GivenError(f"cannot read {error.filename or path}: {error.strerror}", "check its permissions") from error
    if not texts:
        raise GivenError(f"{path} is an empty folder", "check the path")
    return short_identity(str(path.resolve()), *sorted(texts))


def _folder_texts(folder: Path) -> Iterator[str]:
    seen: set[tuple[int, int]] = set()
    waiting = [(folder, "")]
    while waiting:
        place, prefix = waiting.pop()
        found = place.stat()
        if (found.st_dev, found.st_ino) in seen:  # a link back to a folder above
            continue
        seen.add((found.st_dev, found.st_ino))
        with os.scandir(place) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir():
                    waiting.append((Path(entry.path), name + "/"))
                elif entry.is_file():
                    yield _text(name, entry.stat())
                else:
                    yield f"{name}\tno file"


def _text(name: str, found: os.stat_result) -> str:
    return f"{name}\t{found.st_size}\t{found.st_mtime_ns}"
