"""The paths of a call of a recipe: what the user gave, relative to the folder where the call was made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.user_paths import given_path


class MissingPath(ValueError):
    """An input that must be given; the text names all of them."""


def paths_of(env: Mapping[str, Any], prefix: str, names: tuple[str, str]) -> tuple[Path, Path]:
    """The two paths that stand in `env` as `<prefix>_<NAME>`. Raises MissingPath."""
    first, second = (given_path(env, f"{prefix}_{name.upper()}") for name in names)
    if first is None or second is None:
        missing = [f"--{name}" for name, path in zip(names, (first, second), strict=True) if path is None]
        raise MissingPath(f"{' and '.join(missing)} must be given")
    return first, second
