"""The code of a recipe as text: its Python files and native scripts."""

from __future__ import annotations

import os
from pathlib import Path

from .repos import IGNORED_IN_DIGEST

CODE = (".py", ".sh")
TEXT_LIMIT_BYTES = 1 << 20
"""Larger files are data, whatever they are called."""


def recipe_texts(folder: Path, endings: tuple[str, ...] = CODE, *, is_deep: bool = False) -> dict[str, str]:
    """The text of each file with one of these endings in a recipe's folder (and below it), by its path there.

    Line ends stay as they are; bytes that are not UTF-8 are replaced.
    """
    texts: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED_IN_DIGEST and not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names) if name.endswith(endings)):
            if path.is_file() and path.stat().st_size <= TEXT_LIMIT_BYTES:
                texts[path.relative_to(folder).as_posix()] = file_text(path)
        if not is_deep:
            break
    return texts


def file_text(path: Path) -> str:
    """The text of a file with its own line ends; a byte order mark stays where bash would see it."""
    encoding = "utf-8-sig" if path.suffix == ".py" else "utf-8"  # Python skips a byte order mark, bash does not
    return path.read_bytes().decode(encoding, "replace")  # not read_text: it would hide Windows line ends
