"""Brings a tree into place: built beside the old one, then exchanged; whatever happens, one whole tree is there.

    <submission_dir>                        the tree
    <submission_dir>_facts/                 what it keeps beside the tree (logs/tree.py), with a manifest
    .<submission_dir>.new, .old             only while a call works, or after one was killed

The manifest lists the digests of what we wrote. A file that is not in it, or no longer has one of its digests, is the
user's: an update keeps it, and refuses to write over it; --clean removes nothing of the kind.
"""

import ctypes
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.whole_file import file_sha256, write_json
from crowdperf.logs.tree import BesideTree, read_manifest

FORMAT = 1
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class PlacingError(Exception):
    """A tree or a folder of results cannot be put in place: something is in the way, and nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFolder:
    """Where a tree goes."""

    folder: Path

    @property
    def new(self) -> Path:
        """Where the next tree is built."""
        return self.folder.with_name(f".{self.folder.name}.new")

    @property
    def old(self) -> Path:
        """Where the former tree waits to be removed."""
        return self.folder.with_name(f".{self.folder.name}.old")

    @property
    def beside(self) -> BesideTree:
        """What is kept beside the tree."""
        return BesideTree(self.folder)


@contextmanager
def locked(place: OutputFolder) -> Iterator[None]:
    """Hold the tree's lock and tidy what a killed call left. Raises PlacingError when another call has it."""
    in_use = PlacingError(f"another command is working on {place.folder}. Wait until it finishes, or stop it")
    with file_lock(place.beside.lock, in_use):
        _tidy(place)
        yield


def _tidy(place: OutputFolder) -> None:
    """Bring the former tree back when a call was killed between two renames, and remove what was half built."""
    if place.old.is_dir() and not place.folder.exists():
        place.old.rename(place.folder)
    for left in (place.new, place.old):
        if left.is_dir():
            shutil.rmtree(left)


def write_manifest(place: OutputFolder, files: Mapping[str, Iterable[str]]) -> None:
    """Write the manifest, whole at any instant."""
    content = {"format": FORMAT, "files": {path: sorted(set(files[path])) for path in sorted(files)}}
    write_json(place.beside.manifest, content)


def files_below(folder: Path) -> dict[str, Path]:
    """Return every file and link below a folder by its path; nothing when there is no folder."""
    found = {}
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*names, *links):
            path = Path(place, name)
            found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def not_ours(place: OutputFolder) -> tuple[str, ...]:
    """Return the files of the tree that we did not make or that were changed since, each with which of the two."""
    manifest = read_manifest(place.beside)
    found = []
    for name, path in files_below(place.folder).items():
        if name not in manifest:
            found.append(f"{name} (not made by this recipe)")
        elif path.is_symlink() or file_sha256(path) not in manifest[name]:
            found.append(f"{name} (changed since)")
    return tuple(found)


def start_building(place: OutputFolder, is_clean: bool) -> None:
    """Make the folder for the next tree: empty with `is_clean`, else a copy of the tree. Raises PlacingError."""
    foreign = not_ours(place) if is_clean else ()
    if foreign:
        raise PlacingError(
            f"--clean only removes files of this recipe, but {place.folder} also contains:\n  " + "\n  ".join(foreign)
        )
    place.new.parent.mkdir(parents=True, exist_ok=True)
    if place.folder.is_dir() and not is_clean:
        shutil.copytree(place.folder, place.new, symlinks=True)
    else:
        place.new.mkdir()


def in_the_way(place: OutputFolder, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the user's files that stand where we want to write."""
    wanted = set(paths)
    return tuple(line for line in not_ours(place) if line.rsplit(" (", 1)[0] in wanted)


def drop_former(place: OutputFolder, folders: Iterable[Path]) -> None:
    """Remove from the tree being built what we made below `folders` (of a former run of the same scenario)."""
    manifest = read_manifest(place.beside)
    for folder in folders:
        for name, path in files_below(place.new / folder).items():
            whole = (folder / name).as_posix()
            if whole in manifest and not path.is_symlink() and file_sha256(path) in manifest[whole]:
                path.unlink()


def without_empty_folders(folder: Path) -> None:
    """Remove the folders below `folder` that hold nothing, which the checkers refuse."""
    for place, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(place):
            os.rmdir(place)


def exchange(place: OutputFolder, made: Iterable[str]) -> None:
    """Put the tree that was built into place and note what we made; `made` are its paths."""
    before = read_manifest(place.beside)
    now = {name: (file_sha256(place.new / name),) for name in made}
    kept = {name: digests for name, digests in before.items() if name not in now and (place.new / name).is_file()}
    write_manifest(place, {name: (*before.get(name, ()), *now.get(name, ())) for name in {*before, *now}})
    if not place.folder.exists():
        place.new.rename(place.folder)
    elif not _exchanged(place.new, place.folder):
        place.folder.rename(place.old)
        place.new.rename(place.folder)
    write_manifest(place, {**kept, **now})
    for left in (place.new, place.old):
        if left.is_dir():
            shutil.rmtree(left)


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders in one step (Linux's renameat2); False where the system or file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0)
