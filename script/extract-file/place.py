"""Unpacks into a fresh folder in the place and moves what is there only when all of it is right.

Each part of a path is opened by its own descriptor and never through a link, in the fresh folder and in the place.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import archive, inputs, members

SHOWN_CONFLICTS = 10
BLOCKS_PER_LOOK = 64
"""Blocks of archive.BLOCK_BYTES that are written between two looks at the free space."""
KEPT_BYTES = 64 * 1024**2
"""What stays free on the disk (1 % of a small one): a full disk stops everything else on the machine."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PlaceError(Exception):
    """What was unpacked cannot be put where it shall be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What an archive gave: the folder or file to tell others of, and the files and folders it put into the place."""

    path: Path
    tops: tuple[Path, ...]


def unpack(asked: inputs.ExtractRequest) -> Unpacked:
    """Unpacks an archive; returns where it is.

    Raises members.Refused, archive.ArchiveError or PlaceError; then nothing in the place has changed, but for a disk
    that fails while the files are moved to their place, which the text says.
    """
    if asked.inner and asked.root.is_symlink():
        raise PlaceError(f"{asked.root} is a link, so no files were unpacked\nhint: --to=FOLDER with the folder itself")
    limits = members.Limits(max_size_bytes=asked.max_size_bytes, max_members=asked.max_members)
    try:
        with archive.open_archive(asked.archive) as opened:
            planned = members.plan(opened.members(), asked.strip_folders, limits)
            if not planned:
                raise PlaceError(f"{asked.archive} has no members to unpack\nhint: --strip_folders too large?")
            asked.folder.mkdir(parents=True, exist_ok=True)
            _check_space(asked.folder, sum(item.member.size_bytes for item in planned))
            with tempfile.TemporaryDirectory(prefix=".extracting-", dir=asked.folder) as name:
                root = Path(name) / "root"
                root.mkdir()
                _write_all(opened, planned, root, asked.max_size_bytes)
                _check_result(asked, root)
                tops = tuple(asked.root / path.name for path in sorted(root.iterdir()))
                _check_place(root, asked.root, overwrites=asked.overwrites)
                asked.root.mkdir(exist_ok=True)
                with _opened(root) as source, _opened(asked.root) as target:
                    _move(source, target, asked.root)
    except members.Refused as error:
        raise members.Refused(f"{asked.archive}: {error}") from error
    except OSError as error:
        raise PlaceError(
            f"{asked.archive} could not be unpacked in {asked.folder}: {error}\nhint: --to=FOLDER"
        ) from error
    result = asked.root / asked.result_name if asked.result_name else tops[0] if opened.is_one_file else asked.root
    return Unpacked(path=result, tops=tops)


def _write_all(opened: archive.Archive, planned: tuple[members.Planned, ...], root: Path, max_size_bytes: int) -> None:
    """Writes the members below a fresh folder: files and folders first, so that no link is there while they are."""
    left_bytes = max_size_bytes
    later: list[members.Planned] = []
    with _Folders(root) as folders:
        for item in planned:
            above, _, name = item.path.rpartition("/")
            if item.member.kind is members.Kind.SYMLINK:
                later.append(item)
            elif item.member.kind is members.Kind.FOLDER:
                folders.open(item.path)
            elif item.member.kind is members.Kind.HARDLINK:
                with _Folders(root) as others:
                    source_above, _, source = item.source.rpartition("/")
                    ends = {"src_dir_fd": others.open(source_above), "dst_dir_fd": folders.open(above)}
                    os.link(source, name, follow_symlinks=False, **ends)
            else:
                mode = 0o755 if item.member.mode & 0o100 else 0o644
                target = os.open(name, NEW_FILE, mode, dir_fd=folders.open(above))
                with os.fdopen(target, "wb", buffering=0) as file:
                    os.fchmod(target, mode)
                    left_bytes -= _write_file(opened.blocks(item.member), file, root, left_bytes, max_size_bytes)
        for item in later:
            above, _, name = item.path.rpartition("/")
            os.symlink(item.member.target, name, dir_fd=folders.open(above))


def _write_file(blocks: Iterator[bytes], file: IO[bytes], root: Path, left_bytes: int, max_size_bytes: int) -> int:
    """Writes one file and returns its size; what an archive says about sizes is not trusted."""
    size_bytes = 0
    for count, block in enumerate(blocks, start=1):
        size_bytes += len(block)
        if size_bytes > left_bytes:
            raise members.Refused(members.size_text(max_size_bytes - left_bytes + size_bytes, max_size_bytes))
        file.write(block)
        if count % BLOCKS_PER_LOOK == 0:
            _check_space(root, 0)
    return size_bytes


