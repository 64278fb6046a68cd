"""One file of the registry, `registry/<benchmark>/<Scenario>.yaml`, as checked entries.

    sources:
      v0.7: {text: "mlcommons/inference_results_v0.7 ... @ 31060d57", date: 2026-11-23}
    base:                         # may be left out: what a machine without accelerator has that is not usual
      source: ours
      config_ver:
        openvino:
          precision: int8
    systems:
      T4x8:
        from: T4x1                # one parent, a system of this file
        source: v0.7
        offline_expected_qps: 3500
        config_ver:
          triton:
            offline_expected_qps: 3150

A system has what its parent has, and its own; so have its config versions. A benchmark whose settings nobody published
has no file: `usual_entry` has what holds on a machine without accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from machine_facts.known_systems import Row
from mlperf_results.backends import default_backend, default_precision, misfit
from mlperf_results.benchmarks import record_of
from mlperf_results.names import Scenario, unknown_text
from mlperf_results.record import Record

from .blocks import Block, read_block
from .effective import CONFIG_VERSIONS, DEFAULT, HIGH, Value
from .fields import CPU, BadSetting, field_named, required

OURS = "crowdperf's default; the harness finds batch size, instances and target on the machine"
"""Where the settings come from that no file has."""
_TOP = ("sources", "base", "systems")
_DATE = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One system of a file with all that it has, own and from its parents.

    layers: by config_ver what it changes; "default", always there and first, is what holds without. count: the
    accelerators that its rates are of, 0 for "cpu". own: what a custom system has over all of that. has_targets:
    whether its rates and latencies hold for the system that uses it. notes: what is said where that is another one.
    """

    system: str
    kind: str
    source: str
    layers: Mapping[str, Mapping[str, Value]]
    count: int = 0
    own: Mapping[str, Value] = field(default_factory=dict)
    has_targets: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """One benchmark in one scenario: its file, empty without one, and its entries by system."""

    benchmark: str
    scenario: Scenario
    file: str
    entries: Mapping[str, Entry]

    @property
    def name(self) -> str:
        """Benchmark and scenario, as messages have them."""
        return f"{self.benchmark} {self.scenario.value}"


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


def read_sheet(path: Path, shown: str, known: Mapping[str, Row]) -> tuple[Sheet, tuple[str, ...]]:
    """Return a file and all that is wrong with it. shown: the file in origins. Raises OSError."""
    root = read_block(path.read_text(encoding="utf-8"), shown)
    sheet = Sheet(path.parent.name, Scenario(path.stem), str(path), {})
    for name in root.values:
        if name not in _TOP:
            root.wrong(unknown_text("key", name, _TOP), name)
    blocks = root.blocks("systems")
    if CPU in blocks:
        root.wrong(f"what holds on a machine without accelerator is base, not systems.{CPU}", "systems")
    elif "base" in root.values:
        blocks = {CPU: root.block("base"), **blocks}
    elif not blocks:
        root.wrong("missing, and no base", "systems")
    sources = {name: _source(block) for name, block in root.blocks("sources").items()}
    kinds = {name: CPU if name == CPU else known[name].kind if name in known else "" for name in blocks}
    counts = {name: row.count for name, row in known.items()}
    own = {name: _own(sheet, name, block, kinds[name], sources) for name, block in blocks.items()}
    parents = {name: _parent(name, block, kinds) for name, block in blocks.items()}
    usual = usual_entry(record_of(sheet.benchmark))
    entries = {CPU: usual}
    for name, block in blocks.items():
        if not kinds[name]:
            block.wrong(unknown_text("system", name, tuple(known)))
        chain = _chain(name, block, parents)
        whole = _whole([*([usual] if name == CPU else []), *(own[one] for one in reversed(chain))])
        entries[name] = replace(whole, count=counts.get(name, 0))
        missing = [one for one in required(sheet.scenario, kinds[name]) if one not in entries[name].layers[DEFAULT]]
        if missing:
            block.wrong(f"required and missing: {', '.join(missing)}")
    return replace(sheet, entries=entries), tuple(dict.fromkeys(root.problems))


def _source(block: Block) -> str:
    text, date = block.text("text"), block.text("date")
    if not text or not _DATE.fullmatch(date) or len(block.values) != 2:
        block.wrong("allowed: text, and date as 2026-11-23")
    return f"{text}, {date}"


def _own(sheet: Sheet, name: str, block: Block, kind: str, sources: Mapping[str, str]) -> Entry:
    """What a block itself says."""
    source = block.text("source")
    if source not in sources:
        unknown = unknown_text("source", source, tuple(sources))
        block.wrong(unknown if source else "missing: a name of sources", "source")
    layers = {DEFAULT: values_of(block, sheet.scenario, kind, ("source", "from", "config_ver"))}
    for version, changes in block.blocks("config_ver").items():
        if version not in CONFIG_VERSIONS or version == DEFAULT:
            changes.wrong(unknown_text("config_ver", version, CONFIG_VERSIONS[1:]))
        elif version.startswith(HIGH) and 0.999 not in record_of(sheet.benchmark).levels:
            changes.wrong(f"{sheet.benchmark} has no level of 99.9 %")
        layers.setdefault(version, values_of(changes, sheet.scenario, kind))
    return Entry(system=name, kind=kind, source=sources.get(source, ""), layers=layers)


def values_of(block: Block, scenario: Scenario, kind: str, other_keys: tuple[str, ...] = ()) -> dict[str, Value]:
    """Return the settings of a block by field name, for a kind of accelerator; what is wrong is noted."""
    found: dict[str, Value] = {}
    for name in (one for one in block.values if one not in other_keys):
        try:
            row = field_named(name)
            problem = row.misfit(scenario, kind)
            if row.name in found:
                problem = f"{row.name} is here twice: {name} is another spelling of it"
            if problem:
                raise BadSetting(problem)
            found[row.name] = Value(row.checked(block.values[name]), f"{block.file}:{block.lines[name]}")
        except BadSetting as error:
            block.wrong(str(error).removeprefix(f"{name}: "), name)
    return found


def _parent(name: str, block: Block, kinds: Mapping[str, str]) -> str:
    """The one parent of an entry, a system of the same file and kind of accelerator; "" without."""
    found = block.values.get("from", "")
    if isinstance(found, list):
        problem = f"{len(found)} parents; allowed: one"
    elif not isinstance(found, str):
        problem = f"found {found!r}; allowed: a system of this file"
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


def _whole(chain: list[Entry]) -> Entry:
    """The last entry of a chain with all that its parents have, the first of all first."""
    layers: dict[str, dict[str, Value]] = {}
    for one in chain:
        for version, changes in one.layers.items():
            layers[version] = {**layers.get(version, {}), **changes}
    return replace(chain[-1], layers=layers)
