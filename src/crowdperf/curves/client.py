"""Runs MLCommons' Endpoints client: what it is asked for, as its config.yaml, and one call of it.

Keys and command line: src/inference_endpoint/config/schema.py and commands/benchmark/cli.py of mlcommons/endpoints
ea332753 (2026-08-21), client 0.1.0. The client itself is the user's own, unmodified; it is never downloaded.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

from crowdperf.kit.text_documents import Json

PROGRAM = "inference-endpoint"
READY_S, PATIENT_READY_S = 30.0, 150.0
"""Seconds that the client's services may take to report: its own default, and what a loaded machine needs."""
_NOT_READY = "Ready check failed"
"""What it says then: async_utils/transport/zmq/ready_check.py."""
_END_S = 20.0
_OURS = ("PYTHONPATH", "PYTHONHOME")
"""Of this project's Python; the client has its own."""
_UNLIMITED_SAMPLES = 10_000_000
"""Of a calibration, which ends by its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSettings:
    """A data set as the client reads it. columns: its column for each of the client's (`prompt`).

    scoring: accuracy_config of an accuracy data set, empty for one of performance.
    """

    name: str
    path: str
    columns: Mapping[str, str]
    scoring: Mapping[str, Json]

    def entry(self) -> dict[str, Json]:
        """Return the entry of config.yaml."""
        entry: dict[str, Json] = {
            "name": self.name,
            "type": "accuracy" if self.scoring else "performance",
            "path": self.path,
            "parser": dict(self.columns),
        }
        return {**entry, "accuracy_config": dict(self.scoring)} if self.scoring else entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What is the same in all runs of a curve. key_variable: the environment variable with the API key, or empty."""

    name: str
    url: str
    model: str
    tokenizer: str
    generation: Mapping[str, Json]
    workers: int
    scheduler_seed: int
    sample_seed: int
    performance: DatasetSettings
    accuracy: DatasetSettings | None
    key_variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load of one run. concurrency: 0 sends everything at once. samples: None for a run that ends by its time."""

    concurrency: int
    samples: int | None
    least_s: float
    most_s: float = 0.0
    has_accuracy: bool = False


def config_of(settings: ClientSettings, load: Load, report: Path, ready_s: float) -> dict[str, Json]:
    """Return config.yaml. The API key stays in its variable, which the client resolves."""
    pattern: dict[str, Json] = {"type": "max_throughput"}
    if load.concurrency:
        pattern = {"type": "concurrency", "target_concurrency": load.concurrency}
    endpoint: dict[str, Json] = {"endpoints": [settings.url], "api_type": "openai"}
    if settings.key_variable:
        endpoint["api_key"] = "${" + settings.key_variable + "}"
    model: dict[str, Json] = {"name": settings.model, "streaming": "on", **settings.generation}
    if settings.tokenizer:
        model["tokenizer_name"] = settings.tokenizer
    datasets: list[Json] = [settings.performance.entry()]
    if load.has_accuracy and settings.accuracy is not None:
        datasets.append(settings.accuracy.entry())
    return {
        "name": f"{settings.name}_r{load.concurrency or load.samples}",
        "version": "1.0",
        "type": "online" if load.concurrency else "offline",
        "model_params": model,
        "datasets": datasets,
        "settings": {
            "runtime": {
                "min_duration_ms": round(load.least_s * 1000),
                "max_duration_ms": round(load.most_s * 1000),
                "n_samples_to_issue": load.samples or _UNLIMITED_SAMPLES,
                "scheduler_random_seed": settings.scheduler_seed,
                "dataloader_random_seed": settings.sample_seed,
            },
            "load_pattern": pattern,
            "client": {"num_workers": settings.workers, "stream_all_chunks": True},
            "warmup": {"enabled": False, "salt": False},
            "service_ready_timeout_s": ready_s,
        },
        "endpoint_config": endpoint,
        "report_dir": str(report),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a call of the client ended. why: the last lines of what it printed."""

    code: int
    why: str

    @property
    def is_slow_start(self) -> bool:
        """True where its services were not up in time, which more patience cures."""
        return self.code != 0 and _NOT_READY in self.why


def call_client(program: Sequence[str], config: Mapping[str, Json], report: Path, *, with_accuracy: bool) -> Ended:
    """Run the client once; its files come to be in `report`, its output beside it. Raises OSError.

    SIGTERM and Ctrl-C to this process reach the client too, which is in a process group of its own.
    """
    report.mkdir(parents=True, exist_ok=True)
    asked, said = report.parent / f"{report.name}.yaml", report.parent / f"{report.name}.txt"
    asked.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")
    mode = "both" if with_accuracy else "perf"
    command = [*program, "benchmark", "from-config", "--config", str(asked), "--mode", mode]
    with said.open("w", encoding="utf-8") as stream:
        code = _run(command, stream)
    lines = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return Ended(code=code, why="\n".join(lines[-8:]))


def _run(command: Sequence[str], stream: IO[str]) -> int:
    own = {name: value for name, value in os.environ.items() if name not in _OURS}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, env=own,
                               start_new_session=True)  # fmt: skip
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_END_S)
        except ProcessLookupError:
            process.wait()
        except subprocess.TimeoutExpired:
            continue
        return
