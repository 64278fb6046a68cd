"""Renders the outcome of a call as one static page, `results.html`: no scripts, nothing from elsewhere. Pure.

It shows what results.json and environment.json hold, and each run's memory and load over time from its load.json. The
frame, the tables and the plots are those of `crowdperf/kit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crowdperf.kit.html_page import bullets, document, folded, table, text
from crowdperf.logs.load_plots import load_plots
from crowdperf.logs.text_metrics import page_part
from crowdperf.rules.backends import is_of_client

from .runsettings import HEADING, settings_rows
from .table import HEADINGS, format_value, result_rows

HOST_NAME_KEY = "CM_HOST_SYSTEM_NAME"
"""Not kept, and of older results not shown: what a machine is called says nothing about its results."""

_NANOSECONDS_PER_MS = 1e6
LATENCY_NOTE = (
    "These are the latencies that were seen. The results of SingleStream and MultiStream in the table above are"
    " LoadGen's early-stopping estimates of the 90th and 99th percentile: never lower than the percentile seen, and"
    " higher the fewer queries a run had."
)
LATENCIES = (("p50_ns", "50 %"), ("p90_ns", "90 %"), ("p99_ns", "99 %"), ("p99_9_ns", "99.9 %"), ("max_ns", "all"))


def latency_table(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Latencies of the performance runs in ms; of the one query in Offline, of queries of eight in MultiStream."""
    rows = []
    for row in scenarios:
        latency = (row["performance"] or {}).get("latency")
        if latency is not None:
            values = [format_value(latency[key] / _NANOSECONDS_PER_MS) for key, _ in LATENCIES if key in latency]
            rows.append((row["scenario"], *values))
    headings = ("Answered within, ms", *(words for _, words in LATENCIES))
    if not rows:
        made = any(row["performance"] for row in scenarios)
        return f"<p>{'No latency was measured.' if made else 'No performance run was made.'}</p>"
    return table(headings, rows, numbers=range(1, len(headings))) + f'\n<p class="quiet">{text(LATENCY_NOTE)}</p>'


def text_part(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the performance runs say of answers that are made token by token; empty without any."""
    rows = [(row["scenario"], found) for row in scenarios if (found := (row["performance"] or {}).get("text"))]
    return ["<h2>Answers</h2>", page_part(rows)] if rows else []


def made_on(results: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """Run id, time and machine of the call, which is the client's where a server was measured; a host's name is no part
    of it."""
    started = min((run["started_utc"] for run in environment["runs"]), default="")
    performance: Mapping[str, Any] = next(
        (row["performance"] for row in results["scenarios"] if (row["performance"] or {}).get("machine")), {}
    )
    machine = performance.get("machine") or {}
    words = [f"Run {results['run_id']}"]
    if started:
        words.append(f"{started[:16].replace('T', ' ')} UTC")
    if machine:
        found = [f"{machine.get('processor')}, {machine.get('core_count')} processors"]
        found += [str(gpu.get("name")) for gpu in machine.get("gpus") or ()]
        if is_of_client(performance):
            found = [f"measured: a server behind an endpoint, whose machine is not known; client: {', '.join(found)}"]
        words += found
    return f'<p class="quiet">{text("; ".join(words))}</p>'


def settings_part(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """With what each scenario was measured; empty where nothing says it."""
    rows = settings_rows(scenarios)
    return table(("Scenario", "Settings"), rows, caption=f"{HEADING}.") if rows else ""


def runs_part(runs: Sequence[Mapping[str, Any]], loads: Mapping[str, Mapping[str, Any]]) -> str:
    """Each run with its load over time."""
    parts = []
    for run in runs:
        folder = run["folder"]
        parts.append(f"<h3>{text(folder)}</h3>")
        parts.append(load_plots(loads[folder]) if folder in loads else "<p>No load.json was left.</p>")
    return "\n".join(parts)


def environment_part(environment: Mapping[str, Any], is_client: bool) -> str:
    """The facts of the machine and the software, and the command that repeats the call. is_client: the machine asked a
    server, which was measured."""
    versions: dict[str, set[str]] = {}
    for run in environment["runs"]:
        for name, version in (run.get("versions") or {}).items():
            versions.setdefault(str(name), set()).add(str(version))
    software = [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())]
    software = [*([("crowdperf", made)] if (made := environment["crowdperf"].get("text")) else []), *software]
    host = [
        (key.removeprefix("CM_HOST_"), value)
        for key, value in sorted(environment["host"].items())
        if key != HOST_NAME_KEY and value != ""
    ]
    whose = "client, not of the server" if is_client else "machine"
    parts = [
        f"<pre>{text(environment['command'])}</pre>",
        table(("Software", "Version"), software, kind="facts"),
        folded(f"The {len(host)} facts of the {whose}", table(("Machine", "Value"), host, kind="facts")),
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
        f"<h1>{text(title)}</h1>",
        made_on(results, environment),
        f'<p class="label">{text(results["label"])}</p>',
        *(f'<p class="label">{text(line)}</p>' for line in results["disturbances"]),
        table(HEADINGS, result_rows(results["scenarios"]), numbers=(2, 6, 7), kind="stacked"),
        bullets(notes),
        settings_part(results["scenarios"]),
        *text_part(results["scenarios"]),
        "<h2>Latencies</h2>",
        latency_table(results["scenarios"]),
        "<h2>Memory and load during the runs</h2>",
        runs_part(environment["runs"], loads),
        "<h2>Made with</h2>",
        environment_part(environment, any(is_of_client(row["performance"] or {}) for row in results["scenarios"])),
        f"<p>{text(results['label'])}</p>",
    ]
    return document(f"{title}: {results['label']}", parts)
