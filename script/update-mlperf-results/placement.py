"""Puts chosen runs into a results folder so that an end at any moment leaves nothing half done.

Everything new is copied into `<output>.update/` first, beside the output. Then `plan.json` there says what moves where;
from that moment on the update is finished by the next call, if this one does not. Each move is one rename.

    <output>.update/made-by-...       says that the folder is ours
    <output>.update/new/3/            a whole run, ready
    <output>.update/old/3/            the run that stood in its place, until the end
    <output>.update/plan.json         {"format": 1, "moves": [{"number": 3, "target": "..."}], "metadata": {...}, ...}
"""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.whole_file import file_sha256, read_object, write_json
from crowdperf.submission.placement import PlacingError

from .metadata import Digests

FORMAT = 1
MARK = "made-by-update-mlperf-results"
"""File without content in the work folder: only a folder with it is ever removed."""


@dataclass(frozen=True, slots=True)
class Move:
    """Copies of `sources` become the folder `target`, which is relative to the output. digests: of the sources."""

    target: str
    sources: tuple[Path, ...]
    digests: Digests


@dataclass(frozen=True, slots=True)
class Folders:
    """Where an update works."""

    output: Path
    metadata_file: Path

    @property
    def work(self) -> Path:
        """The folder beside the output."""
        return self.output.with_name(self.output.name + ".update")

    @property
    def plan_file(self) -> Path:
        """Its presence means that everything is ready to be moved."""
        return self.work / "plan.json"


def locked(folders: Folders) -> contextlib.AbstractContextManager[int]:
    """Holds the folder that the output lies in. Raises PlacingError when another update works there."""
    place = folders.output.parent
    place.mkdir(parents=True, exist_ok=True)
    return file_lock(place, PlacingError(f"another update works in {place}. Let it finish"))


def contents(folder: Path) -> Digests | None:
    """The SHA-256 of each file in a folder; None where there is no folder. A folder inside counts as "<name>/"."""
    if not folder.is_dir():
        return None
    return {
        path.name + ("/" if path.is_dir() else ""): "" if path.is_dir() else file_sha256(path)
        for path in sorted(folder.iterdir())
    }


def obstacle(folder: Path, written: Digests | None) -> str:
    """Why a folder may not be replaced; empty when it may: it is not there, or as an earlier update wrote it."""
    found = contents(folder)
    if not found or found == written:
        return ""
    if written is None:
        return "was not made by this recipe"
    changed = sorted(name for name in {*found, *written} if found.get(name) != written.get(name))
    return f"was changed since ({', '.join(changed)})"


def is_interrupted(folders: Folders) -> bool:
    """True where an earlier update was ended when everything was ready."""
    return folders.plan_file.is_file()


def finish_earlier(folders: Folders) -> None:
    """Ends what an earlier update began: moves what was ready, or removes what was not. Raises PlacingError."""
    plan = read_object(folders.plan_file)
    if plan is not None and plan.get("format") == FORMAT:
        _move(folders, plan)
    elif folders.plan_file.exists():
        raise PlacingError(f"{folders.plan_file} cannot be read. Look into {folders.work}, then remove it")
    else:
        _remove_work(folders)


def _remove_work(folders: Folders) -> None:
    """Remove what an update left. Raises PlacingError for a folder that is none of ours."""
    if not folders.work.exists():
        return
    mark = folders.work / MARK
    if mark.is_file():
        for name in ("new", "old"):
            shutil.rmtree(folders.work / name, ignore_errors=True)
        for left in folders.work.glob(".plan.json.*.part"):  # of a killed update
            left.unlink()
        mark.unlink()
    try:
        folders.work.rmdir()
    except OSError as error:
        raise PlacingError(f"{folders.work} is in the way, and not made by this recipe ({error.strerror})") from error


def _move(folders: Folders, plan: Mapping[str, Any]) -> None:
    for move in plan["moves"]:
        new, old = (folders.work / name / str(move["number"]) for name in ("new", "old"))
        target = folders.output / move["target"]
        if not new.is_dir():
            continue  # moved before the end came
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            old.parent.mkdir(exist_ok=True)
            target.replace(old)
        new.replace(target)
    write_json(Path(plan["metadata_file"]), plan["metadata"], sort_keys=True, is_durable=True)
    folders.plan_file.unlink()
    _remove_work(folders)


def apply(folders: Folders, moves: Sequence[Move], metadata: Mapping[str, Any]) -> None:
    """Makes the moves and writes the metadata. Raises PlacingError when a source changes meanwhile, OSError."""
    folders.work.mkdir()
    (folders.work / MARK).touch()
    rows = []
    for number, move in enumerate(moves):
        new = folders.work / "new" / str(number)
        new.mkdir(parents=True)
        for source in move.sources:
            shutil.copyfile(source, new / source.name)
            if file_sha256(new / source.name) != move.digests[source.name]:
                raise PlacingError(f"{source} changed while it was copied. Is a run going on? Try again after it")
        rows.append({"number": number, "target": move.target})
    plan = {"format": FORMAT, "moves": rows, "metadata": metadata, "metadata_file": str(folders.metadata_file)}
    write_json(folders.plan_file, plan, sort_keys=True, is_durable=True)
    _move(folders, plan)
