"""Finds the runs in results folders and reads what each says about itself.

    <results folder>/<system or run id>/<model>/<Scenario>/{performance/run_1, accuracy, TEST01/performance/run_1, ...}

Both the layout of the tutorial and that of run-mlperf-inference fit it. A run that cannot be read is kept with the
reason, so that the user hears of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LoadGenLog, LogError, read_run_logs
from crowdperf.logs.system_names import machine_name
from crowdperf.logs.text_metrics import with_recorded_problems
from crowdperf.logs.tree import ScenarioPlace, scenario_of_folder
from crowdperf.rules.backends import is_of_client
from crowdperf.rules.names import Mode, Scenario

SUT_FILE = "sut.json"
DEFAULT_CONFIG = "default_config"
_TEST = re.compile(r"TEST\d\d")
_RUN = re.compile(r"run_(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """One LoadGen run. `test` is "" or a compliance test; `problem` says why the run cannot be used, or is empty.

    result, accuracy: the contents of result.json and accuracy.json, empty without. place: where it goes in the tree.
    """

    place: ScenarioPlace
    scenario: Scenario
    mode: Mode
    test: str
    number: int
    folder: Path
    session: Path
    log: LoadGenLog | None
    problem: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    accuracy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> RunPaths:
        """The files of the run."""
        return RunPaths(self.folder)

    @property
    def test_folder(self) -> Path:
        """The folder of the run's compliance test, of the scenario for a plain run."""
        return self.folder.parent.parent if self.mode is Mode.PERFORMANCE else self.folder.parent

    @property
    def name(self) -> str:
        """The run in words: `resnet50 Offline TEST01 performance`."""
        parts = (self.place.model, self.scenario.value, self.test, self.mode.value)
        return " ".join(part for part in parts if part)

    @property
    def key(self) -> tuple[str, str, str, str, str, int]:
        """What tells a run's place in the tree; two runs with one key compete for it."""
        return (*self.place_parts, self.test, self.mode.value, self.number)

    @property
    def place_parts(self) -> tuple[str, str, str]:
        """System, model and scenario."""
        return self.place.system, self.place.model, self.place.scenario

    @property
    def is_valid(self) -> bool:
        """Whether LoadGen and we accept the run."""
        return self.log is not None and not self.problem and self.log.is_valid

    def setting(self, name: str) -> Any:
        """A value of the run's resolved settings; None where it has none."""
        row = (self.result.get("run") or {}).get(name)
        return row.get("value") if isinstance(row, Mapping) else row


@dataclass(frozen=True, slots=True, kw_only=True)
class Sut:
    """What names a system in the tree, and what ran on it."""

    name: str
    hw_name: str
    implementation: str
    device: str
    backend: str
    backend_version: str
    run_config: str = DEFAULT_CONFIG


def _split(folder: Path, root: Path) -> tuple[Path, str, str, str, Mode, int] | None:
    """Return session folder, model, scenario folder, test, mode and number of a run's folder; None for no run."""
    parts = list(folder.relative_to(root).parts)
    number, mode = 1, Mode.ACCURACY
    if len(parts) > 1 and parts[-2] == "performance" and _RUN.fullmatch(parts[-1]):
        number, mode = int(parts[-1].removeprefix("run_")), Mode.PERFORMANCE
        parts = parts[:-2]
    elif parts and parts[-1] == "accuracy":
        parts = parts[:-1]
    else:
        return None
    test = parts.pop() if parts and _TEST.fullmatch(parts[-1]) else ""
    if len(parts) < 2 or scenario_of_folder(parts[-1]) is None:
        return None
    return root.joinpath(*parts[:-2]), parts[-2], parts[-1], test, mode, number


