"""YAML files as blocks of texts that know their file, line and key path; no key twice, no anchors in circles. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_DEPTH = 8
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as quick, where PyYAML was built with it


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping of a file. path: its keys, as in "systems.T4x8". problems: what is wrong with the whole file, one list.

    values: by key, blocks, lists of nodes, and the texts of single values. lines: of each key.
    """

    file: str
    problems: list[str]
    path: str = ""
    line: int = 1
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def wrong(self, what: str, name: str = "") -> None:
        """Note what is wrong with a key, or with the block."""
        line, path = self.lines.get(name, self.line), f"{self.path}.{name}".strip(".")
        self.problems.append(f"{self.file}:{line}: {path}: {what}")

    def block(self, name: str) -> Block:
        """Return the mapping below a key, empty where there is none."""
        value = self.values.get(name) or self._below(name)
        if isinstance(value, Block):
            return value
        self.wrong(f"found {'a list' if isinstance(value, list) else repr(value)}; allowed: a mapping", name)
        return self._below(name)

    def blocks(self, name: str = "") -> dict[str, Block]:
        """Return the mappings in this one, or in the one below a key."""
        block = self.block(name) if name else self
        return {key: block.block(key) for key in block.values}

    def text(self, name: str) -> str:
        """Return the text at a key; empty for anything else."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def _below(self, name: str) -> Block:
        return Block(self.file, self.problems, f"{self.path}.{name}".strip("."), self.lines.get(name, self.line))

    def fill(self, node: yaml.MappingNode, depth: int = 1) -> Block:
        """Put the content of a node in; returns the block."""
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in self.lines:
                self.problems.append(f"{self.file}:{line}: {name} is here twice, first in line {self.lines[name]}")
            self.lines[name] = line
            if depth > MAX_DEPTH:
                self.problems.append(f"{self.file}:{line}: nested deeper than {MAX_DEPTH} levels")
            elif isinstance(value, yaml.MappingNode):
                self.values[name] = self._below(name).fill(value, depth + 1)
            else:
                self.values[name] = value.value
        return self


def read_block(text: str, file: str) -> Block:
    """Return the content of a file, empty where it is no mapping; what is wrong with it is in `problems`."""
    root = Block(file, [])
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        root.problems.append(f"{file}:{mark.line + 1 if mark else 1}: not YAML: {getattr(error, 'problem', error)}")
        return root
    return root.fill(node) if isinstance(node, yaml.MappingNode) else root
