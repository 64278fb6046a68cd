"""Makes `metadata.json`, the summary of a run in the field names of NVIDIA's run handler. Pure.

Tools around NVIDIA's submissions (Microsoft's VirtualClient among them) look for these files below a log folder. The
names and forms are those of the v4.1 tree, as VirtualClient's guide shows them (read November 2026):

    {"benchmark_full": "bert-99", "scenario_key": "result_samples_per_second", "result_samples_per_second": 812.5,
     "summary_string": "result_samples_per_second: 812.5, Result is VALID, 10-min runtime requirement met: True", ...}

Fields without a value in NVIDIA's meaning are not invented: `tensorrt_version` is empty without TensorRT, and
`detected_system` describes the machine in our own words. Our own fields have separate names: `label`, `is_synthetic`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crowdperf.harness.watch.machine import system_name
from crowdperf.logs.run_log import Json
from crowdperf.rules.backends import is_of_client
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS

SCENARIO_KEYS = {
    "SingleStream": "result_90.00_percentile_latency_ns",
    "MultiStream": "result_99.00_percentile_per_query_latency_ns",
    "Offline": "result_samples_per_second",
    "Server": "result_completed_samples_per_sec",
    "Interactive": "result_completed_samples_per_sec",
}
"""The key of a scenario's result."""

QUERY_CONSTRAINTS = {
    "SingleStream": ("effective_min_query_count", 1024),
    "MultiStream": ("effective_min_query_count", 270336),
    "Offline": ("effective_samples_per_query", 24576),
    "Server": ("effective_min_query_count", 270336),
    "Interactive": ("effective_min_query_count", 270336),
}
"""NVIDIA's own count of enough queries (its results tool, constants of the v1.0 rules). Early stopping made it a
note: `satisfies_query_constraint` false does not make a result INVALID."""


def _value(result: Mapping[str, Any], key: str) -> Any:
    entry = result["run"].get(key)
    return None if entry is None else entry["value"]


def short_name(benchmark: str) -> str:
    """Return a benchmark's name without its accuracy level."""
    return benchmark.removesuffix("-99.9").removesuffix("-99")


def level(benchmark: str) -> str:
    """Return the accuracy level as NVIDIA writes it: `k_99` or `k_99_9`, and `k_99` if there is only one level."""
    return "k_99_9" if benchmark.endswith("-99.9") else "k_99"


def described_machine(machine: Mapping[str, Any]) -> str:
    parts = [f"processor={machine.get('processor')}", f"cores={machine.get('core_count')}"]
    if machine.get("memory_bytes"):
        parts.append(f"memory_gib={machine['memory_bytes'] / 1024**3:.1f}")
    gpus = [str(gpu["name"]) for gpu in machine.get("gpus") or ()]
    return f"Machine({', '.join(parts)}, gpus=[{', '.join(gpus)}])"


def _common(result: Mapping[str, Any]) -> dict[str, Json]:
    benchmark, scenario = str(_value(result, "model")), str(_value(result, "scenario"))
    backend = str(_value(result, "backend"))
    machine = result.get("machine") or {}
    name, described = system_name(machine, backend), described_machine(machine)
    constraint, least = QUERY_CONSTRAINTS[scenario]
    counts = {
        "effective_min_query_count": _value(result, "min_query_count"),
        "effective_samples_per_query": result.get("samples_per_query"),
    }
    return {
        "benchmark_full": benchmark,
        "benchmark_short": short_name(benchmark),
        "config_name": f"{name}-crowdperf_{level(benchmark)}_MaxP-{scenario}",
        "detected_system": f"Client of a server: {described}" if is_of_client(result) else described,
        "effective_min_duration_ms": _value(result, "min_duration_ms"),
        constraint: counts[constraint],
        "satisfies_query_constraint": bool((counts[constraint] or 0) >= least),
        "scenario": scenario,
        "scenario_key": _scenario_key(result, scenario),
        "system_name": name,
        "tensorrt_version": str(result.get("versions", {}).get("tensorrt", "")),
        "label": result["label"],
        "is_synthetic": result.get("is_synthetic"),
    }


TOKEN_KEYS = {
    "Offline": "result_tokens_per_second",
    "Server": "result_completed_tokens_per_second",
    "Interactive": "result_completed_tokens_per_second",
}
"""The key for answers that LoadGen measures by tokens."""


