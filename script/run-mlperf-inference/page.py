"""Renders the outcome of a call as one static page, `results.html`: no scripts, nothing from elsewhere. Pure.

It shows what results.json and environment.json contain, and each run's memory and load over time from its load.json.
The frame, the tables and the charts are those of `crowdperf/kit`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crowdperf.kit.drawing import legend
from crowdperf.kit.html_page import ABSENT, Html, bullets, chart, copyable, document, folded, table, text
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import Quantile, latency_plot, latency_series
from crowdperf.logs.efficiency import efficiency_page
from crowdperf.logs.load_plots import load_part, server_part
from crowdperf.logs.text_metrics import page_part
from crowdperf.rules.backends import is_of_client

from .outcome import score_text, target_text
from .runsettings import HEADING, settings_rows
from .session import HOST_NAME_KEY

_NANOSECONDS_PER_MS = 1e6
LATENCY_NOTE = (
    "These latencies were measured. The results of SingleStream and MultiStream above are LoadGen's early-stopping"
    " estimates of the 90th and 99th percentile: never lower than the measured percentile, and higher the fewer queries"
    " a run had. In MultiStream a query has 8 samples, and in Offline all samples are one query, so it is not"
    " in the chart."
)
LATENCIES = (("p50_ns", "p50", 50.0), ("p90_ns", "p90", 90.0), ("p99_ns", "p99", 99.0), ("p99_9_ns", "p99.9", 99.9),
             ("max_ns", "max", 100.0))  # fmt: skip
RULE = "rule"
"""The origin of a setting that the benchmark's rules give."""


def _tag(words: str, kind: str) -> str:
    return f'<span class="tag {kind}">{text(words)}</span>'


def _card(row: Mapping[str, Any]) -> Iterator[str]:
    """One scenario: its result, LoadGen's verdict, the accuracy, the labels, where the logs are."""
    performance, accuracy = row["performance"], row["accuracy"]
    yield f'<li class="card"><h2>{text(row["scenario"])}</h2>'
    metric = (performance or {}).get("metric")
    if metric is not None:
        yield f'<p class="figure">{quantity(metric["value"])} <span class="unit">{text(metric["unit"])}</span></p>'
        better = "" if metric.get("higher_is_better", True) else ", lower is better"
        yield f'<p class="quiet">{text(metric["name"])}{better}</p>'
    verdict = "no performance run"
    if performance is not None:
        verdict = "VALID" if performance["valid"] else "INVALID"
    yield f'<p class="verdict">{_tag(verdict, {"VALID": "good", "INVALID": "bad"}.get(verdict, "warn"))}'
    if performance is not None and performance.get("label"):
        yield _tag(str(performance["label"]).partition(",")[0], "warn")
    if not row["passed"]:
        yield _tag("not passed", "bad")
    yield "</p>"
    scores = (accuracy or {}).get("metrics", ())
    for score in scores:
        passed = {True: "✓ ", False: "✗ "}.get(score.get("passed"), "")
        target = "" if score["target"] is None else f" (target {target_text(score)})"
        yield f"<p>{passed}{text(score['name'])} {score_text(score['value'])}{target}</p>"
    if not scores:
        yield '<p class="quiet">no accuracy run</p>'
    logs = [(words, run.get("folder")) for words, run in (("performance", performance), ("accuracy", accuracy)) if run]
    links = [f'<a href="{text(folder)}/">{words}</a>' for words, folder in logs if folder]
    yield f'<p class="quiet">Logs: {" · ".join(links)}</p></li>' if links else "</li>"


