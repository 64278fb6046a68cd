"""What a workspace shows of caches and runs: links, and files that two folders share.

What is shown is noted first, a JSON line each, in `build/.made`: {"place", "target", "made_by", "kind"}. The last line
of a place counts. `make clean` removes noted links and nothing else; a real file or folder is never replaced. Whatever
moment a call ends at, a view is there whole or not at all, and the next call makes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlperf_results.wholefile import link_or_copy

from .request import MakeError

NOTES = "build/.made"
BUILD_LINKS = ("build/data", "build/models", "build/preprocessed_data")
CLEANED = ("build/engines/", "build/calibration/")


class ViewError(MakeError):
    """A view cannot be made; the text says what is in its place."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "move it away and call make again")


def notes(workspace: Path) -> dict[str, Mapping[str, str]]:
    """The notes by their places; a line that was cut off is passed over."""
    found: dict[str, Mapping[str, str]] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in (workspace / NOTES).read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                found[row["place"]] = row
    return found


def note(workspace: Path, row: Mapping[str, str]) -> None:
    """Adds a line in one write, which no other call can get into."""
    file = workspace / NOTES
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "ab", buffering=0) as stream:
        stream.write(f"\n{json.dumps(row)}\n".encode())


def made_by(workspace: Path, found: Mapping[str, Mapping[str, str]], place: str) -> str:
    """The line of the call behind a link; empty where the link is not there, or leads nowhere or elsewhere."""
    row, path = found.get(place), workspace / place
    is_whole = row is not None and path.is_symlink() and path.exists() and os.readlink(path) == row["target"]
    return row["made_by"] if row is not None and is_whole else ""


def link(workspace: Path, place: str, target: Path, maker: str) -> None:
    """Makes a link, or turns it to another target. Raises ViewError where something else is in its place."""
    path = workspace / place
    if made_by(workspace, notes(workspace), place) == maker and os.readlink(path) == str(target):
        return
    if path.exists() and path.resolve() == target.resolve() and not path.is_symlink():
        return  # the scratch space has the files themselves
    if path.exists() and not path.is_symlink():
        raise ViewError(
            f"{path} is a {'folder' if path.is_dir() else 'file'}, where a link belongs; it is left as it is"
        )
    note(workspace, {"place": place, "target": str(target), "made_by": maker, "kind": "link"})
    with _beside(path) as beside:
        beside.symlink_to(target)


def show_folder(source: Path, target: Path) -> None:
    """Makes the folder `target` with the files of `source`, shared where the file system can. Raises ViewError."""
    if target.exists():
        raise ViewError(f"{target} is there already; it is left as it is")
    with _beside(target) as beside:
        shutil.copytree(source, beside, copy_function=_shared)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A place beside `path` for what takes its place, whole, at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        if beside.is_symlink() or beside.is_file():
            beside.unlink()
        shutil.rmtree(beside, ignore_errors=True)


def _shared(source: str, target: str) -> None:
    link_or_copy(Path(source), Path(target))


def copy_test(source: Path, target: Path) -> int:
    """Copies what a submission holds of a compliance test, file by file, over what is there; gives the number."""
    files = [*source.glob("verify_*.txt"), *source.glob("*_accuracy.txt"), *source.glob("accuracy/*")]
    files += source.glob("performance/run_1/mlperf_log_*")
    for file in files:
        with _beside(target / file.relative_to(source)) as beside:
            shutil.copy2(file, beside)
    return len(files)


def stage(workspace: Path, place: str) -> None:
    """Makes the folder `place` with what a submission holds of the workspace; an earlier one goes. Raises ViewError."""
    target = workspace / place
    if target.exists() and (notes(workspace).get(place) or {}).get("kind") != "stage":
        raise ViewError(f"{target} was made by something else; it is left as it is")
    note(workspace, {"place": place, "target": "", "made_by": "", "kind": "stage"})
    shutil.rmtree(target, ignore_errors=True)
    left_out = shutil.ignore_patterns("build", "Makefile", "results_metadata.json", "*.log", ".*", "*.update")
    with _beside(target) as beside:
        shutil.copytree(workspace, beside, ignore=left_out, copy_function=_shared)


def clean(workspace: Path, *, is_shallow: bool) -> list[str]:
    """Removes noted links and, unless shallow, those into the scratch space; gives their places."""
    places = [place for place in notes(workspace) if place.startswith(CLEANED)]
    removed = [place for place in (*places, *(() if is_shallow else BUILD_LINKS)) if (workspace / place).is_symlink()]
    for place in removed:
        (workspace / place).unlink()
        for folder in Path(place).parents:
            if len(folder.parts) > 1:
                with contextlib.suppress(OSError):  # something else is in it
                    (workspace / folder).rmdir()
    return removed