class _Folders:
    """Opens folders below one folder, and makes those that are missing; a link in the place of a folder is an error."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, FOLDER)
        self._path, self._last = "", os.dup(self._root)

    def __enter__(self) -> _Folders:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._last)
        os.close(self._root)

    def open(self, path: str) -> int:
        """The descriptor of a folder ("" is the root), good until the next call."""
        if path == self._path:
            return self._last
        at = os.dup(self._root)
        for name in path.split("/") if path else ():
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
                inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            finally:
                os.close(at)
            at = inner
        os.close(self._last)
        self._path, self._last = path, at
        return at


def _check_space(folder: Path, needed_bytes: int) -> None:
    """Raises PlaceError when the disk would get full."""
    disk = shutil.disk_usage(folder)
    kept_bytes = min(KEPT_BYTES, disk.total // 100)
    if needed_bytes + kept_bytes > disk.free:
        raise PlaceError(
            f"{needed_bytes} bytes are needed in {folder}, {disk.free} are free and {kept_bytes} must stay free, so "
            "no files were unpacked\nhint: free some, or select another disk with --to=FOLDER"
        )


def _check_place(root: Path, place: Path, *, overwrites: bool) -> None:
    """Raises PlaceError when something in the place is in the way: a file that differs, or a link for a folder."""
    _check_names(root, place)
    conflicts = (
        [] if overwrites else [path for path in _tree(root) if _is_conflict(path, place / path.relative_to(root))]
    )
    blocked = [path for path in _tree(root) if _is_blocked(path, place / path.relative_to(root))]
    if conflicts or blocked:
        names = [repr(str(path.relative_to(root))) for path in (*blocked, *conflicts)]
        shown = ", ".join(names[:SHOWN_CONFLICTS]) + (" ..." if len(names) > SHOWN_CONFLICTS else "")
        raise PlaceError(
            f"{place} has other files of the same name: {shown}, so no files were unpacked\nhint: --to=ANOTHER_FOLDER"
            + ("" if blocked else ", or --overwrite=yes to replace them")
        )


def _check_names(root: Path, place: Path) -> None:
    """Raises PlaceError when the place is a cache entry and a file would replace one of the engine's."""
    from recipe_engine.disk.entries import OWN_NAMES  # only a hook's process has the engine

    names = sorted(name for name in os.listdir(root) if name.casefold() in OWN_NAMES)
    if names and place == Path.cwd() and (place / "_cm.json").is_file():
        raise PlaceError(
            f"{place} is a cache entry, and the engine uses {', '.join(names)}, so no files were unpacked\n"
            "hint: --extra_folder=NAME"
        )


def _move(source: int, target: int, place: Path) -> None:
    """Moves what is in one open folder to another. Raises PlaceError when the disk fails on the way."""
    try:
        _move_all(source, target)
    except OSError as error:
        raise PlaceError(
            f"the unpacked files could not be moved to {place}: {error}. Some files may exist\nhint: --to=FOLDER"
        ) from error


def _move_all(source: int, target: int) -> None:
    """Moves everything from one open folder to another; folders that both have are merged, links never followed."""
    there = set(os.listdir(target))
    for name in sorted(os.listdir(source)):
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
        if is_folder and name in there:
            with _opened(name, source) as inner, _opened(name, target) as other:
                _move_all(inner, other)
        else:
            os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)


@contextlib.contextmanager
def _opened(folder: str | Path, within: int | None = None) -> Iterator[int]:
    """A folder's descriptor; in another open folder a link is an error."""
    descriptor = os.open(folder, FOLDER if within is None else FOLDER | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_conflict(source: Path, target: Path) -> bool:
    """Whether another file or link is in the way of a file or link."""
    if (source.is_dir() and not source.is_symlink()) or not os.path.lexists(target):
        return False
    if source.is_symlink() or target.is_symlink():
        return not (source.is_symlink() and target.is_symlink() and os.readlink(source) == os.readlink(target))
    return not (target.is_file() and filecmp.cmp(source, target, shallow=False))


def _is_blocked(source: Path, target: Path) -> bool:
    """Whether a folder is in the way of a file, or a file or a link in the way of a folder: never replaced."""
    is_folder = source.is_dir() and not source.is_symlink()
    if not os.path.lexists(target):
        return False
    return is_folder != (target.is_dir() and not target.is_symlink())


def _tree(root: Path) -> Iterator[Path]:
    """Everything below a folder, links not followed."""
    for folder, folders, files in os.walk(root):
        yield from (Path(folder) / name for name in sorted((*folders, *files)))


def _check_result(asked: inputs.ExtractRequest, root: Path) -> None:
    """Raises PlaceError when the part that the user wants to have named is not in the archive."""
    if asked.result_name and not os.path.lexists(root / asked.result_name):
        tops = sorted(repr(path.name) for path in root.iterdir())
        raise PlaceError(
            f"{asked.archive} has no {asked.result_name!r}, only {', '.join(tops[:10])}, so "
            "no files were unpacked\nhint: leave CM_EXTRACT_EXTRACTED_FILENAME out"
        )
