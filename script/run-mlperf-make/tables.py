"""Reads tables.yaml: targets, variables, flags and folders, with what each means here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def table(name: str) -> Any:
    """One table of the file: a mapping, a list or a text, as the comments there describe it."""
    return _content()[name]


@cache
def _content() -> dict[str, Any]:
    text = Path(__file__).with_name("tables.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


def variables_of(target: str) -> frozenset[str]:
    """The variables that mean something to a target."""
    groups = table("groups")
    return frozenset(name for word in ("every", *table("targets")[target][1:]) for name in groups.get(word, [word]))
