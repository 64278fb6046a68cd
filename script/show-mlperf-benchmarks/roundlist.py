"""What a round of MLPerf Inference has, and which of it this repository can run: rows for JSON, and lines for people.

Everything comes from the round's table (`crowdperf.logs.round_tables`) and the benchmarks' records; no name stands
here.
"""

import textwrap
from collections.abc import Iterator
from typing import Any

from crowdperf.logs.round_tables import ModelTable, RoundTable, load_round
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import UnknownName
from crowdperf.rules.official_names import benchmark_of, resolve
from crowdperf.rules.rounds import ROUNDS

_CATEGORIES = {"edge": "edge", "datacenter": "datacenter", "both": "edge and datacenter"}
_FIGURES = {
    "result_samples_per_second": "samples/s",
    "result_tokens_per_second": "tokens/s",
    "result_completed_tokens_per_second": "tokens/s",
    "result_completed_samples_per_sec": "queries/s",
    "early_stopping_latency_ss": "p90 latency (early-stopping estimate)",
    "early_stopping_latency_ms": "p99 latency of 8-sample queries (early-stopping estimate)",
    "result_90.00_percentile_latency_ns": "p90 latency",
}
"""What the key of LoadGen's log that counts is called."""

_RUN = "cm run script --tags=run,mlperf,inference --model="
_LEFT = 12


def round_table(name: str) -> RoundTable:
    """Return a round's table. Raises UnknownName."""
    if name not in ROUNDS:
        raise UnknownName("round", name, ROUNDS)
    return load_round(name)


def rows_of(round_name: str, model: str = "") -> list[dict[str, Any]]:
    """Return every benchmark of a round, or the one of a name. Raises UnknownName."""
    table = round_table(round_name)
    if not model:
        return [_row(table, one) for one in table.models.values()]
    name = resolve(model, table.models, table.aliases)
    if name not in table.models:
        raise UnknownName(f"benchmark of {round_name}", model, tuple(table.models))
    return [_row(table, table.models[name])]


def _row(table: RoundTable, model: ModelTable) -> dict[str, Any]:
    scenarios = tuple(dict.fromkeys(one for category in model.scenarios for one in model.scenarios_in(category)))
    return {
        "name": model.name,
        "round": table.name,
        "categories": {
            _CATEGORIES[category]: {"required": sorted(sets.required), "optional": sorted(sets.optional)}
            for category, sets in model.scenarios.items()
        },
        "figures": {one: _figure(model, one) for one in scenarios},
        "samples": {
            "accuracy": dict(model.accuracy_samples) if len(model.accuracy_samples) > 1
            else next(iter(model.accuracy_samples.values())),
            "in_memory": max(model.performance_samples, model.conf.performance_samples),
            "least_offline": model.offline_min_samples,
        },
        "least_duration_s": model.min_duration_ms / 1000,
        "targets": {scenario: {limit.metric: limit.value for limit in limits}
                    for scenario, limits in model.targets.items()},
        "upper_limits": {limit.metric: limit.value for limit in model.upper_limits},
        "rules_targets": [
            {"metric": one.metric, "least" if one.is_least else "most": one.value, "source": one.source}
            for one in model.rules_targets
        ],
        "latency_ms": {scenario: limit / 1e6 for scenario, limit in _latencies(model).items() if scenario in scenarios},
        "token_latency_ms": {
            scenario: {name: value / 1e6 for name, value in limits.items()}
            for scenario, limits in model.token_latency_ns.items()
        },
        "compliance_tests": list(model.tests),
        "may_be_endpoints": model.may_be_endpoints,
        "notes": list(model.notes),
        "here": _here(table, model),
    }  # fmt: skip


def _figure(model: ModelTable, scenario: str) -> str:
    """An Interactive run of LoadGen is one of Server by its log."""
    key = model.metric_key("Server" if scenario == "Interactive" else scenario)
    return _FIGURES.get(key or "", key or "")


def _latencies(model: ModelTable) -> dict[str, float]:
    """Whole-query limits; those of models with token latencies do not count."""
    return {} if model.token_latency_ns else {**model.latency_ns, **model.conf.latency_ns}


def _here(table: RoundTable, model: ModelTable) -> dict[str, Any]:
    """Whether this repository runs it: its own name for it, and whether an endpoint can answer."""
    own = benchmark_of(model.name, table.name)
    record = BENCHMARKS[own].record if own else None
    return {"name": own, "by_endpoint": record is not None and record.generation is not None}


def lines_of(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the rows as text within 120 columns."""
    for row in rows:
        yield f"{row['name']}"
        for label, text in _facts(row):
            yield from _wrapped(label, text)
        yield ""


def _facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for category, sets in row["categories"].items():
        either = {"Interactive", "Server"}
        is_either = either <= set(sets["optional"])
        rest = [f"{one} (optional)" for one in sets["optional"] if not (is_either and one in either)]
        parts = [*sets["required"], *(["Server or Interactive or both"] if is_either else []), *rest]
        yield category if len(category) < _LEFT else "both", ", ".join(parts)
    yield "figure", "; ".join(f"{scenario} {figure}" for scenario, figure in row["figures"].items())
    samples = row["samples"]
    accuracy = samples["accuracy"]
    counts = ", ".join(f"{count:,} in {one}" for one, count in accuracy.items()) if isinstance(accuracy, dict) else ""
    offline = f", at least {samples['least_offline']:,} in an Offline query" if samples["least_offline"] else ""
    yield "samples", f"accuracy {counts or f'{accuracy:,}'}, in memory {samples['in_memory']:,}{offline}"
    for scenario, targets in row["targets"].items():
        where = "" if scenario == "*" else f"{scenario}: "
        yield "accuracy", where + ", ".join(_target(row, name, value) for name, value in targets.items())
    for one in row["rules_targets"]:
        bound = f"at least {one['least']:g}" if "least" in one else f"at most {one['most']:g}"
        yield "by the rules", f"{one['metric']} {bound}: {one['source']}"
    limits = [f"{scenario} {limit:,g} ms" for scenario, limit in row["latency_ms"].items()]
    limits += [
        f"{scenario} TTFT {both['ttft']:,g} ms and TPOT {both['tpot']:,g} ms"
        for scenario, both in row["token_latency_ms"].items()
    ]
    if limits:
        yield "p99 latency", "; ".join(limits)
    yield "tests", ", ".join(row["compliance_tests"]) or "none"
    yield from (("note", note) for note in row["notes"])
    yield "here", _here_text(row)


def _target(row: dict[str, Any], metric: str, value: float) -> str:
    most = row["upper_limits"].get(metric)
    return f"{metric} {value:,.10g}" if most is None else f"{metric} {value:,.10g} to {most:,.10g}"


def _here_text(row: dict[str, Any]) -> str:
    here = row["here"]
    checked = "the gate checks its trees" + (", those of MLPerf Endpoints too" if row["may_be_endpoints"] else "")
    if here["name"] is None:
        elsewhere = " (MLCommons' client for MLPerf Endpoints can)" if row["may_be_endpoints"] else ""
        return f"cannot be run with this tool{elsewhere}, {checked}"
    endpoint = " [--endpoint=URL]" if here["by_endpoint"] else ""
    return f"{_RUN}{here['name']}{endpoint} ({checked})"


def _wrapped(label: str, text: str) -> Iterator[str]:
    pieces = textwrap.wrap(text, 118 - _LEFT - 2, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {label:<{_LEFT}} {pieces[0]}"
    yield from (f"  {'':<{_LEFT}} {piece}" for piece in pieces[1:])
