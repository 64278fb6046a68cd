"""Finds the Python that benchmarks run with: the environment of install-python-venv with their name in the cache."""

from __future__ import annotations

import json
from pathlib import Path

NAME = "mlperf-inference"
"""What the recipes of benchmarks call their environment (`adr.python.name` in app-mlperf-inference)."""


def benchmark_python(cache: Path) -> str:
    """Return the Python of the newest finished environment of benchmarks, empty when there is none."""
    found = []
    for file in cache.glob("*/_cm.json"):
        python = file.parent / NAME / "bin" / "python3"
        if python.is_file() and _is_environment(file):
            found.append((file.stat().st_mtime_ns, str(python)))
    return max(found)[1] if found else ""


def _is_environment(file: Path) -> bool:
    try:
        tags = set(json.loads(file.read_text(encoding="utf-8"))["tags"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return {"python-venv", f"name-{NAME}"} <= tags and "tmp" not in tags


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above that exists."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())
