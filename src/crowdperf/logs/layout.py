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

from crowdperf.rules.names import Mode, Scenario

RESULTS_NAME = "results"
"""Where run,mlperf,inference leaves its results, in folders that begin with the moment when they were made."""

_SAFE_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*(-[A-Za-z0-9._]+)*")


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one LoadGen run, all in `folder`."""

    folder: Path

    @property
    def summary_log(self) -> Path:
        """LoadGen's summary for people."""
        return self.folder / "mlperf_log_summary.txt"

    @property
    def detail_log(self) -> Path:
        """LoadGen's event log, one `:::MLLOG {json}` a line."""
        return self.folder / "mlperf_log_detail.txt"

    @property
    def accuracy_log(self) -> Path:
        """LoadGen's raw responses; an empty list after a performance run."""
        return self.folder / "mlperf_log_accuracy.json"

    @property
    def trace_log(self) -> Path:
        """LoadGen's trace: empty, because the harness switches tracing off."""
        return self.folder / "mlperf_log_trace.json"

    @property
    def run_json(self) -> Path:
        """What the harness was asked to do."""
        return self.folder / "run.json"

    @property
    def result_json(self) -> Path:
        """What the harness did and found."""
        return self.folder / "result.json"

    @property
    def load_json(self) -> Path:
        """Memory and load of processor and GPUs during the run."""
        return self.folder / "load.json"

    @property
    def metadata_json(self) -> Path:
        """The result in the field names of NVIDIA's harness."""
        return self.folder / "metadata.json"

    @property
    def user_conf(self) -> Path:
        """The settings handed to LoadGen."""
        return self.folder / "user.conf"

    @property
    def accuracy_text(self) -> Path:
        """The official one-line score."""
        return self.folder / "accuracy.txt"

    @property
    def accuracy_json(self) -> Path:
        """The score with reference, target and verdict."""
        return self.folder / "accuracy.json"

    @property
    def console_text(self) -> Path:
        """What the run printed."""
        return self.folder / "console.txt"

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

    @property
    def results_json(self) -> Path:
        """All results of the session as data."""
        return self.folder / "results.json"

    @property
    def environment_json(self) -> Path:
        """The facts of the machine and the software."""
        return self.folder / "environment.json"

    @property
    def summary_text(self) -> Path:
        """The table for people."""
        return self.folder / "summary.txt"

    @property
    def session_json(self) -> Path:
        """How far each run of the session came: what `--resume` goes on from."""
        return self.folder / "session.json"

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
        raise ValueError(f"the start time {started.isoformat()} has no time zone; give one, for example UTC")
    for kind, part in (("model", model), ("backend", backend), ("device", device)):
        if not _SAFE_PART.fullmatch(part):
            allowed = "letters, digits, dot, underscore, hyphen"
            raise ValueError(f"{kind} {part!r} cannot be part of a run id; allowed: {allowed}")
    return f"{started.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}-{model}-{backend}-{device}"
