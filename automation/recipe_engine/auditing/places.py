"""Positions in a YAML file: the line of each key path, repeated keys, and texts without quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_LAST_PART = re.compile(r"(?:\.|^)[^.\[\]]*$|\[\d+\]$")


class Places(NamedTuple):
    """``lines`` maps a key path (``deps[0].tags``) to its line, counted from 1; ``repeated`` lists (key path, line);
    ``plain`` holds the key paths of texts written without quotes.
    """

    lines: dict[str, int]
    repeated: tuple[tuple[str, int], ...] = ()
    plain: frozenset[str] = frozenset()

    def line(self, key: str) -> int:
        """The line of a key path, or of the nearest one around it; 0 when there is none."""
        while key and key not in self.lines:
            shorter = _LAST_PART.sub("", key)
            key = shorter if shorter != key else ""
        return self.lines.get(key, 0)


class _Node(NamedTuple):
    path: str
    line: int
    value: Any
    is_repeated: bool


def places_of(text: str) -> Places:
    """The places in a YAML (or JSON) text; none when it does not parse."""
    import yaml  # here, because only an audit needs it

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return Places({})
    nodes = list(_below(root, "", frozenset()))
    return Places(
        lines={node.path: node.line for node in nodes},
        repeated=tuple((node.path, node.line) for node in nodes if node.is_repeated),
        plain=frozenset(node.path for node in nodes if not isinstance(node.value.value, list) and not node.value.style),
    )


def _below(parent: Any, path: str, above: frozenset[int]) -> Iterator[_Node]:
    """The nodes below another one; an alias that leads back to a node above is not followed."""
    if id(parent) in above or not isinstance(getattr(parent, "value", None), list):
        return
    seen: set[str] = set()
    for number, item in enumerate(parent.value):
        key, value = item if parent.id == "mapping" else (item, item)
        name = f"{path}[{number}]" if key is value else f"{path}.{key.value}" if path else str(key.value)
        yield _Node(name, key.start_mark.line + 1, value, name in seen)
        seen.add(name)
        yield from _below(value, name, above | {id(parent)})
