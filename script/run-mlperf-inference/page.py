"""Renders the outcome of a call as one static page, `results.html`: no scripts, nothing from elsewhere. Pure.

Every text that comes from a run, a file or a user is escaped; the page forbids itself to load anything. It shows what
results.json and environment.json hold, and each run's memory and load over time from its load.json.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from .outcome import score_text, target_text
from .plot import line_plot
from .table import ABSENT, format_value, short_name

STYLE = """
:root { color-scheme: light dark; --line: #1f6feb; --soft: #8885; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; }
.label { border: 2px solid currentColor; border-radius: .4rem; font-weight: 600; padding: .5rem .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--soft); padding: .3rem .7rem; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.plots { display: flex; flex-wrap: wrap; gap: .5rem 1rem; } figure { margin: 0; } figcaption { font-size: .85rem; }
svg text { font: 10px system-ui, sans-serif; fill: currentColor; }
svg .axis { fill: none; stroke: var(--soft); } svg .line { fill: none; stroke: var(--line); stroke-width: 1.5; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; } pre { overflow-x: auto; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MEBIBYTE = 1024 * 1024
_NANOSECONDS_PER_MS = 1e6
LATENCIES = (("p50_ns", "50 %"), ("p90_ns", "90 %"), ("p99_ns", "99 %"), ("p99_9_ns", "99.9 %"), ("max_ns", "all"))


def text(value: object) -> str:
    """A value as HTML text; a dash for None."""
    return ABSENT if value is None else html.escape(str(value))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """A table; the columns in ``numbers`` are aligned to the right."""

    def row(cells: Sequence[object], tag: str) -> str:
        marked = [
            f'<{tag} class="number">{text(cell)}</{tag}>' if place in numbers else f"<{tag}>{text(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(marked)}</tr>"

    lines = ['<div class="wide"><table>', row(headings, "th"), *(row(cells, "td") for cells in rows), "</table></div>"]
    return "\n".join(lines)


def results_table(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """The table of the call, one row for each scenario and further accuracy metric."""
    rows: list[tuple[object, ...]] = []
    for row in scenarios:
        performance, accuracy = row["performance"], row["accuracy"]
        figure: tuple[object, ...] = (ABSENT, ABSENT, ABSENT, ABSENT)
        if performance is not None:
            metric, verdict = performance["metric"], "VALID" if performance["valid"] else "INVALID"
            value = (ABSENT, ABSENT, ABSENT)
            if metric is not None:
                value = (short_name(metric["name"]), format_value(metric["value"]), metric["unit"])
            figure = (*value, verdict)
        metrics = [] if accuracy is None else accuracy.get("metrics", [])
        cells = [(metric["name"], score_text(metric["value"]), target_text(metric)) for metric in metrics]
        first, *others = cells or [(ABSENT, ABSENT, ABSENT)]
        rows.append((row["scenario"], *figure, *first, "yes" if row["passed"] else "NO"))
        rows += [("", "", "", "", "", *more, "") for more in others]
    headings = ("Scenario", "Metric", "Value", "Unit", "LoadGen", "Accuracy", "Score", "Target", "Pass")
    return table(headings, rows, numbers=(2, 6, 7))


def latency_table(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Latencies of the performance runs in ms; of the one query in Offline, of queries of eight in MultiStream."""
    rows = []
    for row in scenarios:
        latency = (row["performance"] or {}).get("latency")
        if latency is not None:
            values = [format_value(latency[key] / _NANOSECONDS_PER_MS) for key, _ in LATENCIES if key in latency]
            rows.append((row["scenario"], *values))
    headings = ("Answered within, ms", *(words for _, words in LATENCIES))
    return table(headings, rows, numbers=range(1, len(headings))) if rows else "<p>No performance run was made.</p>"


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
    figures = [f"<figure><figcaption>{text(words)}</figcaption>{svg}</figure>" for words, svg in plots if svg]
    return '<div class="plots">' + "\n".join(figures) + "</div>" if figures else "<p>Nothing was recorded.</p>"


def runs_part(runs: Sequence[Mapping[str, Any]], loads: Mapping[str, Mapping[str, Any]]) -> str:
    """Each run with its load over time."""
    parts = []
    for run in runs:
        folder = run["folder"]
        parts.append(f"<h3>{text(folder)}</h3>")
        parts.append(load_plots(loads[folder]) if folder in loads else "<p>No load.json was left.</p>")
    return "\n".join(parts)


def environment_part(environment: Mapping[str, Any]) -> str:
    """The facts of the machine and the software, and the command that repeats the call."""
    versions: dict[str, set[str]] = {}
    for run in environment["runs"]:
        for name, version in (run.get("versions") or {}).items():
            versions.setdefault(str(name), set()).add(str(version))
    software = [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())]
    host = [(key.removeprefix("CM_HOST_"), value) for key, value in sorted(environment["host"].items())]
    parts = [
        f"<pre>{text(environment['command'])}</pre>",
        table(("Software", "Version"), software),
        table(("Machine", ""), host),
    ]
    return "\n".join(parts)


def render(
    title: str,
    results: Mapping[str, Any],
    environment: Mapping[str, Any],
    loads: Mapping[str, Mapping[str, Any]],
) -> str:
    """The whole page; ``loads`` has the content of load.json by the folder of the run."""
    problems = [problem for row in results["scenarios"] for problem in row["problems"]] + list(results["missing"])
    notes = [*(f"Not passed: {problem}" for problem in problems), *results["notes"]]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}: {text(results['label'])}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{text(title)}</h1>",
        f'<p class="label">{text(results["label"])}</p>',
        results_table(results["scenarios"]),
        f"<ul>{''.join(f'<li>{text(note)}</li>' for note in notes)}</ul>" if notes else "",
        "<h2>Latencies</h2>",
        latency_table(results["scenarios"]),
        "<h2>Memory and load during the runs</h2>",
        runs_part(environment["runs"], loads),
        "<h2>Made with</h2>",
        environment_part(environment),
        f"<p>{text(results['label'])}</p>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"
