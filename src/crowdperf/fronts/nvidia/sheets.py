"""The files of settings, read as checked entries: `registry/<benchmark>/<Scenario>.yaml`, and `<id>.yaml` of a custom
system. The READMEs of this recipe and of add-mlperf-custom-system show one of each.

A system has what its parent has, and its own; so have its config versions. A benchmark whose settings nobody published
has no file: `usual_entry` has what holds on a machine without accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from crowdperf.fronts.nvidia.fields import CPU, FIELDS, NEURON, Value, read_values, required
from crowdperf.machine.known_systems import Row
from crowdperf.rules.backends import default_backend, default_precision, misfit
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import Scenario, UnknownName, parse_scenario, unknown_text
from crowdperf.rules.record import Record

DEFAULT, HIGH = "default", "high_accuracy"
CONFIG_VERSIONS = (DEFAULT, HIGH, "triton", f"{HIGH}_triton", "openvino")
"""Each names a harness, with HIGH for the level of 99.9 %; power is always at its most."""
OURS = "crowdperf's default. The harness finds batch size, instances and target on the machine"
"""Where the settings come from that no file has."""
ID_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""What NVIDIA's add_custom_system.py (mlcommons/inference_results_v4.1) takes for an id; read 2026-11-23."""
KINDS = (CPU, "nvidia", "jetson", NEURON)
_TOP = ("sources", "base", "systems")
_DATE = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
Key = tuple[str, Scenario]
"""A benchmark by its name without a level, and a scenario."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One system in one benchmark and scenario with all that it has, own and from its parents.

    layers: by config_ver what it changes; "default", always there and first, is what holds without. count: the
    accelerators that its rates are of, 0 for "cpu". source, file: where that is from; no file for what is usual.
    notes: what is said where it is used.
    """

    system: str
    kind: str
    source: str
    layers: Mapping[str, Mapping[str, Value]]
    count: int = 0
    file: str = ""
    notes: tuple[str, ...] = ()

    def of(self, system: str, count: int, *, has_targets: bool = True, own: Mapping[str, Value] | None = None) -> Entry:
        """Return what it means for another system: rates in proportion to the `count` of its accelerators.

        has_targets: whether rates and latencies hold there at all. own: what that system has over all of it.
        """
        layers = {
            version: {
                name: self._scaled(name, one, count)
                for name, one in changes.items() if has_targets or not FIELDS[name].is_target
            } | dict(own or {})
            for version, changes in self.layers.items()
        }  # fmt: skip
        return replace(self, system=system, count=count, layers=layers)

    def _scaled(self, name: str, value: Value, count: int) -> Value:
        if not FIELDS[name].is_rate or count == self.count:
            return value
        exact = Fraction(str(value.value)) * count / self.count
        number = int(exact) if exact.denominator == 1 else float(f"{float(exact):.9g}")
        return Value(number, f"scaled {count}/{self.count} from {self.system}")


Sheet = Mapping[str, Entry]
"""The entries of one benchmark in one scenario, by system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a custom system is recognised by. count: its accelerators, 0 for kind cpu."""

    kind: str
    accelerator: str
    count: int
    cpu: str
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomSystem:
    """A system of the user, with its entries."""

    system: str
    date: str
    machine: MachineFacts
    entries: Mapping[Key, Entry]
    path: Path


def usual_entry(record: Record) -> Entry:
    """Return what holds on a machine without accelerator: the backends that can run the benchmark there."""
    usual = default_backend(record.name)
    layers = {DEFAULT: _ours(backend=usual, precision=default_precision(usual))}
    for version in CONFIG_VERSIONS[1:]:
        backend = version.removeprefix(HIGH).strip("_")
        has_level = 0.999 in record.levels or not version.startswith(HIGH)
        if has_level and not (backend and misfit(backend, record.name, "cpu")):
            layers[version] = _ours(backend=backend) if backend else {}
    return Entry(system=CPU, kind=CPU, source=OURS, layers=layers)


def _ours(**values: str) -> dict[str, Value]:
    return {name: Value(value, "crowdperf's default") for name, value in values.items()}


def read_sheet(path: Path, shown: str, known: Mapping[str, Row]) -> tuple[Sheet, list[str]]:
    """Return a file and all that is wrong with it. shown: the file in origins. Raises OSError."""
    root, key = read_block(path.read_text(encoding="utf-8"), shown), (path.parent.name, Scenario(path.stem))
    for name in root.values:
        if name not in _TOP:
            root.wrong(unknown_text("key", name, _TOP), name)
    blocks = root.blocks("systems")
    if CPU in blocks:
        root.wrong(f"the settings of a machine without accelerator are base, not systems.{CPU}", "systems")
    elif "base" in root.values:
        blocks = {CPU: root.block("base"), **blocks}
    elif not blocks:
        root.wrong("missing, and no base", "systems")
    sources = {name: _source(block) for name, block in root.blocks("sources").items()}
    kinds = {name: CPU if name == CPU else known[name].kind if name in known else "" for name in blocks}
    own = {name: _layers(key, block, kinds[name]) for name, block in blocks.items()}
    parents = {name: _parent(name, block, kinds) for name, block in blocks.items()}
    usual = usual_entry(record_of(key[0]))
    entries = {CPU: replace(usual, file=str(path))}
    for name, block in blocks.items():
        if not kinds[name]:
            block.wrong(unknown_text("system", name, tuple(known)))
        layers: dict[str, Mapping[str, Value]] = dict(usual.layers) if name == CPU else {}
        for one in reversed(_chain(name, block, parents)):
            layers |= {version: {**layers.get(version, {}), **changes} for version, changes in own[one].items()}
        if missing := [one for one in required(key[1], kinds[name]) if one not in layers[DEFAULT]]:
            block.wrong(f"required and missing: {', '.join(missing)}")
        source = block.text("source")
        if source not in sources:
            said = unknown_text("source", source, tuple(sources)) if source else "missing: a name of sources"
            block.wrong(said, "source")
        count, text = known[name].count if name in known else 0, sources.get(source, "")
        entries[name] = Entry(system=name, kind=kinds[name], source=text, layers=layers, count=count, file=str(path))
    return entries, root.problems


