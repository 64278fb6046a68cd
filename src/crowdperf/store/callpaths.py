"""The paths of a call of a recipe that must be given. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MissingPath(ValueError):
    """An input that must be given; the text names all of them."""


def paths_of(values: Mapping[str, Any], *names: str) -> tuple[Path, ...]:
    """The paths of these inputs. Raises MissingPath."""
    if missing := [f"--{name}" for name in names if values[name] is None]:
        raise MissingPath(f"{' and '.join(missing)} must be given")
    return tuple(values[name] for name in names)
