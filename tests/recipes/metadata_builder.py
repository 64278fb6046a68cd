"""metadata.json files for tests, in the forms of NVIDIA's v4.1 and v5.1 trees and of this project.

Figures of the v4.1 ones are those of VirtualClient's examples (microsoft/VirtualClient, 53e432ad, Example_*_summary*),
those of the v5.1 one of a published run (inference_results_v5.1, closed/Oracle, llama3.1-405b Offline).
"""

import json
from pathlib import Path
from typing import Any

SYSTEM = "DGX-A100_A100-SXM4-40GBx8_TRT"
FIGURES = {
    "Server": ("result_completed_samples_per_sec", 25405.6),
    "SingleStream": ("result_90.00_percentile_latency_ns", 1924537),
    "Offline": ("result_samples_per_second", 28125.25),
}


def performance(scenario: str = "Server", **changes: Any) -> dict[str, Any]:
    key, figure = FIGURES[scenario]
    level = "99_9" if str(changes.get("benchmark_full", "")).endswith("99.9") else "99"
    content = {
        "benchmark_full": "bert-99", "benchmark_short": "bert",
        "config_name": f"{SYSTEM}-custom_k_{level}_MaxP-{scenario}",
        "detected_system": "SystemConfiguration(...)", "early_stopping_met": True,
        "effective_min_duration_ms": 600000, "effective_min_query_count": 100, key: figure,
        "result_validity": "VALID", "satisfies_query_constraint": False, "scenario": scenario, "scenario_key": key,
        "summary_string": f"{key}: {figure}, Result is VALID, 10-min runtime requirement met: True",
        "system_name": SYSTEM, "tensorrt_version": "10.2.0", "test_mode": "PerformanceOnly",
    }  # fmt: skip
    return {**content, **changes}


def accuracy(*scores: dict[str, Any], **changes: Any) -> dict[str, Any]:
    own = {"name": "F1", "pass": True, "threshold": 89.96526, "value": 90.2147015680108}
    content = performance("Offline", test_mode="AccuracyOnly", accuracy=list(scores) or [own], accuracy_pass=True)
    for key in ("result_validity", "result_samples_per_second", "early_stopping_met"):
        del content[key]
    return {**content, "summary_string": "[PASSED] F1: 90.215 (Threshold=89.965)", **changes}


def newer(**changes: Any) -> dict[str, Any]:
    """The form of v5.1: no config_name, no summary_string."""
    content = {
        "avg_power": None, "base_log_dir": "/work/build/logs", "benchmark_full": "llama3.1-405b",
        "benchmark_short": "llama3.1-405b", "detected_system": {"data": {"fields": {}}}, "early_stopping_met": True,
        "effective_min_duration_ms": 600000, "effective_samples_per_query": 100, "power_meter_enabled": False,
        "result_samples_per_second": 0.814394, "result_tokens_per_second": 542.476, "result_validity": "VALID",
        "satisfies_query_constraint": False, "scenario": "Offline", "scenario_key": "result_tokens_per_second",
        "system_name": "B200-SXM-180GBx8_TRT", "tensorrt_version": "10.11.0.33", "test_mode": "PerformanceOnly",
        "true_result_metric": "result_tokens_per_second", "true_result_value": 542.476,
        "workload_setting_code": "cp990",
    }  # fmt: skip
    return {**content, **changes}


def write(folder: Path, content: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metadata.json"
    path.write_text(json.dumps(content))
    return path
