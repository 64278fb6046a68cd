"""Makes the metrics of VirtualClient's NvidiaSmiMonitor of load.json, what the harness saw of a run's GPUs. Pure.

Names and units as in its NvidiaSmiResultsParser (microsoft/VirtualClient, 53e432ad, read November 2026); of the
many that it asks nvidia-smi for, the harness has these three.
"""

from collections.abc import Mapping
from typing import Any

from crowdperf.fronts.metrics.metrics import LOWER, UNDEFINED, Metric

TOOL, SCENARIO = "nvidia-smi", "Nvidia GPU Status"
_MIB = 1024 * 1024


def gpu_metrics(load: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return mean utilization, peak memory and mean power of each GPU; what the driver did not report is left out."""
    columns, rows = list(load.get("columns") or ()), list(load.get("rows") or ())
    found = []
    for gpu in load.get("gpus") or ():
        index = str(gpu.get("index"))
        about = {"gpu_index": index, "gpu_name": str(gpu.get("name"))}

        def values(name: str, index: str = index) -> list[float]:
            place = columns.index(f"gpu{index}_{name}") if f"gpu{index}_{name}" in columns else None
            return [float(row[place]) for row in rows if place is not None and row[place] is not None]

        for name, unit, relativity, seen in (
            ("utilization.gpu [%]", "%", UNDEFINED, [sum(v) / len(v) for v in [values("percent")] if v]),
            ("memory.used [MiB]", "mebibytes", UNDEFINED, [max(v) / _MIB for v in [values("bytes")] if v]),
            ("power.draw.average [W]", "watts", LOWER, [sum(v) / len(v) for v in [values("w")] if v]),
        ):
            found += [Metric(name=name, value=round(value, 3), unit=unit, relativity=relativity,
                             category=f"GPU {index}", metadata=about) for value in seen]  # fmt: skip
    return tuple(found)
