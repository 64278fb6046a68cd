"""One file of the registry, `registry/<benchmark>/<Scenario>.yaml`, as checked entries. Pure.

    sources:
      v0.7: {text: "mlcommons/inference_results_v0.7 ... @ 31060d57", date: 2026-11-23}
    base:                         # a machine without accelerator
      source: ours
      backend: onnxruntime
      precision: fp32
    systems:
      T4x8:
        from: T4x1                # one parent, a system of this file
        source: v0.7
        offline_expected_qps: 3500
        config_ver:
          triton:
            offline_expected_qps: 3150

A system has what its parent has, and its own; so have its config versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from machine_facts.known_systems import Row
from mlperf_results.names import Scenario, unknown_text

from .effective import CONFIG_VERSIONS, CPU, Value, misfit
from .fields import REQUIRED, BadSetting, field_named
from .yamlnodes import Node, parse

_TOP = ("sources", "base", "systems")
_DATE = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One system of a file with all that it has, own and from its parents. versions: config_ver to what it changes."""

    system: str
    kind: str
    line: int
    parent: str
    source: str
    values: Mapping[str, Value]
    versions: Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One benchmark in one scenario: its entries by system."""

    benchmark: str
    scenario: Scenario
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a file belongs, and what it is checked against. shown: its path in origins and problems.

    has_high_accuracy: whether the benchmark has a level of 99.9 %.
    """

    benchmark: str
    scenario: Scenario
    shown: str
    has_high_accuracy: bool
    known: Mapping[str, Row]


@dataclass(slots=True)
class Reader:
    """A file that is read: its place, and what is wrong with it."""

    place: Place
    problems: list[str] = field(default_factory=list)

    def problem(self, line: int, path: str, what: str) -> None:
        """Note what is wrong with a key."""
        self.problems.append(f"{self.place.shown}:{line}: {path}: {what}")


def read_sheet(text: str, place: Place) -> tuple[Sheet, tuple[str, ...]]:
    """Return the entries of a file and all that is wrong with it; a sheet with problems is not to be used."""
    reader = Reader(place)
    root = parse(text, place.shown, reader.problems)
    for name in root.children:
        if name not in _TOP:
            reader.problem(root.children[name].line, name, unknown_text("key", name, _TOP))
    sources = _sources(reader, _block(reader, root, "sources", ""))
    blocks = {name: (f"systems.{name}", one) for name, one in _block(reader, root, "systems", "").items()}
    if CPU in blocks or "base" not in root.children:
        reader.problem(1, "base", f"missing: what holds on a machine without accelerator, and no systems.{CPU}")
    else:
        blocks = {CPU: ("base", root.children["base"]), **blocks}
    own = {name: _own(reader, name, *block, sources) for name, block in blocks.items()}
    entries = {name: _whole(reader, name, own) for name in own}
    for entry in entries.values():
        _check_whole(reader, entry)
    sheet = Sheet(benchmark=place.benchmark, scenario=place.scenario, entries=entries)
    return sheet, tuple(dict.fromkeys(reader.problems))


def _block(reader: Reader, node: Node, name: str, path: str) -> Mapping[str, Node]:
    """The mapping below a key, empty where there is none."""
    below = node.children.get(name, Node(None, node.line))
    if not isinstance(below.value, Mapping) and below.value is not None:
        found = "a list" if isinstance(below.value, tuple) else repr(below.value)
        reader.problem(below.line, f"{path}.{name}".lstrip("."), f"found {found}; allowed: a mapping")
    return below.children


def _sources(reader: Reader, block: Mapping[str, Node]) -> dict[str, str]:
    found = {}
    for name, row in block.items():
        text, date = (row.children.get(key, Node("", row.line)).value for key in ("text", "date"))
        if not isinstance(text, str) or not text or not _DATE.fullmatch(str(date)) or len(row.children) != 2:
            reader.problem(row.line, f"sources.{name}", "allowed: text, and date as 2026-11-23")
        found[name] = f"{text}, {date}"
    return found


