"""What a run's load.json recorded, in one sentence and as plots: memory, CPU and each GPU over time, and the
reports of the measured server. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from crowdperf.kit.html_page import figures, folded, text
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import line_plot

_MEBIBYTE = 1024 * 1024
FLAT_SHARE = 0.1
"""Values that differ by less than this share of the highest need no plot: this project's choice."""
MIN_POINTS = 3


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


def _recorded(load: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float, float | None]]:
    """What can be recorded: words, unit, column, divisor, the upper end of the axis."""
    yield "memory of the process", "MiB", "rss_bytes", _MEBIBYTE, None
    yield "CPU, the process", "% of one core", "process_cpu_percent", 1.0, None
    yield "CPU, all programs", "%", "machine_cpu_percent", 1.0, 100.0
    for gpu in load.get("gpus", ()):
        name, stem = f"GPU {gpu['index']} ({gpu['name']})", f"gpu{gpu['index']}"
        yield name, "%", f"{stem}_percent", 1.0, 100.0
        yield f"{name} memory", "MiB", f"{stem}_bytes", _MEBIBYTE, None
        yield f"{name} power", "W", f"{stem}_w", 1.0, None


_OF_SERVER = (
    ("KV cache in use", "%", "kv_cache", 0.01, 100.0),
    ("running requests", "", "running", 1.0, None),
    ("waiting requests", "", "waiting", 1.0, None),
)
"""Those of `text.server.series` of result.json (crowdperf/call/server_metrics.py), as `_recorded` has them."""


def load_part(name: str, load: Mapping[str, Any] | None) -> str:
    """One line about a run, which opens its plots. Flat ones are left out: the line says all that they show."""
    return _part(name, load or {}, _recorded(load or {}), "no load was recorded")


def server_part(name: str, text: Mapping[str, Any]) -> str:
    """The same of what the server reported over time, empty without it. text: of result.json."""
    found = (text.get("server") or {}).get("series") or {}
    return _part(f"{name}, the server", found, _OF_SERVER, "no metric over time") if found.get("rows") else ""


def _part(
    name: str, load: Mapping[str, Any], recorded: Iterable[tuple[str, str, str, float, float | None]], otherwise: str
) -> str:
    said, plots = [], []
    for words, unit, column, divisor, top in recorded:
        points = series(load, column, divisor)
        values = [value for _, value in points if value is not None]
        if not values:
            continue
        low, high = min(values), max(values)
        is_flat = len(values) < MIN_POINTS or high - low <= FLAT_SHARE * high
        spread = f"{quantity(low, 3)} to {quantity(high, 3)}" if not is_flat else f"about {quantity(fmean(values), 3)}"
        said.append(f"{words} {spread} {unit}".strip())
        if not is_flat:
            plots.append((f"{words}, {unit}" if unit else words, line_plot(words, unit, points, top)))
    sentence = f"{name}: {'; '.join(said) or otherwise}"
    return folded(sentence, figures(plots)) if plots else f"<p>{text(sentence)}</p>"
