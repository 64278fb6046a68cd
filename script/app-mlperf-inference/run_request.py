"""Turns CM's env into the content of run.json, the request that the harness reads (its keys: harness/config.py).

Pure. All problems are collected, so that a user sees every wrong value at once, each with what is allowed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlperf_results.names import UnknownName, parse_execution_mode, parse_mode, parse_scenario

FORMAT = 1

SCENARIO_KEY = "CM_MLPERF_LOADGEN_SCENARIO"
MODE_KEY = "CM_MLPERF_LOADGEN_MODE"
EXECUTION_MODE_KEY = "CM_MLPERF_RUN_STYLE"
MODEL_KEY = "CM_MLPERF_MODEL"
BACKEND_KEY = "CM_MLPERF_BACKEND"
DEVICE_KEY = "CM_MLPERF_DEVICE"
OUTPUT_DIR_KEY = "CM_MLPERF_OUTPUT_DIR"
USER_CONF_KEY = "CM_MLPERF_USER_CONF"
DATASET_KEY = "CM_DATASET_PATH"
MODEL_FILE_KEY = "CM_ML_MODEL_FILE_WITH_PATH"
MODEL_INFO_KEY = "CM_ML_MODEL_INFO_FILE"

WHOLE_NUMBERS = {
    "batch_size": "CM_MLPERF_LOADGEN_MAX_BATCHSIZE",
    "threads": "CM_NUM_THREADS",
    "min_duration_ms": "CM_MLPERF_LOADGEN_MIN_DURATION_MS",
    "min_query_count": "CM_MLPERF_INFERENCE_MIN_QUERY_COUNT",
    "performance_sample_count": "CM_MLPERF_LOADGEN_PERFORMANCE_SAMPLE_COUNT",
}
NUMBERS = {"target_qps": "CM_MLPERF_LOADGEN_TARGET_QPS", "target_latency_ms": "CM_MLPERF_LOADGEN_TARGET_LATENCY"}


class RequestError(Exception):
    """The env asks for a run that cannot be; `problems` holds one text for each wrong value."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("cannot run what was asked for:\n  " + "\n  ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that a model, a backend and a device may have: the members of the recipe's variation groups."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    devices: tuple[str, ...]


def known_names(variations: Mapping[str, Mapping[str, object]]) -> Known:
    """The names in the groups `model`, `backend` and `device` of a recipe's variations, sorted."""

    def members(group: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, block in variations.items() if block.get("group") == group))

    return Known(models=members("model"), backends=members("backend"), devices=members("device"))


def whole_number(text: str) -> int | None:
    """The whole number from 1 that `text` is, else None."""
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def positive_number(text: str) -> float | None:
    """The finite number above 0 that `text` is, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


class _Reader:
    """Takes values from env and collects what is wrong with them."""

    def __init__(self, env: Mapping[str, object], folder: Path) -> None:
        self._env = env
        self._folder = folder
        self.problems: list[str] = []

    def text(self, key: str) -> str:
        value = self._env.get(key)
        return "" if value is None else str(value).strip()

    def parsed(self, key: str, parse: Callable[[str], object]) -> str | None:
        """The spelling that the harness knows of a scenario, mode or execution mode."""
        try:
            return str(getattr(parse(self.text(key)), "value", ""))
        except UnknownName as error:
            self.problems.append(f"{key}: {error}")
            return None

    def one_of(self, key: str, kind: str, names: tuple[str, ...]) -> str | None:
        text = self.text(key)
        if text in names:
            return text
        self.problems.append(f"{key}: unknown {kind} {text!r}; known: {', '.join(names)}")
        return None

    def number(self, key: str, parse: Callable[[str], float | None], allowed: str) -> float | None:
        text = self.text(key)
        if not text:
            return None
        value = parse(text)
        if value is None:
            self.problems.append(f"{key}: found {text!r}; allowed: {allowed}")
        return value

    def path(self, key: str) -> str | None:
        """An absolute path; a relative one starts at the folder of the user."""
        text = self.text(key)
        return str(self._folder / Path(text).expanduser()) if text else None


def build_request(env: Mapping[str, object], known: Known, folder: Path) -> dict[str, object]:
    """The content of run.json but for a missing `output_dir`, which is None. `folder` is where the user called.

    Raises RequestError with every problem.
    """
    reader = _Reader(env, folder)
    request: dict[str, object] = {
        "format": FORMAT,
        "model": reader.one_of(MODEL_KEY, "model", known.models),
        "backend": reader.one_of(BACKEND_KEY, "backend", known.backends),
        "device": reader.one_of(DEVICE_KEY, "device", known.devices),
        "scenario": reader.parsed(SCENARIO_KEY, parse_scenario),
        "mode": reader.parsed(MODE_KEY, parse_mode),
        "execution_mode": reader.parsed(EXECUTION_MODE_KEY, parse_execution_mode),
        "model_path": reader.path(MODEL_FILE_KEY),
        "model_info_path": reader.path(MODEL_INFO_KEY),
        "dataset_path": reader.path(DATASET_KEY),
        "output_dir": reader.path(OUTPUT_DIR_KEY),
        "user_conf": reader.path(USER_CONF_KEY),
    }
    for name, key in WHOLE_NUMBERS.items():
        request[name] = reader.number(key, whole_number, "a whole number from 1")
    for name, key in NUMBERS.items():
        request[name] = reader.number(key, positive_number, "a number above 0")
    if reader.problems:
        raise RequestError(reader.problems)
    return request
