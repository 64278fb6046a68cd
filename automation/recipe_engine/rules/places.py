"""Where things stand in a YAML file: the line of each key path, keys that stand twice, and texts without quotes."""

from __future__ import annotations

import re
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


def places_of(text: str) -> Places:
    """The places in a YAML (or JSON) text; none when it does not parse."""
    import yaml  # here, because only an audit needs it

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return Places({})
    walk = _Walk()
    walk.visit(root, "", frozenset())
    return Places(walk.lines, tuple(walk.repeated), frozenset(walk.plain))


class _Walk:
    """One pass over the nodes of a document."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.repeated: list[tuple[str, int]] = []
        self.plain: set[str] = set()

    def visit(self, node: Any, path: str, above: frozenset[int]) -> None:
        """Notes a node and what is below it; an alias that leads back to a node above is not followed."""
        if id(node) in above:
            return
        if isinstance(getattr(node, "value", None), list):
            above = above | {id(node)}
            if node.id == "mapping":
                self._mapping(node, path, above)
            else:
                for number, item in enumerate(node.value):
                    inner = f"{path}[{number}]"
                    self.lines[inner] = item.start_mark.line + 1
                    self.visit(item, inner, above)
        elif node is not None and not node.style:
            self.plain.add(path)

    def _mapping(self, node: Any, path: str, above: frozenset[int]) -> None:
        seen: set[str] = set()
        for key, value in node.value:
            inner = f"{path}.{key.value}" if path else str(key.value)
            line = key.start_mark.line + 1
            if inner in seen:
                self.repeated.append((inner, line))
            seen.add(inner)
            self.lines[inner] = line
            self.visit(value, inner, above)
