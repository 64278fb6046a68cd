"""The content of a tree, found in one walk: folders, files with their sizes, links, unreadable entries.

No file is opened, no link is followed. Paths are text with slashes, relative to the root.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_GIT = ".git"
"""In the root: the history of a clone, which is not part of the tree. It is ignored."""

_MOST_NAMES = 10_000
"""So many names of a folder are compared with a missing one: a forged tree may have millions."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that is neither a plain file nor a folder, or that cannot be looked at."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The whole tree. sizes: of the plain files, by path. folders: the names in each folder, by its path ("" = root).

    links: symbolic links with their targets, by path.
    """

    root: Path
    sizes: Mapping[str, int]
    folders: Mapping[str, tuple[str, ...]]
    links: Mapping[str, str]
    oddities: tuple[Oddity, ...]

    def files_in(self, folder: str) -> tuple[str, ...]:
        """Return the names of the plain files of a folder, sorted, or empty if the folder does not exist."""
        return tuple(name for name in self.folders.get(folder, ()) if join(folder, name) in self.sizes)

    def folders_in(self, folder: str) -> tuple[str, ...]:
        """Return the names of the folders in a folder, sorted, or empty if the folder does not exist."""
        return tuple(name for name in self.folders.get(folder, ()) if join(folder, name) in self.folders)

    def below(self, folder: str) -> Iterable[str]:
        """Return the plain files below a folder, at any depth."""
        start = f"{folder}/" if folder else ""
        return (path for path in self.sizes if path.startswith(start))

    def similar(self, path: str) -> str:
        """Return the path that differs from a missing one in one name, by its case or by marks at its ends: `Results_`
        instead of `results`. Empty if there is none, or if nothing is missing."""
        folder = ""
        for name in path.split("/"):
            here = join(folder, name)
            if here not in self.folders and here not in self.sizes:
                names = self.folders.get(folder, ())[:_MOST_NAMES] if here not in self.links else ()
                return next((join(folder, one) for one in names if _plain(one) == _plain(name)), "")
            folder = here
        return ""


def _plain(name: str) -> str:
    return name.casefold().strip("_-. ")


def join(folder: str, name: str) -> str:
    """Return the path of a name in a folder."""
    return f"{folder}/{name}" if folder else name


def as_text(path: PurePosixPath | Path) -> str:
    """Return a path as this module writes it."""
    text = path.as_posix()
    return "" if text == "." else text


def read_listing(root: Path) -> Listing:
    """Walk the tree. Raises NotADirectoryError or another OSError only for the root itself."""
    sizes: dict[str, int] = {}
    folders: dict[str, tuple[str, ...]] = {}
    links: dict[str, str] = {}
    oddities: list[Oddity] = []
    waiting = [""]
    os.listdir(root)
    while waiting:
        folder = waiting.pop()
        try:
            names = sorted(os.listdir(root / folder))
        except OSError as error:
            oddities.append(Oddity(folder, f"a folder that cannot be read ({error.strerror})"))
            names = []
        folders[folder] = tuple(names)
        for name in names:
            path = join(folder, name)
            try:
                found = os.lstat(root / path)
                target = os.readlink(root / path) if stat.S_ISLNK(found.st_mode) else None
            except OSError as error:
                oddities.append(Oddity(path, f"cannot be looked at ({error.strerror})"))
                continue
            if target is not None:
                links[path] = target
            elif stat.S_ISDIR(found.st_mode):
                if path == _GIT:
                    folders[path] = ()
                else:
                    waiting.append(path)
            elif stat.S_ISREG(found.st_mode):
                sizes[path] = found.st_size
            else:
                oddities.append(Oddity(path, "no plain file (a pipe, socket or device)"))
    return Listing(root, dict(sorted(sizes.items())), folders, links, tuple(oddities))