def find_runs(results_folder: Path, hw_name: str) -> tuple[tuple[FoundRun, ...], dict[str, Sut]]:
    """Return all runs below a folder, sorted by path, and their systems by name."""
    runs, suts = [], {}
    for log_path in sorted(results_folder.rglob("mlperf_log_detail.txt")):
        where = _split(log_path.parent, results_folder)
        if where is None:
            continue
        session, model, scenario_name, test, mode, number = where
        scenario = scenario_of_folder(scenario_name)
        if scenario is None:
            continue
        result = read_object(RunPaths(log_path.parent).result_json) or {}
        sut = sut_of(read_object(session / SUT_FILE) or {}, result, hw_name, session.name)
        place = ScenarioPlace(system=sut.name, model=model, scenario=scenario.value)
        suts[sut.name] = sut
        run = FoundRun(
            place=place, scenario=scenario, mode=mode, test=test, number=number, folder=log_path.parent,
            session=session, log=None, result=result,
            accuracy=read_object(RunPaths(log_path.parent).accuracy_json) or {},
        )  # fmt: skip
        runs.append(_with_log(run))
    return tuple(runs), suts


def accuracy_run_of(run: FoundRun, runs: Sequence[FoundRun]) -> FoundRun | None:
    """Return the accuracy run of the same model, system and scenario."""
    mine = (one for one in runs if one.mode is Mode.ACCURACY and not one.test and one.place == run.place)
    return next(mine, None)


def find_endpoint_results(results_folder: Path) -> tuple[Path, ...]:
    """Return the scenario folders that the client of MLPerf Endpoints wrote: its summary, and no log of LoadGen."""
    folders = (path.parent.parent for path in sorted(results_folder.rglob("performance/result_summary.json")))
    return tuple(folder for folder in folders if not any(folder.rglob("mlperf_log_detail.txt")))


def _with_log(run: FoundRun) -> FoundRun:
    try:
        log = with_recorded_problems(read_run_logs(run.paths), run.result)
    except LogError as error:
        return replace(run, problem=f"did not finish or is damaged: {error}")
    if log.scenario is not run.scenario.issued_as:
        return replace(run, log=log, problem=f"its log says {log.scenario.value}, its folder {run.scenario.value}")
    if log.mode is not run.mode:
        return replace(run, log=log, problem=f"its log says {log.mode.value}, its folder {run.mode.value}")
    if not run.result:
        return replace(run, log=log, problem=f"has no usable {run.paths.result_json.name}: the run did not finish")
    return replace(run, log=log)


def sut_of(record: Mapping[str, Any], result: Mapping[str, Any], hw_name: str, session_name: str) -> Sut:
    """Return the system of a run: from sut.json, else named after its hardware and software as the tutorial does.

    hw_name given by the user wins over the one of the record.
    """
    run = result.get("run") or {}

    def value(name: str) -> str:
        row = run.get(name)
        return str((row.get("value") if isinstance(row, Mapping) else row) or "")

    backend = str(record.get("backend") or value("backend"))
    version = str(record.get("backend_version") or (result.get("versions") or {}).get(backend) or "")
    machine = result.get("machine") or {}
    seen = "unknown_server" if is_of_client(result) else machine_name(machine)
    sut = Sut(
        name="",
        hw_name=hw_name or str(record.get("hw_name") or "") or seen,
        implementation=str(record.get("implementation") or "crowdperf"),
        device=str(record.get("device") or value("device")),
        backend=backend,
        backend_version=version.removeprefix("v"),
        run_config=str(record.get("run_config") or DEFAULT_CONFIG),
    )
    given = str(record.get("sut") or "")
    if given and not hw_name:
        return replace(sut, name=given)
    if not sut.hw_name or not backend:
        return replace(sut, name=session_name)
    words = (sut.hw_name, sut.implementation, sut.device, backend, f"v{version}" if version else "", sut.run_config)
    return replace(sut, name="-".join(re.sub(r"[^A-Za-z0-9_.+-]+", "_", word) for word in words if word))


def choose(runs: tuple[FoundRun, ...]) -> tuple[tuple[FoundRun, ...], tuple[FoundRun, ...]]:
    """Return the run for each place, a valid one before others and the newest of these, and those left out."""
    chosen: dict[tuple[str, str, str, str, str, int], FoundRun] = {}
    for run in sorted(runs, key=_rank):
        chosen[run.key] = run
    kept = tuple(sorted(chosen.values(), key=lambda run: run.key))
    folders = {run.folder for run in kept}
    return kept, tuple(run for run in runs if run.folder not in folders)


def _rank(run: FoundRun) -> tuple[bool, str, str]:
    return run.is_valid, str(run.result.get("started_utc") or ""), str(run.folder)
