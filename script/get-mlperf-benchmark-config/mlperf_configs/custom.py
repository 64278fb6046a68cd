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

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine_facts.known_systems import Row
from mlperf_results.names import Scenario, UnknownName, parse_scenario

from .blocks import read_block
from .effective import Value
from .fields import CPU
from .sheets import values_of

ID_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""What NVIDIA's add_custom_system.py (mlcommons/inference_results_v4.1) takes for an id; read 2026-11-23."""
FOLDER_VARIABLE = "MLPINF_CUSTOM_DEFINITION_PATH"
"""Of the environment; NVIDIA's harness of v4.1 keeps custom systems there, too."""
FOLDER_NAME = "mlperf-custom-systems"
KINDS = (CPU, "nvidia", "jetson")


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
    """A system of the user. configs: by (benchmark, scenario) the system it starts from, and the user's own values."""

    system: str
    date: str
    machine: MachineFacts
    configs: Mapping[tuple[str, Scenario], tuple[str, Mapping[str, Value]]]
    path: Path


def custom_folder(given: str, home: Path) -> Path:
    """Return the folder of the custom systems: the one that FOLDER_VARIABLE gives, else one in CM's home."""
    return Path(given or home / FOLDER_NAME).expanduser()


def own_folder(cmind: Any = None, given: str = "") -> Path:
    """Return the folder of this user's custom systems. cmind: CM, where a call of it is made; a plan has none."""
    home = Path(cmind.repos_path) if cmind else Path(os.environ.get("CM_REPOS") or Path.home() / "CM")
    return custom_folder(given or os.environ.get(FOLDER_VARIABLE, ""), home)


def folder_of_call(i: Mapping[str, Any]) -> Path:
    """Return the same for the call of a hook: a relative one begins where its user is."""
    env = i["env"]
    folder = own_folder(getattr(i.get("automation"), "cmind", None), str(env.get(FOLDER_VARIABLE) or ""))
    return Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd()) / folder


def read_custom(path: Path, known: Mapping[str, Row]) -> tuple[CustomSystem, tuple[str, ...]]:
    """Return a custom system and all that is wrong with its file. Raises OSError."""
    root = read_block(path.read_text(encoding="utf-8", errors="replace"), str(path))
    name, facts = root.text("system"), root.block("machine")
    if not ID_PATTERN.fullmatch(name) or name != path.stem:
        root.wrong(f"found {name!r}; allowed: {path.stem}, letters, digits and _, a letter first", "system")
    kind, count = facts.text("kind"), facts.count("count")
    if kind not in KINDS or (kind != CPU) != (count > 0):
        root.wrong(f"allowed: kind {', '.join(KINDS)}; count from 1, 0 for {CPU}", "machine")
    accelerator, cpu, threads = facts.text("accelerator"), facts.text("cpu"), facts.count("threads")
    machine = MachineFacts(kind=kind, accelerator=accelerator, count=count, cpu=cpu, threads=threads)
    configs: dict[tuple[str, Scenario], tuple[str, Mapping[str, Value]]] = {}
    for benchmark, block in root.blocks("configs").items():
        for word, row in block.blocks().items():
            parent = row.text("from")
            if parent not in (CPU, *known):
                row.wrong(f"allowed: {CPU}, {', '.join(known)}", "from")
            try:
                scenario = parse_scenario(word)
                configs[benchmark, scenario] = (parent, values_of(row, scenario, kind, ("from",)))
            except UnknownName as error:
                row.wrong(str(error))
    system = CustomSystem(system=name, date=root.text("date"), machine=machine, configs=configs, path=path)
    return system, tuple(root.problems)
