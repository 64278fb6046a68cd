"""The paths of a call of a recipe: what the user gave, relative to the folder where the call was made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MissingPath(ValueError):
    """An input that must be given; the text names all of them."""


def paths_of(env: Mapping[str, Any], prefix: str, names: tuple[str, str]) -> tuple[Path, Path]:
    """The two paths that stand in `env` as `<prefix>_<NAME>`. Raises MissingPath."""
    given = {name: str(env.get(f"{prefix}_{name.upper()}", "") or "").strip() for name in names}
    missing = [f"--{name}" for name, value in given.items() if not value]
    if missing:
        raise MissingPath(f"{' and '.join(missing)} must be given")
    folder = Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())
    first, second = (folder / Path(value).expanduser() for value in given.values())
    return first, second
