"""The parts of the report, each as finished HTML made of result rows. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from crowdperf.kit.drawing import legend
from crowdperf.kit.html_page import ABSENT, Html, bullets, chart, folded, table
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import Quantile, latency_plot, latency_series
from crowdperf.logs.interference import disturbance_lines
from crowdperf.logs.load_plots import load_part
from crowdperf.logs.result_csv import validity
from crowdperf.logs.result_rows import Comparison, Row, compare
from crowdperf.logs.run_facts import Figure, Score
from crowdperf.logs.text_metrics import page_part
from crowdperf.rules.names import SYNTHETIC_LABEL, TEST_RUN_LABEL, Scenario

from .evidence import EvidenceList
from .rownames import Names, Pair, backend_of, pairs, run_word

PLAIN_WORDS = {
    SYNTHETIC_LABEL: "The weights of the model, or the data, or both are synthetic: the results show that the software"
    " works, but neither the speed nor the accuracy of the real model",
    TEST_RUN_LABEL: "A performance run was shorter than the rules require, so its result is not an MLPerf result",
}
"""What the labels mean."""

UNKNOWN_ORIGIN = "unknown"
SHOWN_PERCENTS = (("50", "p50"), ("90", "p90"), ("95", "p95"), ("97", "p97"), ("99", "p99"), ("99.9", "p99.9"),
                  ("100", "max"))  # fmt: skip
WHAT_LATENCIES_ARE_OF = {
    Scenario.SINGLE_STREAM: "of a sample",
    Scenario.MULTI_STREAM: "of a query of 8 samples",
    Scenario.OFFLINE: "of a sample, from the start of the run",
    Scenario.SERVER: "of a sample, from its arrival",
    Scenario.INTERACTIVE: "of a sample, from its arrival",
}


def number(value: float) -> str:
    """A value with five significant digits below 10,000 and thousands separators above."""
    return quantity(value, 5)


def _amount(figure: Figure) -> str:
    return f"{number(figure.value)} {figure.unit}"


def duration(latency_ms: float) -> str:
    """A latency with its unit."""
    return f"{number(latency_ms)} ms" if latency_ms < 10_000 else f"{number(latency_ms / 1000)} s"


def _score_cells(name: str, score: Score, places: EvidenceList) -> tuple[object, ...]:
    """The score, its target, the verdict, and the link to its log."""
    meaning = f"{name}: accuracy {score.name}".rstrip()
    if score.value is None:
        return score.line, ABSENT, ABSENT, places.link(score.line, meaning, score.evidence, "accuracy")
    digits = number(score.value) if abs(score.value) >= 10_000 else f"{score.value:.3f}"
    target = ABSENT
    if score.target is not None:
        target = number(score.target) if abs(score.target) >= 10_000 else f"{score.target:.3f}"
        target += "" if score.upper_limit is None else f" to {number(score.upper_limit)}"
    verdict = {True: "passed", False: "missed", None: ABSENT}[score.is_passed]
    link = places.link(digits, meaning, score.evidence, "accuracy")
    return f"{score.name} {digits}".strip(), target, verdict, link


def _published(row: Row) -> object:
    found = compare(row).anchors
    return ABSENT if not found else ", ".join(f"{ratio:.2f}" for _, ratio in found)


def _pair_lines(row: Row, pair: Pair, names: Names, places: EvidenceList) -> list[Sequence[object]]:
    """The lines of runs that belong together: scores stand beside their run."""
    scores = [_score_cells(names.run(row, facts), score, places) for facts in pair.accuracy for score in facts.scores]
    first, *others = scores or [(ABSENT, ABSENT, ABSENT, "")]
    lines: list[Sequence[object]] = []
    for place, facts in enumerate(pair.performance or (None,)):
        figure = None if facts is None else facts.figure
        value, logs = ABSENT, []
        if facts is not None and figure is not None:
            value, meaning = _amount(figure), f"{names.run(row, facts)}: {figure.name}"
            logs.append(places.link(value, meaning, figure.evidence, "result"))
        verdict = ABSENT if facts is None else validity(facts)
        shown = facts if facts is not None else next(iter(pair.accuracy), None)
        scenario = row.scenario.value
        if shown is not None and len(row.performance) > 1:
            scenario = f"{scenario}, {run_word(shown)}"
        *score, log = first if place == 0 else ("", "", "", "")
        links = Html(f"<span>{' · '.join(str(one) for one in (*logs, log) if one)}</span>")
        lines.append(
            (row.model, scenario, value, verdict, *score, links, _published(row) if facts is row.shown else "")
        )
    return lines + [("", "", "", "", *score, "") for score in others]


def results_table(rows: Sequence[Row], names: Names, places: EvidenceList) -> str:
    """The results of one system."""
    cells = [line for row in rows for pair in pairs(row) for line in _pair_lines(row, pair, names, places)]
    headings = ("Model", "Scenario", "Result", "LoadGen", "Accuracy", "Target", "Accuracy met", "Log",
                "Times published")  # fmt: skip
    width = len(headings) if any(compare(row).anchors for row in rows) else len(headings) - 1
    cells = [line[:width] for line in cells]
    return table(
        headings[:width], cells, numbers=(2, 5, 8), caption="The result of each model and scenario", kind="stacked"
    )


def backends_compared(rows: Sequence[Row], names: Names) -> str:
    """The figures of the same model and scenario with different backends, and how they compare; empty without such."""
    grouped: dict[tuple[str, Scenario], list[tuple[Row, Figure]]] = {}
    for row in rows:
        if row.shown is not None and row.shown.figure is not None and backend_of(row):
            grouped.setdefault((row.model, row.scenario), []).append((row, row.shown.figure))
    cells: list[Sequence[object]] = []
    for (model, scenario), found in grouped.items():
        if len({backend_of(row) for row, _ in found}) < 2:
            continue
        first = found[0][1]
        for row, figure in found:
            above, below = (first, figure) if figure.unit == "ms" else (figure, first)
            ratio = f"{above.value / below.value:.2f}" if below.value and first.unit == figure.unit else ABSENT
            verdict = ABSENT if row.shown is None else validity(row.shown)
            cells.append(
                (f"{model}, {scenario.value}", names.row(row).split(", ")[-1], _amount(figure), verdict, ratio)
            )
    if not cells:
        return ""
    headings = ("Model and scenario", "Backend", "Result", "LoadGen", "Times as fast as the first")
    return "<h2>Backends compared</h2>\n" + table(headings, cells, numbers=(2, 4), kind="stacked")


def label_words(rows: Sequence[Row], names: Names) -> list[str]:
    """What must be known of the figures, in plain words; the first one is the most important."""
    found = []
    labels: dict[str, list[Row]] = {}
    for row in rows:
        if row.label:
            labels.setdefault(row.label, []).append(row)
    for label, labelled in labels.items():
        whose = "All results on this page" if len(labelled) == len(rows) else names.of(labelled)
        about = [words for part, words in PLAIN_WORDS.items() if part in label.split("; ")]
        found.append(". ".join([f"{whose}: {label}", *about]))
    unsaid = [row for row in rows if row.is_synthetic is None]
    if unsaid:
        whose = "these results" if len(unsaid) == len(rows) else names.of(unsaid)
        found.append(f"It is unknown whether model and data of {whose} are real or synthetic")
    return found


def reasons(rows: Sequence[Row], names: Names) -> str:
    """Why runs are INVALID, could not be read wholly or should not be compared."""
    found = []
    for row in rows:
        for facts in row.runs:
            where = facts.run.relative.as_posix()
            if facts.is_valid is False:
                found.append(f"{where} is INVALID: {'; '.join(facts.reasons) or 'LoadGen reported no reason'}")
            if facts.problem:
                found.append(f"{where}: only its summary could be read ({facts.problem})")
        measured = [(names.run(row, facts), facts.result) for facts in row.performance if facts.result is not None]
        found += disturbance_lines(measured)
        if not row.performance:
            found.append(f"{names.row(row)} has no performance run")
        if not row.accuracy:
            found.append(f"{names.row(row)} has no accuracy run")
        elif not any(facts.scores for facts in row.accuracy):
            found.append(f"{names.row(row)}: the accuracy run is not scored")
    return bullets(found)


def _latency_meaning(run: str, name: str) -> str:
    part = "the slowest answer" if name == "100" else f"{name} % of the answers"
    return f"{run}: latency of {part}"


def latencies(rows: Sequence[Row], names: Names, places: EvidenceList) -> str:
    """A chart of each scenario with a line for each performance run, and a table of all."""
    cells: list[Sequence[object]] = []
    series: dict[Scenario, list[tuple[str, list[Quantile]]]] = {}
    for row in rows:
        for facts in row.performance:
            run, by_name = names.run(row, facts), {found.name: found for found in facts.latencies}
            if not by_name:
                continue
            links = [
                places.link(duration(found.value), _latency_meaning(run, name), found.evidence, "lines")
                for name, found in by_name.items()
            ]
            values = [duration(by_name[name].value) if name in by_name else ABSENT for name, _ in SHOWN_PERCENTS]
            cells.append((run, *values, links[0]))
            quantiles = [Quantile(float(found.name), found.value) for found in facts.latencies]
            series.setdefault(row.scenario, []).append((run, quantiles))
    if not cells:
        return "<p>No log has latencies.</p>"
    charts = []
    for scenario, found in series.items():
        words = f"{scenario.value}: latency {WHAT_LATENCIES_ARE_OF[scenario]}, within which a share of the answers came"
        drawn = latency_plot(f"Latency, {scenario.value}", "ms", found)
        charts.append(chart(drawn, words, legend([name for name, _ in latency_series(found)])))
    headings = ("Run", *(words for _, words in SHOWN_PERCENTS), "Log")
    numbers = range(1, len(headings) - 1)
    return "\n".join([*charts, table(headings, cells, numbers=numbers, caption="Latencies of each performance run")])


def answers(rows: Sequence[Row], names: Names) -> list[str]:
    """What performance runs say of answers that are made token by token; empty without any."""
    found = [
        (names.run(row, facts), facts.result["text"])
        for row in rows
        for facts in row.performance
        if facts.result is not None and isinstance(facts.result.get("text"), dict)
    ]
    return ["<h2>Answers</h2>", page_part(found)] if found else []


def loads(rows: Sequence[Row], names: Names, by_digest: Mapping[str, Mapping[str, Any]]) -> str:
    """Load over time of each performance run that recorded it. by_digest: load.json by the SHA-256 of a detail log."""
    found = []
    for row in rows:
        for facts in row.performance:
            load = facts.load or by_digest.get(facts.detail_sha256)
            if load is not None:
                found.append(load_part(names.run(row, facts), load))
    return (
        "\n".join(found)
        or "<p>No run here recorded its load. A submission tree cannot contain it. --results_dir does.</p>"
    )


def _versions(rows: Sequence[Row]) -> list[tuple[str, str]]:
    versions: dict[str, set[str]] = {}
    for row in rows:
        records = [facts.result for facts in row.runs if facts.result] + [row.measurements.get("crowdperf") or {}]
        for record in records:
            for name, version in (record.get("versions") or {}).items():
                versions.setdefault(str(name), set()).add(str(version))
        for facts in row.runs:
            if facts.log is not None:
                versions.setdefault("LoadGen, by its log", set()).add(facts.log.loadgen_version)
    return [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())]


def _weights(row: Row) -> Mapping[str, Any]:
    """The SHA-256 of the files of a row's model, by their role."""
    records = [row.measurements.get("crowdperf") or {}, *(facts.result for facts in row.runs if facts.result)]
    return next((record["model_sha256"] for record in records if isinstance(record.get("model_sha256"), dict)), {})


