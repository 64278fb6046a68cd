"""What a workspace shows of caches and runs: links, and files that two folders share.

What is shown is noted first, a JSON line each, in `build/.made`: {"place", "target", "made_by", "kind"}. The last line
of a place counts. `make clean` removes noted links and nothing else; a real file or folder is never replaced. Whatever
moment a call ends at, a view is there whole or not at all, and the next call makes it.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.kit.whole_file import link_or_copy, read_object

from . import conffiles
from .request import MakeError

NOTES = "build/.made"
BUILD_LINKS = ("build/data", "build/models", "build/preprocessed_data")
CLEANED = ("build/engines/", "build/calibration/")
INNER = {"performance": "performance/run_1", "accuracy": "accuracy"}
"""The folder of a run of a mode, below that of its scenario."""
SUBMITTED = ("calibration", "code", "compliance", "documentation", "measurements", "results", "src", "systems")
"""The folders of a submitter in the tree of a round: submission rules of mlcommons/policies (read 2026-11-23)."""
ELSEWHERE = "move it away and rerun make"


class View(NamedTuple):
    """What is shown at `place`, below the workspace.

    link, folder: a link to the file, or to its folder, that the first of the keys `source` in new_env names. run: the
    files of a run, `source` being the folder of its scenario and the modes. test: the compliance test in the folder
    `source`, where it passed. conf: what a submission says of a run beside user.conf, `source` being the fields of
    conffiles.Described. stage: what a submission holds of the workspace.
    """

    kind: str
    place: str
    source: tuple[str, ...]


def say(text: str) -> None:
    """A line of the story."""
    print(text, file=sys.stderr, flush=True)


def show(view: View, answer: Mapping[str, Any], line: str, folder: Path) -> list[str]:
    """Shows a view of an answer; gives what did not pass. Raises MakeError where something else is in its place."""
    if view.kind == "run":
        _show_run(view, line, folder)
    elif view.kind == "test":
        return _copy_test(view, folder)
    elif view.kind == "conf":
        conffiles.write(folder, view.place, conffiles.Described(*view.source))
    elif view.kind == "stage":
        stage(folder, view.place)
    else:
        env = answer.get("new_env") or {}
        path = next((Path(str(env[key])) for key in view.source if env.get(key)), None)
        if path is None:
            raise MakeError(f"{line} gave none of {', '.join(view.source)}")
        target = path.parent if view.kind == "folder" and path.is_file() else path
        link(folder, view.place, target, line)
        say(f"{view.place} -> {target}")
    return []


def notes(workspace: Path) -> dict[str, Mapping[str, str]]:
    """The notes by their places; a line that was cut off is passed over."""
    found: dict[str, Mapping[str, str]] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in (workspace / NOTES).read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                found.pop(row["place"], None)  # the order is that of the last lines
                found[row["place"]] = row
    return found


def note(workspace: Path, place: str, kind: str, target: str = "", made_by: str = "") -> None:
    """Adds a line in one write, which no other call can get into."""
    file = workspace / NOTES
    file.parent.mkdir(parents=True, exist_ok=True)
    row = {"place": place, "target": target, "made_by": made_by, "kind": kind}
    with open(file, "ab", buffering=0) as stream:
        stream.write(f"\n{json.dumps(row)}\n".encode())


def made_by(workspace: Path, found: Mapping[str, Mapping[str, str]], place: str) -> str:
    """The line of the call behind a link; empty where the link is not there, or leads nowhere or elsewhere."""
    row, path = found.get(place), workspace / place
    is_whole = row is not None and path.is_symlink() and path.exists() and os.readlink(path) == row["target"]
    return row["made_by"] if row is not None and is_whole else ""


def link(workspace: Path, place: str, target: Path, maker: str) -> None:
    """Makes a link, or turns it to another target. Raises MakeError where something else is in its place."""
    path = workspace / place
    if made_by(workspace, notes(workspace), place) == maker and os.readlink(path) == str(target):
        return
    if path.exists() and not path.is_symlink():
        if path.resolve() == target.resolve():
            return  # the scratch space has the files themselves
        kind = "folder" if path.is_dir() else "file"
        raise MakeError(f"{path} is a {kind} instead of a link and was not changed", ELSEWHERE)
    note(workspace, place, "link", str(target), maker)
    with _beside(path) as beside:
        beside.symlink_to(target)


def _show_run(view: View, line: str, workspace: Path) -> None:
    """The runs of a scenario in the folder that NVIDIA's harness would have; the system's other name is a link."""
    folder, (source, words) = workspace / view.place, view.source
    modes = words.split(",")
    for mode in modes:
        target = folder / (INNER[mode] if len(modes) > 1 else "")
        if target.exists():
            raise MakeError(f"{target} already exists and is left as it is", ELSEWHERE)
        with _beside(target) as beside:
            shutil.copytree(workspace / source / INNER[mode], beside, copy_function=_shared)
    note(workspace, view.place, "run", source, line)
    system = folder.parents[1]
    alias = system.with_name(system.name.rpartition("_")[0])
    with contextlib.suppress(FileExistsError):
        alias.symlink_to(system.name)
    say(f"logs: {folder}")


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


def _copy_test(view: View, workspace: Path) -> list[str]:
    """Copies what a submission holds of a test that passed, file by file, over what is there; else says so."""
    test, folder = workspace / view.source[0], workspace / view.place
    if not (read_object(test / "compliance.json") or {}).get("passed"):
        return [f"{view.source[0]} has not passed, so it was not copied"]
    patterns = ("verify_*.txt", "*_accuracy.txt", "accuracy/*", "performance/run_1/mlperf_log_*.txt")
    files = [file for pattern in patterns for file in test.glob(pattern)]
    for file in files:
        with _beside(folder / file.relative_to(test)) as beside:
            shutil.copy2(file, beside)
    print(f"{view.place}: {len(files)} files", flush=True)
    return []


def stage(workspace: Path, place: str) -> None:
    """Makes the folder `place` with what a submission holds of the workspace; an earlier one goes. Raises MakeError."""
    target = workspace / place
    if target.exists() and (notes(workspace).get(place) or {}).get("kind") != "stage":
        raise MakeError(f"{target} was made by something else and is left as it is", ELSEWHERE)
    note(workspace, place, "stage")
    shutil.rmtree(target, ignore_errors=True)
    left_out = shutil.ignore_patterns("*.log", ".*", "*.update")
    with _beside(target) as beside:
        beside.mkdir()
        for name in filter(lambda name: (workspace / name).is_dir(), SUBMITTED):
            shutil.copytree(workspace / name, beside / name, ignore=left_out, copy_function=_shared)


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
