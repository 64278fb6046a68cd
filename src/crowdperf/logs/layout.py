"""Every path of a results folder, as properties: the one place that knows the folder rules.

    <results folder>/<run id>/results.json environment.json summary.txt session.json
    <results folder>/<run id>/<model>/<Scenario>/performance/run_1/   one LoadGen run (RunPaths)
    <results folder>/<run id>/<model>/<Scenario>/accuracy/            one LoadGen run (RunPaths)

The two inner folders are named as the MLPerf submission tree names them (v6.0 and later), so that a submission
copies them as they are. Nothing here looks at the disk.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdperf.rules.names import Mode, Scenario

RESULTS_NAME = "results"
"""Where run,mlperf,inference leaves its results, in folders that begin with the moment when they were made."""

STYLE_FOLDER = re.compile(r"(?:test|fast|valid|find)_results")
"""Folders below its --results_dir in which generate-run-cmds keeps runs of different length apart."""

_SAFE_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*(-[A-Za-z0-9._]+)*")


def results_dir_of(folder: Path) -> Path:
    """Return the --results_dir with which generate-run-cmds puts runs into a folder."""
    return folder.parent if STYLE_FOLDER.fullmatch(folder.name) else folder


class FileIn:
    """A file, or a folder, of this name in the `folder` of the object that has it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: Any, kind: type | None = None) -> Path:
        return Path(paths.folder, self._name)


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one LoadGen run, all in `folder`."""

    folder: Path
    summary_log = FileIn("mlperf_log_summary.txt")
    """LoadGen's summary for people."""
    detail_log = FileIn("mlperf_log_detail.txt")
    """LoadGen's event log, one `:::MLLOG {json}` a line."""
    accuracy_log = FileIn("mlperf_log_accuracy.json")
    """LoadGen's raw responses; an empty list after a performance run."""
    trace_log = FileIn("mlperf_log_trace.json")
    """LoadGen's trace: empty, because the harness switches tracing off."""
    run_json = FileIn("run.json")
    """What the harness was asked to do."""
    result_json = FileIn("result.json")
    """What the harness did and found."""
    load_json = FileIn("load.json")
    """Memory and load of processor and GPUs during the run."""
    metadata_json = FileIn("metadata.json")
    """The result in the field names of NVIDIA's harness."""
    user_conf = FileIn("user.conf")
    """The settings handed to LoadGen."""
    accuracy_text = FileIn("accuracy.txt")
    """The official one-line score."""
    accuracy_json = FileIn("accuracy.json")
    """The score with reference, target and verdict."""
    console_text = FileIn("console.txt")
    """What the run printed."""

    @property
    def made_by_a_run(self) -> tuple[Path, ...]:
        """The files that one harness run writes, which must not outlive the start of the next one."""
        logs = (self.summary_log, self.detail_log, self.accuracy_log, self.trace_log)
        scores = (self.accuracy_text, self.accuracy_json)
        return (*logs, self.result_json, self.load_json, self.metadata_json, self.user_conf, *scores)


@dataclass(frozen=True, slots=True)
class ResultsPaths:
    """The folder of one benchmark session: all models, scenarios and modes that ran under one run id."""

    results_folder: Path
    run_id: str

    @property
    def folder(self) -> Path:
        """The session's own folder."""
        return self.results_folder / self.run_id

    results_json = FileIn("results.json")
    """All results of the session as data."""
    environment_json = FileIn("environment.json")
    """The facts of the machine and the software."""
    summary_text = FileIn("summary.txt")
    """The table for people."""
    session_json = FileIn("session.json")
    """How far each run of the session came: what `--resume` goes on from."""

    def scenario_folder(self, model: str, scenario: Scenario) -> Path:
        """Return the folder of one model in one scenario."""
        return self.folder / model / scenario.value

    def run(self, model: str, scenario: Scenario, mode: Mode) -> RunPaths:
        """Return the paths of one LoadGen run."""
        inner = Path("performance", "run_1") if mode is Mode.PERFORMANCE else Path("accuracy")
        return RunPaths(self.scenario_folder(model, scenario) / inner)


def make_run_id(started: datetime, model: str, backend: str, device: str) -> str:
    """Return e.g. `20261121T010203Z-digits-onnxruntime-cpu`.

    Raises ValueError for a naive time or a name that is no safe part of a folder name.
    """
    if started.tzinfo is None:
        raise ValueError(f"the start time {started.isoformat()} has no time zone. Add one, for example UTC")
    for kind, part in (("model", model), ("backend", backend), ("device", device)):
        if not _SAFE_PART.fullmatch(part):
            allowed = "letters, digits, dot, underscore, hyphen"
            raise ValueError(f"{kind} {part!r} cannot be part of a run id; allowed: {allowed}")
    return f"{started.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}-{model}-{backend}-{device}"