def _machine(rows: Sequence[Row]) -> list[tuple[str, object, str]]:
    """What result.json says of the machine, where there is no description of the system."""
    machine = next((facts.result["machine"] for row in rows for facts in row.runs
                    if facts.result and isinstance(facts.result.get("machine"), dict)), {})  # fmt: skip
    names = {"processor": "Processor", "core_count": "Cores", "memory_bytes": "Memory, bytes",
             "operating_system": "Operating system"}  # fmt: skip
    found = [(words, machine[key], "result.json of the runs") for key, words in names.items() if machine.get(key)]
    gpus = [str(gpu.get("name")) for gpu in machine.get("gpus") or () if isinstance(gpu, dict)]
    return found + ([("GPUs", ", ".join(gpus), "result.json of the runs")] if gpus else [])


def environment(rows: Sequence[Row], names: Names, origins: Mapping[str, str]) -> str:
    """The system and the software; ``origins``: where the facts of the system's JSON come from, by key."""
    facts = next((row.system_facts for row in rows if row.system_facts), {})
    shown = [
        (key, value, origins.get(key) or UNKNOWN_ORIGIN) for key, value in facts.items() if value not in ("", None)
    ]
    lines = shown or _machine(rows)
    headings = ("System", "Value") if shown and not origins else ("System", "Value", "Origin")
    cells = [line[: len(headings)] for line in lines]
    parts = [table(headings, cells, kind="facts")] if cells else ["<p>No file describes the system.</p>"]
    versions = _versions(rows)
    if versions:
        parts.append(table(("Software", "Version"), versions, kind="facts"))
    weights = [(f"{names.row(row)}: {name}", digest) for row in rows for name, digest in _weights(row).items()]
    if weights:
        parts.append(folded("Models, SHA-256", table(("Model", "SHA-256"), weights, kind="facts")))
    return "\n".join(parts)


def _comparison_lines(row: Row, name: str, found: Comparison) -> list[Sequence[object]]:
    if not found.anchors:
        return [(name, ABSENT, ABSENT, ABSENT, found.reason)]
    figure = row.shown.figure if row.shown is not None else None
    own = ABSENT if figure is None else _amount(figure)
    return [
        (
            name,
            own,
            f"{number(anchor.value)} {anchor.unit}",
            f"{ratio:.2f}",
            f"{anchor.source} ({anchor.metric}, {anchor.software})",
        )
        for anchor, ratio in found.anchors
    ]


def published(rows: Sequence[Row], names: Names) -> str:
    """Each result beside published ones of the same system, with their source."""
    cells = [line for row in rows for line in _comparison_lines(row, names.row(row), compare(row))]
    headings = ("Result", "Here", "Published", "Times as fast", "Source, or why there is none")
    return table(headings, cells, numbers=(1, 2, 3))
