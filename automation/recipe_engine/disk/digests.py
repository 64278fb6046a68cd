"""The identity of a recipe: the files that can change what it does, and one digest over them.

These are the files of its folder, the metadata that it inherits, and those files of its repository's packages that it
uses (packages.py).
"""

from __future__ import annotations

import json
import os
import re
import time
from binascii import crc32  # loaded with yaml, unlike zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..rules.conditions import has_symbol
from ..rules.frozen import Frozen
from ..rules.model import IGNORED_FOLDERS, SUCCESSOR_FILE, Recipe
from ..rules.schema import Reader
from .files import read_index, sha256_of, write_index

META_NAMES = ("_cm.yaml", "_cm.json", SUCCESSOR_FILE)
_BASE = rb"""(?m)(?:^|[{,])\s*"?_base"?\s*:\s*["']?(?:[\w-]+::)?([\w.-]+)"""
TICK_NS = 20_000_000
"""Kernels stamp files with a clock that moves every 1 to 10 ms (Linux CONFIG_HZ); this is well above."""
COARSE_TICK_NS = 2_000_000_000
"""File systems without fractions of a second keep times to the second, FAT to two."""
UNTRUSTED_NS, GONE_NS = 0, -1


Times = dict[str, int]
"""Path below a folder to the time of its last change of any kind (``st_ctime_ns``), which no program can set."""


# --- what changed ---


def is_fresh(time_ns: int, began_ns: int, ended_ns: int) -> bool:
    """Whether what was read between these times may change without getting another time than ``time_ns``."""
    tick_ns = TICK_NS if time_ns % 1_000_000_000 else COARSE_TICK_NS
    return began_ns - tick_ns < time_ns < ended_ns + tick_ns


def time_of(root: str, path: str) -> int:
    """The time of a path below ``root``; ``GONE_NS`` where there is nothing."""
    try:
        return os.stat(f"{root}/{path}").st_ctime_ns
    except OSError:
        return GONE_NS


def trusted(times_ns: Times, began_ns: int) -> Times:
    """Times of what was read, or looked for, since ``began_ns`` (``time.time_ns()``), without those that are fresh."""
    ended_ns = time.time_ns()
    return {
        path: UNTRUSTED_NS if is_fresh(time_ns, began_ns, ended_ns) else time_ns for path, time_ns in times_ns.items()
    }


def is_same(root: str, times_ns: Iterable[tuple[str, int]]) -> bool:
    """Whether every path below ``root`` still has its time."""
    try:
        folder = os.open(root, os.O_RDONLY)
    except FileNotFoundError:
        return all(time_ns == GONE_NS for _, time_ns in times_ns)
    except OSError:
        return False
    stat, is_there = os.stat, os.access
    try:
        for path, time_ns in times_ns:
            if time_ns < 0:  # asking whether something is there takes half the time of a stat
                if is_there(path, os.F_OK, dir_fd=folder):
                    return False
            elif stat(path, dir_fd=folder).st_ctime_ns != time_ns:
                return False
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


class TimedIndex:
    """A file that keeps what was found out about files below a folder, with the times that these had.

    What another ``maker`` wrote, of other code for example, or what is damaged, counts as nothing. After the paths and
    times come any bytes, the body, and a rest of which parts are read later.
    """

    def __init__(self, file: Path | None, *maker: str) -> None:
        self._file = file
        self._maker = list(maker)

    def load(self) -> tuple[list[str], list[int], bytes, int]:
        """The paths, their times, the body and the offset of the rest."""
        text, rest_at = read_index(self._file) if self._file else (b"", 0)
        head, _, body = text.partition(b"\0")
        facts = json.loads(head) if head else {}
        if facts.get("maker") != self._maker:
            return [], [], b"", rest_at
        return facts["paths"].split("//") if facts["times_ns"] else [], facts["times_ns"], body, rest_at

    def save(self, times_ns: Iterable[tuple[str, int]], body: bytes, rest: bytes = b"") -> int:
        """Gives the offset of the rest; 0 when the file could not be written, which costs only time."""
        rows = list(times_ns)
        paths = "//".join(path for path, _ in rows)  # one text is parsed faster than many
        head = {"maker": self._maker, "paths": paths, "times_ns": [time_ns for _, time_ns in rows]}
        return write_index(self._file, json.dumps(head).encode() + b"\0" + body, rest) if self._file else 0


