"""YAML with the line of each key: mappings of plain values, no key twice, no anchors that lead in circles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MAX_DEPTH = 8
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as quick, where PyYAML was built with it


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its line: a mapping of names to nodes, a list of nodes, or a plain value (dates as their text)."""

    value: Mapping[str, Node] | tuple[Node, ...] | int | float | str | bool | None
    line: int

    @property
    def children(self) -> Mapping[str, Node]:
        """The mapping; empty for anything else."""
        return self.value if isinstance(self.value, Mapping) else {}


def parse(text: str, place: str, problems: list[str]) -> Node:
    """Return the content of a file; what is wrong with it is added to `problems`, each with `place` and its line."""
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        return Node({}, 1) if root is None else _node(loader, root, place, problems, 0)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{place}:{mark.line + 1 if mark else 1}: not YAML: {getattr(error, 'problem', error)}")
        return Node({}, 1)
    finally:
        loader.dispose()


def _node(loader: Any, node: yaml.Node, place: str, problems: list[str], depth: int) -> Node:
    line = node.start_mark.line + 1
    if depth > MAX_DEPTH:
        problems.append(f"{place}:{line}: nested deeper than {MAX_DEPTH} levels")
        return Node({}, line)
    if isinstance(node, yaml.SequenceNode):
        return Node(tuple(_node(loader, one, place, problems, depth + 1) for one in node.value), line)
    if not isinstance(node, yaml.MappingNode):
        is_date = node.tag.endswith(":timestamp")
        return Node(str(node.value) if is_date else loader.construct_object(node), line)
    found: dict[str, Node] = {}
    for key, value in node.value:
        name, key_line = str(key.value), key.start_mark.line + 1
        if name in found:
            problems.append(f"{place}:{key_line}: {name} is here twice, first in line {found[name].line}")
        child = _node(loader, value, place, problems, depth + 1)
        found[name] = Node(child.value, key_line)
    return Node(found, line)
