"""Starts the harness, or another Python program, as a process of its own, for the benchmarks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
TIMEOUT_S = 3600
LEFT_OPEN = (
    "compliance_test", "model_path", "model_info_path", "preprocessed_path", "gpus", "batch_size", "instances",
    "threads", "batch_timeout_us", "target_qps", "target_latency_ms", "min_duration_ms", "min_query_count",
    "performance_sample_count", "user_conf",
)  # fmt: skip


def run_python(
    arguments: Sequence[str],
    *,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    cores: Sequence[int] = (),
    folder: Path | None = None,
) -> str:
    """Return the stdout of a Python process that finds the harness; raises with its stderr when it fails.

    cores: the only ones that the process may use, all by default.
    """
    paths = str(SOURCE)
    done = subprocess.run(
        [python, *arguments],
        env={**os.environ, "PYTHONPATH": paths, "ORT_DISABLE_TELEMETRY": "1", **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def run_harness(folder: Path, request: Mapping[str, Any], cores: Sequence[int] = ()) -> dict[str, Any]:
    """Return the result.json of one harness run in `folder`; what `request` leaves out, the harness decides."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        **dict.fromkeys(LEFT_OPEN),
        "format": 3,
        "device": "cpu",
        "mode": "performance",
        "execution_mode": "test",
        "find": False,
        "precision": "fp32",
        "output_dir": str(folder),
        **request,
    }
    run_json = folder / "run.json"
    run_json.write_text(json.dumps(content))
    run_python(["-m", "crowdperf.harness", str(run_json)], cores=cores)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def rate_of(result: Mapping[str, Any]) -> float:
    """Return samples per second of a run: LoadGen's figure where it is that, else queries x samples by the time they
    took (also Offline of a model whose figure is tokens per second, and a stream too short for LoadGen's estimate)."""
    metric = result["metric"]
    if metric is not None and metric["unit"] == "samples/s":
        return float(metric["value"])
    return float(result["query_count"]) * float(result["samples_per_query"]) / float(result["duration_s"])
