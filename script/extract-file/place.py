"""Unpacks into a temporary folder beside the place, checks what is there, and only then moves it to its place."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import archive, members, order

BLOCK_BYTES = 1024 * 1024
SHOWN_CONFLICTS = 10


class PlaceError(Exception):
    """What was unpacked cannot be put where it shall be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What an archive gave: the folder or file to tell others of, and the files and folders it put into the place."""

    path: Path
    tops: tuple[Path, ...]


def unpack(asked: order.Order) -> Unpacked:
    """Unpacks an archive; returns where it is.

    Raises members.Refused, archive.ArchiveError or PlaceError; then nothing in the place has changed.
    """
    asked.folder.mkdir(parents=True, exist_ok=True)
    limits = members.Limits(max_size_bytes=asked.max_size_bytes, max_members=asked.max_members)
    with tempfile.TemporaryDirectory(prefix=".extracting-", dir=asked.folder) as name:
        root = Path(name) / "root"
        root.mkdir()
        try:
            with archive.open_archive(asked.archive) as opened:
                planned = members.plan(opened.members(), asked.strip_folders, limits)
                if not planned:
                    raise PlaceError(f"{asked.archive} has nothing to unpack. hint: --strip_folders too large?")
                _check_space(asked.folder, sum(item.member.size_bytes for item in planned))
                _write_all(opened, planned, root, asked.max_size_bytes)
                is_one_file = opened.is_one_file
            _check_links(root)
        except members.Refused as error:
            raise members.Refused(f"{asked.archive}: {error}") from error
        except OSError as error:
            raise PlaceError(
                f"{asked.archive} could not be unpacked in {asked.folder}: {error}. hint: --to=FOLDER"
            ) from error
        _check_result(asked, root)
        tops = tuple(asked.root / path.name for path in sorted(root.iterdir()))
        _move_into(root, asked.root, overwrites=asked.overwrites)
    result = asked.root / asked.result_name if asked.result_name else tops[0] if is_one_file else asked.root
    return Unpacked(path=result, tops=tops)


def _write_all(opened: archive.Archive, planned: tuple[members.Planned, ...], root: Path, max_size_bytes: int) -> None:
    left_bytes = max_size_bytes
    for item in planned:
        path = root / item.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if item.member.kind is members.Kind.FOLDER:
            path.mkdir(exist_ok=True)
            continue
        if path.is_symlink() or path.is_file():  # a name that comes twice: the later one counts
            path.unlink()
        if item.member.kind is members.Kind.SYMLINK:
            path.symlink_to(item.member.target)
        elif item.member.kind is members.Kind.HARDLINK:
            assert item.source is not None
            os.link(root / item.source, path)
        else:
            left_bytes -= _write_file(opened, item.member, path, left_bytes)


def _write_file(opened: archive.Archive, member: members.Member, path: Path, left_bytes: int) -> int:
    """Writes one file and returns its size; what an archive says about sizes is not trusted."""
    size_bytes = 0
    with opened.open(member) as source, path.open("xb") as target:
        while block := source.read(BLOCK_BYTES):
            size_bytes += len(block)
            if size_bytes > left_bytes:
                raise members.Refused(
                    f"{member.name!r} is larger than allowed. hint: --max_size_bytes=N if it is right"
                )
            target.write(block)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    return size_bytes


def _check_space(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        raise PlaceError(
            f"{needed_bytes} bytes are needed in {folder}, {free_bytes} are free. "
            "hint: free some, or choose another disk with --to=FOLDER"
        )


def _check_links(root: Path) -> None:
    """Raises Refused for a link that leaves the folder by way of other links, which its text alone does not show."""
    real_root = Path(os.path.realpath(root))
    escaping = [
        f"{str(path.relative_to(root))!r}: link that leads outside of the folder"
        for path in _tree(root)
        if path.is_symlink() and real_root not in (real := Path(os.path.realpath(path)), *real.parents)
    ]
    if escaping:
        raise members.Refused(members.refusal_text(escaping))


def _move_into(root: Path, place: Path, *, overwrites: bool) -> None:
    """Moves all files below `root` to `place`. A file that is there and differs is a conflict, found before moving."""
    conflicts = (
        [] if overwrites else [path for path in _tree(root) if _is_conflict(path, place / path.relative_to(root))]
    )
    blocked = [path for path in _tree(root) if _is_blocked(path, place / path.relative_to(root))]
    if conflicts or blocked:
        names = [str(path.relative_to(root)) for path in (*blocked, *conflicts)]
        shown = ", ".join(names[:SHOWN_CONFLICTS]) + (" ..." if len(names) > SHOWN_CONFLICTS else "")
        raise PlaceError(
            f"{place} has other files of the same name: {shown}. hint: --to=ANOTHER_FOLDER"
            + ("" if blocked else ", or --overwrite=yes to replace them")
        )
    _move_tree(root, place)


def _move_tree(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink() and target.is_dir():
        for child in sorted(source.iterdir()):
            _move_tree(child, target / child.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)


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


def _check_result(asked: order.Order, root: Path) -> None:
    """Raises PlaceError when the part that the user wants to have named is not in the archive."""
    if asked.result_name and not (root / asked.result_name).exists():
        tops = sorted(path.name for path in root.iterdir())
        raise PlaceError(
            f"{asked.archive} has no {asked.result_name!r}; it has {', '.join(tops[:10])}. "
            "hint: leave CM_EXTRACT_EXTRACTED_FILENAME out"
        )
