"""Custom systems: one file each, `<folder>/<id>.yaml`, written by add-mlperf-custom-system and edited by its user.

    system: my_box
    date: 2026-11-23
    machine:                      # what it was made on, and is recognised by
      kind: nvidia
      accelerator: A100-SXM4-40GB
      count: 4
      cpu: AMD EPYC 7742 64-Core Processor
      threads: 128
    configs:
      resnet50:
        Server:
          from: A100-SXM4x8       # its rates are scaled 4/8
          gpu_batch_size: 96      # the user's own, over all of that

A config starts from an entry of the registry (`cpu`: from that of machines without accelerator).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from machine_facts.known_systems import Row
from mlperf_results.names import Scenario, UnknownName, parse_scenario

from .effective import CPU, Value
from .sheets import Place, Reader, values_of
from .yamlnodes import Node, parse

ID_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""What NVIDIA's add_custom_system.py (mlcommons/inference_results_v4.1) takes for an id; read 2026-11-23."""
FOLDER_VARIABLE = "MLPINF_CUSTOM_DEFINITION_PATH"
"""Of the environment; NVIDIA's harness of v4.1 keeps custom systems there, too."""
FOLDER_NAME = "mlperf-custom-systems"
KINDS = ("cpu", "nvidia", "jetson")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a custom system is recognised by. count: its accelerators, 0 for kind cpu."""

    kind: str
    accelerator: str
    count: int
    cpu: str
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomConfig:
    """One benchmark in one scenario: the entry it starts from, and the user's own values."""

    parent: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomSystem:
    """A system of the user; configs by (benchmark of the registry, scenario)."""

    system: str
    date: str
    machine: MachineFacts
    configs: Mapping[tuple[str, Scenario], CustomConfig]
    path: Path


def custom_folder(given: str, home: Path) -> Path:
    """Return the folder of the custom systems: the one that FOLDER_VARIABLE gives, else one in CM's home."""
    return Path(given or home / FOLDER_NAME).expanduser()


def read_custom(path: Path, known: Mapping[str, Row]) -> tuple[CustomSystem, tuple[str, ...]]:
    """Return a custom system and all that is wrong with its file. Raises OSError."""
    problems: list[str] = []
    root = parse(path.read_text(encoding="utf-8", errors="replace"), str(path), problems).children
    name = _text(root, "system")
    if not ID_PATTERN.fullmatch(name) or name != path.stem:
        problems.append(f"{path}: system: found {name!r}; allowed: {path.stem}, letters, digits and _, a letter first")
    facts = root.get("machine", Node({}, 1)).children
    machine = MachineFacts(
        kind=_text(facts, "kind"),
        accelerator=_text(facts, "accelerator"),
        count=_count(facts, "count"),
        cpu=_text(facts, "cpu"),
        threads=_count(facts, "threads"),
    )
    if machine.kind not in KINDS or (machine.kind != CPU) != (machine.count > 0):
        problems.append(f"{path}: machine: allowed: kind {', '.join(KINDS)}; count from 1, 0 for {CPU}")
    configs = {}
    for benchmark, block in root.get("configs", Node({}, 1)).children.items():
        for word, row in block.children.items():
            try:
                scenario = parse_scenario(word)
            except UnknownName as error:
                problems.append(f"{path}:{row.line}: configs.{benchmark}: {error}")
                continue
            place = Place(benchmark=benchmark, scenario=scenario, shown=str(path), has_high_accuracy=True, known=known)
            reader, rest = Reader(place, problems), dict(row.children)
            parent = _text(row.children, "from")
            rest.pop("from", None)
            if parent not in (CPU, *known):
                reader.problem(row.line, f"configs.{benchmark}.{word}.from", f"allowed: {CPU}, {', '.join(known)}")
            values = values_of(reader, rest, f"configs.{benchmark}.{word}", machine.kind)
            configs[benchmark, scenario] = CustomConfig(parent=parent, values=values)
    system = CustomSystem(system=name, date=_text(root, "date"), machine=machine, configs=configs, path=path)
    return system, tuple(problems)


def _text(block: Mapping[str, Node], name: str) -> str:
    value = block[name].value if name in block else ""
    return value if isinstance(value, str) else ""


def _count(block: Mapping[str, Node], name: str) -> int:
    value = block[name].value if name in block else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
