"""The file of a custom system: what it starts from, its text, and how it is put in place. All but that is pure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from machine_facts.known_systems import Row
from mlperf_configs import registry
from mlperf_configs.fields import CPU, FIELDS, required
from mlperf_configs.sheets import DEFAULT, Entry, MachineFacts
from mlperf_results.names import Scenario
from mlperf_results.wholefile import write_once, write_whole

HEAD = """# A system of your own for crowdperf's registry of configurations (get-mlperf-benchmark-config).
# Each entry has the settings of the system after `from:`; what you add below it comes before those.
"""
COMPUTE_CAPABILITY = {"T4": 7.5, "A100": 8.0, "H100": 9.0, "H200": 9.0}
"""Of the GPUs in the registry (developer.nvidia.com/cuda-gpus, 2026-11-23)."""


class AlreadyThere(Exception):
    """There is a system of this name; the text names its file."""


Starts = Mapping[str, Mapping[Scenario, Entry]]
"""The entries that a system starts from, by benchmark and scenario."""


def nearest(facts: MachineFacts, compute_capability: str, rows: Sequence[Row]) -> str:
    """The id of the nearest of these systems: the same accelerator, else the nearest compute capability, then memory;
    of those the nearest count, by ratio. "cpu" for a machine without accelerator; empty where no kind fits.
    """
    if facts.kind == CPU:
        return CPU
    fitting = [row for row in rows if row.kind == facts.kind]

    def distance(row: Row) -> tuple[bool, float, float]:
        known = COMPUTE_CAPABILITY.get(row.accelerator.partition("-")[0], 0.0)
        generations = abs(known - float(compute_capability or known))
        sizes = _memory_gb(row.accelerator), _memory_gb(facts.accelerator)
        return row.accelerator != facts.accelerator, generations, max(sizes) / min(sizes) if all(sizes) else 0.0

    least = min(map(distance, fitting), default=None)
    best = registry.nearest([row for row in fitting if distance(row) == least], facts.count)
    return best.system_id if best else ""


def _memory_gb(accelerator: str) -> int:
    found = re.search(r"-(\d+)GB$", accelerator)
    return int(found[1]) if found else 0


def grouped(starts: Starts) -> dict[tuple[str, str], list[str]]:
    """The scenarios by benchmark and the system that they start from."""
    found: dict[tuple[str, str], list[str]] = {}
    for benchmark, entries in starts.items():
        for scenario, entry in entries.items():
            found.setdefault((benchmark, entry.system), []).append(scenario.value)
    return found


def text_of(system: str, day: str, facts: MachineFacts, starts: Starts, *, is_stub: bool) -> str:
    """The text of the file; with `is_stub` every field is listed as a comment, with what it has without it."""
    lines = [HEAD + (_without_effect(facts) if is_stub else "") + f"system: {system}", f"date: {day}", "machine:"]
    lines += [f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in asdict(facts).items()]
    lines.append("configs:")
    for benchmark, entries in starts.items():
        lines.append(f"  {benchmark}:")
        for scenario, entry in entries.items():
            lines += [f"    {scenario.value}:", f"      from: {entry.system}"]
            lines += _stub_lines(scenario, entry) if is_stub else []
    return "\n".join(lines) + "\n"


def _without_effect(facts: MachineFacts) -> str:
    names = sorted(one.name for one in FIELDS.values() if facts.kind in one.kinds and not (one.input or one.is_refused))
    text = f"Fields of NVIDIA's configurations that may be here and have no effect: {', '.join(names)}."
    return textwrap.indent(textwrap.fill(text, 118), "# ") + "\n"


def _stub_lines(scenario: Scenario, entry: Entry) -> list[str]:
    must = required(scenario, entry.kind)
    lines: dict[bool, list[str]] = {True: [], False: []}
    for field in FIELDS.values():
        if field.input and not field.misfit(scenario, entry.kind):
            has = entry.layers[DEFAULT].get(field.name)
            said = f"{entry.system} has {has.value}" if has else "not set"
            unit = f"{field.unit}; " if field.unit else ""
            lines[field.name in must].append(f"      # {field.name}:   # {unit}{said}")
    return ["      # required:", *lines[True], "      # optional:", *lines[False]]


def put(path: Path, text: str, *, is_replaced: bool) -> None:
    """Puts the file in place, whole; of two that do so at once, one. Raises AlreadyThere and OSError."""
    if is_replaced:
        write_whole(path, text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not write_once(path, text.encode("utf-8")):
        raise AlreadyThere(f"{path.stem} is there already: {path}")
