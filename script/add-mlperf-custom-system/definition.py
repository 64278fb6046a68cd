"""The file of a custom system: its text, and how it is put in place. The text is pure."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mlperf_configs.custom import MachineFacts
from mlperf_configs.effective import CPU
from mlperf_configs.fields import REQUIRED, Fate, Field, fields_of
from mlperf_configs.sheets import Entry
from mlperf_results.names import Scenario
from mlperf_results.wholefile import write_whole

HEAD = """# A system of your own for crowdperf's registry of configurations (get-mlperf-benchmark-config).
# Each entry has the settings of the system after `from:`; what you add below it comes before those.
"""


class AlreadyThere(Exception):
    """There is a system of this name; the text names its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The entry that a benchmark in a scenario starts from."""

    benchmark: str
    scenario: Scenario
    entry: Entry


def text_of(system: str, day: str, facts: MachineFacts, starts: Sequence[Start], *, is_stub: bool) -> str:
    """The text of the file; with `is_stub` every field is listed as a comment, with what it has without it."""
    head = HEAD + (_without_effect(facts) if is_stub else "")
    lines = [head + f"system: {system}", f"date: {day}", "machine:"]
    lines += [f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in asdict(facts).items()]
    lines.append("configs:")
    for benchmark in dict.fromkeys(start.benchmark for start in starts):
        lines.append(f"  {benchmark}:")
        for start in (one for one in starts if one.benchmark == benchmark):
            lines += [f"    {start.scenario.value}:", f"      from: {start.entry.system}"]
            lines += _stub_lines(start) if is_stub else []
    return "\n".join(lines) + "\n"


def _without_effect(facts: MachineFacts) -> str:
    names = {one.name for scenario in Scenario for one in fields_of(scenario, facts.kind) if one.fate is Fate.REPORTED}
    text = f"Fields of NVIDIA's configurations that may be here and have no effect: {', '.join(sorted(names))}."
    return textwrap.indent(textwrap.fill(text, 118), "# ") + "\n"


def _stub_lines(start: Start) -> list[str]:
    required = ("precision",) if start.entry.kind == CPU else REQUIRED[start.scenario]
    mapped = [one for one in fields_of(start.scenario, start.entry.kind) if one.fate is Fate.MAPPED]
    lines = []
    for title, rows in (
        ("required", [one for one in mapped if one.name in required]),
        ("optional", [one for one in mapped if one.name not in required]),
    ):
        lines += [f"      # {title}:", *(f"      # {_stub_line(one, start.entry)}" for one in rows)]
    return lines


def _stub_line(field: Field, entry: Entry) -> str:
    has = entry.values.get(field.name)
    said = f"{entry.system} has {has.value}" if has else "not set"
    unit = f"{field.unit}; " if field.unit else ""
    return f"{field.name}:   # {unit}{said}"


def put(path: Path, text: str, *, is_replaced: bool) -> None:
    """Puts the file in place, whole; of two that do so at once, one. Raises AlreadyThere and OSError."""
    if is_replaced:
        write_whole(path, text)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_whole(unfinished, text)
    try:
        os.link(unfinished, path)  # fails where there is one, unlike a rename
    except FileExistsError as error:
        raise AlreadyThere(f"{path.stem} is there already: {path}") from error
    finally:
        unfinished.unlink()


def as_state(system: str, path: Path, facts: MachineFacts, starts: Sequence[Start]) -> Mapping[str, object]:
    """The system for recipes above."""
    rows = [{"benchmark": one.benchmark, "scenario": one.scenario.value, "from": one.entry.system} for one in starts]
    return {"system": system, "file": str(path), "machine": asdict(facts), "configs": rows}
