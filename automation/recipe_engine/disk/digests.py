"""The identity of a recipe: which files can change what it does, and one digest over them."""

from __future__ import annotations

import os
import re
from binascii import crc32  # loaded with yaml, unlike zlib
from collections.abc import Iterator
from pathlib import Path

from ..rules.model import IGNORED_FOLDERS, SUCCESSOR_FILE

META_NAMES = ("_cm.yaml", "_cm.json", SUCCESSOR_FILE)
_BASE = re.compile(rb"""(?:^|[{,])\s*"?_base"?\s*:\s*["']?(?:[\w-]+::)?([\w.-]+)""", re.MULTILINE)


def recipe_digest(folder: Path) -> str:
    """The SHA-256 over names and contents of a recipe's files and of the metadata that it inherits; documentation and
    compiled files are left out."""
    import hashlib  # here, because an entry made by the recipe as it is now never needs it

    digest = hashlib.sha256()
    for path in sorted(_digest_files(str(folder))):
        digest.update(os.path.relpath(path, folder).encode() + b"\0")
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def recipe_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that ``recipe_digest`` covers, by its path in the recipe."""
    from .files import sha256_of  # here, because only records of results ask

    return {os.path.relpath(path, folder): sha256_of(Path(path)) for path in sorted(_digest_files(str(folder)))}


def recipe_stamp(folder: Path) -> str:
    """Times and sizes of a recipe's files in one text: equal means unchanged, different means look closer."""
    rows = []
    for path in sorted(_digest_files(str(folder))):
        status = os.stat(path)
        rows.append((path, status.st_mtime_ns, status.st_size))
    return f"{crc32(repr(rows).encode()):08x}"


def _digest_files(folder: str) -> Iterator[str]:
    """A recipe's own files, and the metadata files that it inherits from other recipes of its repository."""
    for path in _own_files(folder):
        yield path
        if os.path.basename(path) in META_NAMES and os.path.dirname(path) == folder:
            yield from _inherited_files(path)


def _own_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as items:
        for item in items:
            if item.is_dir(follow_symlinks=False):
                if item.name not in IGNORED_FOLDERS and not item.name.startswith("."):
                    yield from _own_files(item.path)
            elif item.is_file() and not item.name.endswith((".md", ".pyc")) and not item.name.startswith("tmp-"):
                yield item.path


def _inherited_files(meta_file: str, most: int = 10) -> Iterator[str]:
    """The metadata files of the recipe that ``_base`` names by its folder, and of those that this one inherits from."""
    with open(meta_file, "rb") as file:
        text = file.read()
    found = _BASE.search(text) if b"_base" in text else None
    if found is None or not most:
        return
    base = os.path.join(os.path.dirname(os.path.dirname(meta_file)), os.fsdecode(found[1]))
    for path in filter(os.path.isfile, (os.path.join(base, name) for name in META_NAMES)):
        yield path
        yield from _inherited_files(path, most - 1)
