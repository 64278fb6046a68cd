"""The known system whose settings a machine starts from. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from machine_facts.known_systems import Row
from mlperf_configs import registry
from mlperf_configs.custom import MachineFacts
from mlperf_configs.effective import CPU

COMPUTE_CAPABILITY = {"T4": 7.5, "A100": 8.0, "H100": 9.0, "H200": 9.0}
"""Of the GPUs in the registry (developer.nvidia.com/cuda-gpus, 2026-11-23)."""


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
        memory = _ratio(_memory_gb(row.accelerator), _memory_gb(facts.accelerator))
        return row.accelerator != facts.accelerator, generations, memory

    least = min(map(distance, fitting), default=None)
    best = registry.nearest([row for row in fitting if distance(row) == least], facts.count)
    return best.system_id if best else ""


def _memory_gb(accelerator: str) -> int:
    found = re.search(r"-(\d+)GB$", accelerator)
    return int(found[1]) if found else 0


def _ratio(one: int, other: int) -> float:
    return max(one / other, other / one) if one and other else 0.0