# --- a recipe's own files ---


def recipe_digest(folder: Path, used: str = "") -> str:
    """The SHA-256 over names and contents of a recipe's files and of the metadata that it inherits; documentation and
    compiled files are left out. ``used`` is the digest of the files that it uses of its repository's packages.
    """
    import hashlib  # here, because an entry made by the recipe as it is now never needs it

    digest = hashlib.sha256()
    for path in sorted(_digest_files(str(folder))):
        digest.update(os.path.relpath(path, folder).encode() + b"\0")
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    digest.update(used.encode())
    return digest.hexdigest()


def recipe_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of the recipe itself that ``recipe_digest`` covers, by its path in the recipe."""
    return {os.path.relpath(path, folder): sha256_of(Path(path)) for path in sorted(_digest_files(str(folder)))}


def recipe_stamp(folder: Path) -> str:
    """Times and sizes of a recipe's own files in one text: equal means unchanged, different means look closer."""
    rows = []
    for path in sorted(_digest_files(str(folder))):
        status = os.stat(path)
        rows.append((path, status.st_mtime_ns, status.st_size))
    return f"{crc32(repr(rows).encode()):08x}"


def _digest_files(folder: str) -> Iterator[str]:
    """A recipe's own files, and the metadata files that it inherits from other recipes of its repository."""
    for path in own_files(folder):
        yield path
        if os.path.basename(path) in META_NAMES and os.path.dirname(path) == folder:
            yield from _inherited_files(path)


def own_files(folder: str) -> Iterator[str]:
    """The files of a folder, at any depth, that can change the effect of a recipe."""
    with os.scandir(folder) as items:
        for item in items:
            if item.is_dir(follow_symlinks=False):
                if item.name not in IGNORED_FOLDERS and not item.name.startswith("."):
                    yield from own_files(item.path)
            elif item.is_file() and not item.name.endswith((".md", ".pyc")) and not item.name.startswith("tmp-"):
                yield item.path


def _inherited_files(meta_file: str, most: int = 10) -> Iterator[str]:
    """The metadata files of the recipe that ``_base`` names by its folder, and of those that this one inherits from."""
    with open(meta_file, "rb") as file:
        text = file.read()
    found = re.search(_BASE, text) if b"_base" in text else None
    if found is None or not most:
        return
    base = os.path.join(os.path.dirname(os.path.dirname(meta_file)), os.fsdecode(found[1]))
    for path in filter(os.path.isfile, (os.path.join(base, name) for name in META_NAMES)):
        yield path
        yield from _inherited_files(path, most - 1)


# --- the files of a repository's packages that recipes use ---


def declared_modules(recipe: Recipe, variations: Sequence[str]) -> tuple[str, ...]:
    """The modules of its repository's packages that a recipe loads by name with these variations, sorted.

    Those that a plan does not know yet are left out.
    """
    names = set(recipe.library)
    if any(variation.library for variation in recipe.variations.values()):
        from ..rules.configure import variation_blocks  # here, because actions that list entries configure nothing

        blocks = (Reader(block, f"variations.{name}") for name, block in variation_blocks(recipe, variations))
        names.update(*(block.texts("library") for block in blocks))
    return tuple(sorted(name for name in names if not has_symbol(name)))


class Used(Frozen):
    """The files of its repository's packages that a recipe uses, by their paths in the repository, and one SHA-256
    over their names and contents, empty for none. ``stamp`` is that of its own files, with the digest.
    """

    digest: str
    paths: tuple[str, ...]
    stamp: str
