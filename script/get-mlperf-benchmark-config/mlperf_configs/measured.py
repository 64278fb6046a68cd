"""What was measured on this machine, as get-mlperf-inference-sut-configs stores it, as settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mlperf_results.appnames import default_run_config
from mlperf_results.names import Scenario

from .effective import NS_PER_MS, EffectiveConfig, Value

FIELD_OF_SCENARIO = {
    Scenario.OFFLINE: "offline_expected_qps",
    Scenario.SERVER: "server_target_qps",
    Scenario.SINGLE_STREAM: "single_stream_expected_latency_ns",
    Scenario.MULTI_STREAM: "multi_stream_expected_latency_ns",
}


def stored_under(config: EffectiveConfig, source: str) -> dict[str, str]:
    """Return the inputs of get-mlperf-inference-sut-configs that name the file for a run of these settings.

    source: "real", "synthetic" or "tiny".
    """
    run_config = default_run_config(source, str(config.values["precision"].value))
    return {"device": config.device, "backend": config.backend, "run_config": run_config}


def measured_values(content: Mapping[str, Any], benchmark: str, scenario: Scenario) -> dict[str, Value]:
    """Return the target that a file of get-mlperf-inference-sut-configs has (model to scenario to row), by field."""
    row = (content.get(benchmark) or {}).get(scenario.value)
    if not row:
        return {}
    origin = str(row.get("origin") or "")
    day = re.search(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", origin)
    said = f"measured {day[0]}" if day else f"recorded: {origin or 'by hand'}"
    value = float(row["target_latency"]) * NS_PER_MS if scenario.is_stream else float(row["target_qps"])
    whole = round(value)
    return {FIELD_OF_SCENARIO[scenario]: Value(whole if scenario.is_stream or whole == value else value, said)}