def _source(block: Block) -> str:
    text, date = block.text("text"), block.text("date")
    if not text or not _DATE.fullmatch(date) or len(block.values) != 2:
        block.wrong("allowed: text, and date as 2026-11-23")
    return f"{text}, {date}"


def _layers(key: Key, block: Block, kind: str) -> dict[str, Mapping[str, Value]]:
    """What a block itself says, by config_ver."""
    layers: dict[str, Mapping[str, Value]] = {DEFAULT: _values(block, key[1], kind, ("source", "from", "config_ver"))}
    for version, changes in block.blocks("config_ver").items():
        if version not in CONFIG_VERSIONS or version == DEFAULT:
            changes.wrong(unknown_text("config_ver", version, CONFIG_VERSIONS[1:]))
        elif version.startswith(HIGH) and 0.999 not in record_of(key[0]).levels:
            changes.wrong(f"{key[0]} has no level of 99.9 %")
        layers.setdefault(version, _values(changes, key[1], kind))
    return layers


def _values(block: Block, scenario: Scenario, kind: str, other_keys: tuple[str, ...] = ()) -> dict[str, Value]:
    """The settings of a block by field name, for a kind of accelerator; what is wrong is noted."""
    names = [name for name in block.values if name not in other_keys]
    given = {name: (block.text(name), f"{block.file}:{block.lines[name]}") for name in names}
    found, problems = read_values(given, lambda field: field.misfit(scenario, kind))
    for name, problem in problems.items():
        block.wrong(problem.removeprefix(f"{name}: "), name)
    return found


def _parent(name: str, block: Block, kinds: Mapping[str, str]) -> str:
    """The one parent of an entry, a system of the same file and kind of accelerator; "" without."""
    value, found = block.values.get("from", ""), block.text("from")
    if isinstance(value, list):
        problem = f"{len(value)} parents; allowed: one"
    elif not isinstance(value, str):
        problem = "found a mapping; allowed: a system of this file"
    elif "/" in found:
        problem = f"{found} is of another benchmark or scenario; allowed: one of this file"
    elif found and found not in kinds:
        problem = unknown_text("system", found, tuple(one for one in kinds if one != name))
    elif found and kinds[found] != kinds[name]:
        has = f"{kinds[name] or 'unknown'} and {kinds[found] or 'unknown'}"
        problem = f"{found} has another kind of accelerator ({has})"
    else:
        return found
    block.wrong(problem, "from")
    return ""


def _chain(name: str, block: Block, parents: Mapping[str, str]) -> list[str]:
    """An entry and its parents, the entry first; ends where it would go in a circle."""
    chain = [name]
    while parent := parents[chain[-1]]:
        if parent in chain:
            block.wrong(f"goes in a circle: {' from '.join([*chain, parent])}", "from")
            break
        chain.append(parent)
    return chain


def read_custom(path: Path, sheets: Mapping[Key, Sheet], known: Mapping[str, Row]) -> tuple[CustomSystem, list[str]]:
    """Return a custom system and all that is wrong with its file. Raises OSError."""
    root = read_block(path.read_text(encoding="utf-8", errors="replace"), str(path))
    name, facts = root.text("system"), root.block("machine")
    if not ID_PATTERN.fullmatch(name) or name != path.stem:
        root.wrong(f"found {name!r}; allowed: {path.stem}, letters, digits and _, a letter first", "system")
    count, threads = (int(text) if (text := facts.text(one)).isdecimal() else 0 for one in ("count", "threads"))
    kind, accelerator, cpu = (facts.text(one) for one in ("kind", "accelerator", "cpu"))
    if kind not in KINDS or (kind != CPU) != (count > 0):
        root.wrong(f"allowed: kind {', '.join(KINDS)}, count from 1 (0 for {CPU})", "machine")
    machine = MachineFacts(kind=kind, accelerator=accelerator, count=count, cpu=cpu, threads=threads)
    entries: dict[Key, Entry] = {}
    for benchmark, block in root.blocks("configs").items():
        for word, row in block.blocks().items():
            try:
                key = benchmark, parse_scenario(word)
            except UnknownName as error:
                row.wrong(str(error))
                continue
            own, parent = _values(row, key[1], kind, ("from",)), sheets.get(key, {}).get(row.text("from"))
            if parent is None:
                row.wrong(f"allowed: {', '.join(sheets.get(key, ())) or 'nothing, there is no such benchmark'}", "from")
            elif parent.kind != kind:
                row.wrong(f"{parent.system} has another kind of accelerator than {name}", "from")
            elif not root.problems:
                entries[key] = _own_entry(name, machine, own, parent, known)
    return CustomSystem(system=name, date=root.text("date"), machine=machine, entries=entries, path=path), root.problems


def _own_entry(
    name: str, machine: MachineFacts, own: Mapping[str, Value], parent: Entry, known: Mapping[str, Row]
) -> Entry:
    """An entry of a custom system: its own values over its parent's, whose targets are of the same accelerators."""
    is_same = parent.system == CPU or known[parent.system].accelerator == machine.accelerator
    measure = f"to measure: cm run script --tags=add,custom,system,_auto --id={name}"
    note = f"the targets of {parent.system} are not included, because it has other accelerators. {measure}"
    entry = parent.of(name, machine.count, has_targets=is_same, own=own)
    return entry if is_same else replace(entry, notes=(note,))