def cards(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """A card for each scenario of results.json."""
    return '<ul class="cards">\n' + "\n".join(line for row in scenarios for line in _card(row)) + "\n</ul>"


def _limits(scenarios: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """The latency limits of the rules; a server of texts has limits of single tokens, which is another axis."""
    for row in scenarios:
        performance = row["performance"] or {}
        limit = (performance.get("run") or {}).get("target_latency_ms") or {}
        is_limited = row["scenario"] in ("Server", "Interactive") and not performance.get("text")
        if is_limited and limit.get("origin") == RULE and limit.get("value"):
            yield f"limit of {row['scenario']}", float(limit["value"])


def latencies(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """The chart and the table of the performance runs' latencies in ms."""
    measured = [
        (row["scenario"], found)
        for row in scenarios
        if (found := (row["performance"] or {}).get("latency")) is not None
    ]
    if not measured:
        made = any(row["performance"] for row in scenarios)
        return f"<p>{'No latency was measured.' if made else 'There is no performance run.'}</p>"
    series = [
        (name, [Quantile(percent, row[key] / _NANOSECONDS_PER_MS) for key, _, percent in LATENCIES if key in row])
        for name, row in measured
        if name != "Offline"
    ]
    drawn = latency_plot("Latency by percentile", "ms", series, list(_limits(scenarios)))
    headings = ("Latency, ms", *(Html(re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", text(name))) for name, _ in measured))
    rows = [
        (words, *(quantity(row[key] / _NANOSECONDS_PER_MS) if key in row else ABSENT for _, row in measured))
        for key, words, _ in LATENCIES
    ]
    shown = table(headings, rows, range(1, len(headings)), caption="Measured latencies in ms", kind="tight")
    drawn_names = [name for name, _ in latency_series(series)]
    names, words = legend(drawn_names), "Answers within a latency, by percentile"
    words += f": {drawn_names[0]}" if len(drawn_names) == 1 else ""
    return "\n".join((chart(drawn, words, names), shown,
                      f'<p class="quiet">{text(LATENCY_NOTE)}</p>'))  # fmt: skip


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
        found = [f"{machine.get('processor')}, {machine.get('core_count')} CPUs"]
        found += [str(gpu.get("name")) for gpu in machine.get("gpus") or ()]
        if is_of_client(performance):
            found = [f"measured: a server behind an endpoint, whose machine is not known; client: {', '.join(found)}"]
        words += found
    return f'<p class="quiet">{text("; ".join(words))}</p>'


def settings_part(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """With what each scenario was measured; empty where nothing says it."""
    rows = settings_rows(scenarios)
    return table(("Scenario", "Settings"), rows, caption=f"{HEADING}.") if rows else ""


def loads_part(scenarios: Sequence[Mapping[str, Any]], loads: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each performance run, which opens its load over time."""
    runs = [(row["scenario"], row["performance"].get("folder", "")) for row in scenarios if row["performance"]]
    servers = [(row["scenario"], row["performance"].get("text") or {}) for row in scenarios if row["performance"]]
    parts = [load_part(scenario, loads.get(folder)) for scenario, folder in runs]
    return "\n".join(filter(None, [*parts, *(server_part(*one) for one in servers)]))


def commands_part(results: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """The commands that repeat, compare and share the result, each to be copied."""
    run_id = results["run_id"]
    return "\n".join(
        (
            copyable("Reproduce: run it again with the same inputs", environment["command"]),
            copyable("Compare with another result", f"cm diff script {run_id} OTHER_RESULT"),
            copyable(
                "Share: show what would be sent to a collector, without sending it",
                f"cm run script --tags=share,mlperf,result --result={run_id} --dry_run",
            ),
            '<p class="quiet">For the last two, be in the folder that contains this result, or give its path.</p>',
        )
    )


def environment_part(environment: Mapping[str, Any], is_client: bool) -> str:
    """The facts of the machine and the software. is_client: the machine asked a server, which was measured."""
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
    scenarios = results["scenarios"]
    problems = [problem for row in scenarios for problem in row["problems"]] + list(results["missing"])
    notes = [*(f"Not passed: {problem}" for problem in problems), *results["notes"]]
    parts = [
        f"<h1>{text(title)}</h1>",
        made_on(results, environment),
        f'<p class="label">{text(results["label"])}</p>',
        *(f'<p class="label">{text(line)}</p>' for line in results["disturbances"]),
        cards(scenarios),
        bullets(notes),
        "<h2>Latencies</h2>",
        latencies(scenarios),
        *text_part(scenarios),
        *efficiency_page([(row["scenario"], row["performance"]) for row in scenarios if row["performance"]]),
        "<h2>Reproduce, compare, share</h2>",
        commands_part(results, environment),
        "<h2>Memory and load during the performance runs</h2>",
        loads_part(scenarios, loads),
        "<h2>Settings, software, machine</h2>",
        settings_part(scenarios),
        environment_part(environment, any(is_of_client(row["performance"] or {}) for row in scenarios)),
    ]
    return document(f"{title}: {results['label']}", parts)