def _scenario_key(result: Mapping[str, Any], scenario: str) -> str:
    is_text = (result.get("text") or {}).get("tokens_per_second") is not None
    return TOKEN_KEYS.get(scenario, SCENARIO_KEYS[scenario]) if is_text else SCENARIO_KEYS[scenario]


def _of_tokens(text: Mapping[str, Any]) -> dict[str, Json]:
    """Return LoadGen's token metrics under its own keys, and facts about the answers under our own names."""
    found: dict[str, Json] = {}
    for key, name in (
        ("ttft_ms", "result_first_token_{}_percentile_latency_ns"),
        ("tpot_ms", "result_time_per_output_token_{}_percentile_ns"),
    ):
        spread = text.get(key) or {}
        found |= {name.format(f"{part[1:]}.00"): round(value * 1e6) for part, value in spread.items() if part != "mean"}
    tally = text["tally"]
    return {**found, "answer_lengths": tally["lengths"], "finish_reasons": tally["finish_reasons"]}


def performance_figure(result: Mapping[str, Any], scenario: str) -> Json:
    """Return the scenario's result in the unit of its key, or None if the run has none."""
    latency, metric = result.get("latency"), result.get("metric")
    if scenario == "SingleStream":
        return None if latency is None else latency["p90_ns"]
    if scenario == "MultiStream":
        return None if latency is None else latency["p99_ns"]
    return None if metric is None else metric["value"]


def performance_metadata(result: Mapping[str, Any]) -> dict[str, Json]:
    """Return the metadata.json of a performance run, derived from its result.json.

    `result_validity` is LoadGen's word. In `summary_string` a run that requested less than ten minutes is INVALID, as
    NVIDIA's handler writes it (inference_results_v4.1, run_harness.py, `_get_result_string`; 198fc467, November 2026).
    """
    common = _common(result)
    scenario, key = str(common["scenario"]), str(common["scenario_key"])
    figure = performance_figure(result, scenario)
    validity = "VALID" if result["valid"] else "INVALID"
    minimum_ms = common["effective_min_duration_ms"]
    is_full = isinstance(minimum_ms, int) and minimum_ms >= FULL_RULES_MIN_DURATION_MS
    has_time = bool(result.get("min_duration_met")) and is_full
    said = validity if is_full else "INVALID"
    stopping = result.get("early_stopping")
    return {
        **common,
        key: figure,
        "result_validity": validity,
        "early_stopping_met": None if stopping is None else stopping["is_met"],
        "summary_string": f"{key}: {figure}, Result is {said}, 10-min runtime requirement met: {has_time}",
        "test_mode": "PerformanceOnly",
        **(_of_tokens(result["text"]) if result.get("text") else {}),
    }


def _metric_rows(accuracy: Mapping[str, Any]) -> list[dict[str, Json]]:
    rows = []
    for metric in accuracy["metrics"]:
        row = {
            "name": metric["name"],
            "value": metric["value"],
            "threshold": metric["target"],
            "pass": metric["passed"],
        }
        rows.append({**row, **({"upper_limit": metric["upper_limit"]} if metric.get("upper_limit") else {})})
    return rows


def _accuracy_text(rows: Sequence[Mapping[str, Any]]) -> str:
    texts = []
    for row in rows:
        verdict = {True: "PASSED", False: "FAILED", None: "NO TARGET"}[row["pass"]]
        threshold = "none" if row["threshold"] is None else f"{row['threshold']:.3f}"
        texts.append(f"[{verdict}] {row['name']}: {row['value']:.3f} (Threshold={threshold})")
    return " | ".join(texts)


def accuracy_metadata(result: Mapping[str, Any], accuracy: Mapping[str, Any] | None) -> dict[str, Json]:
    """Return the metadata.json of an accuracy run, made of its result.json and, once scored, its accuracy.json."""
    common = _common(result)
    rows = [] if accuracy is None else _metric_rows(accuracy)
    return {
        **common,
        "accuracy": rows,
        "accuracy_pass": None if accuracy is None else accuracy["passed"],
        "summary_string": _accuracy_text(rows) if rows else "not scored yet",
        "test_mode": "AccuracyOnly",
    }


def metadata(result: Mapping[str, Any], accuracy: Mapping[str, Any] | None = None) -> dict[str, Json]:
    """Return the content of metadata.json for a run's result.json and its accuracy.json, if it exists."""
    is_accuracy = _value(result, "mode") == "accuracy"
    return accuracy_metadata(result, accuracy) if is_accuracy else performance_metadata(result)