def _own(reader: Reader, name: str, path: str, block: Node, sources: Mapping[str, str]) -> Entry:
    """What a block itself says."""
    row = reader.place.known.get(name)
    kind = CPU if name == CPU else row.kind if row else ""
    if not kind:
        reader.problem(block.line, path, unknown_text("system", name, tuple(reader.place.known)))
    rest = dict(block.children)
    rest.pop("config_ver", None)
    source = _text(reader, rest.pop("source", None), f"{path}.source", block.line)
    parent_node = rest.pop("from", None)
    parent = "" if parent_node is None else _parent(reader, parent_node, f"{path}.from")
    if source and source not in sources:
        reader.problem(block.line, f"{path}.source", unknown_text("source", source, tuple(sources)))
    versions = {}
    blocks = Node(_block(reader, block, "config_ver", path), block.line)
    for version, changes in blocks.children.items():
        where = f"{path}.config_ver.{version}"
        is_high = version in CONFIG_VERSIONS and CONFIG_VERSIONS[version].is_high_accuracy
        if version not in CONFIG_VERSIONS or version == "default":
            known = tuple(one for one in CONFIG_VERSIONS if one != "default")
            reader.problem(changes.line, where, unknown_text("config_ver", version, known))
        elif is_high and not reader.place.has_high_accuracy:
            reader.problem(changes.line, where, f"{reader.place.benchmark} has no level of 99.9 %")
        versions[version] = values_of(reader, _block(reader, blocks, version, f"{path}.config_ver"), where, kind)
    values = values_of(reader, rest, path, kind)
    return Entry(system=name, kind=kind, line=block.line, parent=parent, source=sources.get(source, ""), values=values,
                 versions=versions)  # fmt: skip


def _text(reader: Reader, node: Node | None, path: str, line: int) -> str:
    if node is None or not isinstance(node.value, str) or not node.value:
        reader.problem(node.line if node else line, path, "missing: a name of sources")
        return ""
    return node.value


def _parent(reader: Reader, node: Node, path: str) -> str:
    """The one parent of an entry, a system of the same file; "" where it is none."""
    if isinstance(node.value, tuple):
        reader.problem(node.line, path, f"{len(node.value)} parents; allowed: one")
    elif not isinstance(node.value, str):
        reader.problem(node.line, path, f"found {node.value!r}; allowed: a system of this file")
    elif "/" in node.value:
        reader.problem(node.line, path, f"{node.value} is of another benchmark or scenario; allowed: one of this file")
    else:
        return node.value
    return ""


def values_of(reader: Reader, block: Mapping[str, Node], path: str, kind: str) -> dict[str, Value]:
    """Return the settings of a block, by field name; the reader notes what is wrong."""
    found: dict[str, Value] = {}
    for name, node in block.items():
        try:
            row = field_named(name)
            problem = misfit(row, reader.place.scenario, kind)
            if row.name in found:
                problem = f"{row.name} is here twice: {name} is another spelling of it"
            if problem:
                raise BadSetting(problem)
            found[row.name] = Value(row.checked(node.value), f"{reader.place.shown}:{node.line}")
        except BadSetting as error:
            reader.problem(node.line, f"{path}.{name}", str(error).removeprefix(f"{name}: "))
    return found


def _chain(reader: Reader, name: str, own: Mapping[str, Entry]) -> Iterator[Entry]:
    """An entry and its parents, the entry first; ends where it would go in a circle, leave the kind, or the file."""
    seen: list[str] = []
    while name:
        entry = own[name]
        seen.append(name)
        yield entry
        path, parent = f"systems.{name}.from", entry.parent
        if parent and parent not in own:
            reader.problem(entry.line, path, unknown_text("system", parent, tuple(one for one in own if one != name)))
            return
        if parent in seen:
            first = own[seen[0]]
            reader.problem(first.line, f"systems.{seen[0]}.from", f"goes in a circle: {' from '.join([*seen, parent])}")
            return
        if parent and own[parent].kind != entry.kind:
            kinds = f"{entry.kind or 'unknown'} and {own[parent].kind or 'unknown'}"
            reader.problem(entry.line, path, f"{parent} has another kind of accelerator ({kinds})")
            return
        name = parent


def _whole(reader: Reader, name: str, own: Mapping[str, Entry]) -> Entry:
    """An entry with all that its parents have."""
    values: dict[str, Value] = {}
    versions: dict[str, dict[str, Value]] = {}
    for one in reversed(list(_chain(reader, name, own))):
        values |= one.values
        for version, changes in one.versions.items():
            versions[version] = {**versions.get(version, {}), **changes}
    entry = own[name]
    return Entry(system=name, kind=entry.kind, line=entry.line, parent=entry.parent, source=entry.source, values=values,
                 versions=versions)  # fmt: skip


def _check_whole(reader: Reader, entry: Entry) -> None:
    path = "base" if entry.system == CPU else f"systems.{entry.system}"
    required = ("precision",) if entry.kind == CPU else REQUIRED[reader.place.scenario]
    missing = [name for name in required if name not in entry.values]
    if missing:
        reader.problem(entry.line, path, f"required and missing: {', '.join(missing)}")
