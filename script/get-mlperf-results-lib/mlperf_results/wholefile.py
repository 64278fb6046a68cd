"""Puts a text file in place whole or not at all, so that nobody ever reads half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write `text` as UTF-8 beside `path` and rename it; the folder is made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
