"""Removes folders of the cache so that they are gone at once, and so that a kill in the middle leaves only trash.

A folder goes into ``.trash`` first, under a name of its own. Whoever empties the trash leaves alone what another
process is deleting right now: that one holds a lock on the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from .files import make_folder, remove_file, remove_tree
from .locks import folder_lock_if_free

META = "_cm.json"


def trash_of(root: Path) -> Path:
    """Where removed folders of a cache go."""
    return root / ".trash"


def discard(root: Path, path: Path) -> None:
    """Removes a folder below ``root``; it stops being an entry before its first file goes.

    If this process is killed before the end, ``empty_trash`` deletes the rest.
    """
    trash = trash_of(root) / f"{path.name}.{os.urandom(4).hex()}"
    with contextlib.ExitStack() as stack:
        try:
            make_folder(trash.parent)
            if path.is_dir() and not path.is_symlink():
                stack.enter_context(folder_lock_if_free(path))  # goes with the folder to its new name
            os.rename(path, trash)
        except FileNotFoundError:
            return
        except OSError:  # another disk is mounted there, or the trash cannot be made
            with contextlib.suppress(OSError):
                (path / META).unlink()
            trash = path
        remove_tree(trash)


def empty_trash(root: Path) -> list[Path]:
    """Deletes what killed removals left behind; returns what was there and is not being deleted by others."""
    left = []
    for path in trash_in(root):
        with folder_lock_if_free(path) as is_free:
            if is_free:
                remove_tree(path)
                left.append(path)
    return left


def trash_in(root: Path) -> list[Path]:
    """What lies in the trash."""
    try:
        return sorted(trash_of(root) / name for name in os.listdir(trash_of(root)))
    except OSError:
        return []


def remove_below(folder: Path, names: Iterable[str]) -> None:
    """Removes files of a folder; a name that leads out of it is left alone."""
    for path in map(Path, names):
        if not path.is_absolute() and ".." not in path.parts:
            remove_file(folder / path)
