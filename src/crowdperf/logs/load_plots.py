"""Draws what a run's load.json recorded: memory, load of the processor and of each GPU over time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdperf.kit.html_page import figures
from crowdperf.kit.plot import line_plot

NOTHING_RECORDED = "<p>Nothing was recorded.</p>"
_MEBIBYTE = 1024 * 1024


def series(load: Mapping[str, Any], column: str, divisor: float = 1.0) -> list[tuple[float, float | None]]:
    """One column of a load.json over its seconds; empty where it has no such column."""
    columns = list(load.get("columns", ()))
    if column not in columns:
        return []
    place, time_place = columns.index(column), columns.index("time_s")
    return [
        (float(row[time_place]), None if row[place] is None else float(row[place]) / divisor)
        for row in load.get("rows", ())
    ]


def load_plots(load: Mapping[str, Any]) -> str:
    """The plots of one run: memory, processor, and each GPU's load and memory."""
    plots = [
        ("Memory of the process, MiB", line_plot("memory", "MiB", series(load, "rss_bytes", _MEBIBYTE))),
        ("Processor, the process, % of one core", line_plot("process", "%", series(load, "process_cpu_percent"))),
        ("Processor, all programs, %", line_plot("machine", "%", series(load, "machine_cpu_percent"), top=100.0)),
    ]
    for gpu in load.get("gpus", ()):
        name, stem = f"GPU {gpu['index']} ({gpu['name']})", f"gpu{gpu['index']}"
        plots.append((f"{name}, %", line_plot("load", "%", series(load, f"{stem}_percent"), top=100.0)))
        plots.append((f"{name}, MiB", line_plot("memory", "MiB", series(load, f"{stem}_bytes", _MEBIBYTE))))
        plots.append((f"{name}, W", line_plot("power", "W", series(load, f"{stem}_w"))))
    return figures(plots) or NOTHING_RECORDED
