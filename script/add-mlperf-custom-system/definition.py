"""The file of a custom system: what it starts from, and its text. Pure."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from crowdperf.fronts.nvidia import registry
from crowdperf.fronts.nvidia.fields import CPU, FIELDS, required
from crowdperf.fronts.nvidia.sheets import DEFAULT, Entry, Key, MachineFacts
from crowdperf.machine.known_systems import Row

HEAD = """# Your own system for crowdperf's registry of configurations (get-mlperf-benchmark-config).
# Each entry has the settings of the system after `from:`. Lines that you add below it take precedence.
"""
COMPUTE_CAPABILITY = {"T4": 7.5, "A100": 8.0, "H100": 9.0, "H200": 9.0}
"""Of the GPUs in the registry (developer.nvidia.com/cuda-gpus, 2026-11-23)."""
Starts = Mapping[Key, Entry]
"""The entries that a system starts from."""


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


def definition_text(system: str, day: str, facts: MachineFacts, starts: Starts, *, is_stub: bool) -> str:
    """The text of the file; with `is_stub` every field is listed as a comment, with what it has without it."""
    idle = sorted(one.name for one in FIELDS.values() if facts.kind in one.kinds and not (one.input or one.is_refused))
    note = f"Fields of NVIDIA's configurations that may be here and have no effect: {', '.join(idle)}."
    head = HEAD + (textwrap.indent(textwrap.fill(note, 118), "# ") + "\n" if is_stub else "")
    lines = [f"{head}system: {system}", f"date: {day}", "machine:"]
    lines += [f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in asdict(facts).items()]
    lines.append("configs:")
    for key, entry in starts.items():
        title = f"  {key[0]}:"
        lines += [*([title] if title not in lines else []), f"    {key[1].value}:", f"      from: {entry.system}"]
        lines += _stub_lines(key, entry) if is_stub else []
    return "\n".join(lines) + "\n"


def _stub_lines(key: Key, entry: Entry) -> list[str]:
    lines: dict[bool, list[str]] = {True: ["      # required:"], False: ["      # optional:"]}
    for field in FIELDS.values():
        if field.input and not field.misfit(key[1], entry.kind):
            has = entry.layers[DEFAULT].get(field.name)
            said = f"{entry.system} has {has.value}" if has else "not set"
            unit = f"{field.unit}; " if field.unit else ""
            lines[field.name in required(key[1], entry.kind)].append(f"      # {field.name}:   # {unit}{said}")
    return [*lines[True], *lines[False]]
