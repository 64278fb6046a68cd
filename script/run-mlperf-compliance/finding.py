"""Finds the finished performance runs below a folder and reads what is known of each. Changes nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_object
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_requests import usable_request

from .asking import MeasuredRun, WrongCall

TEST_PREFIX = "TEST"
SESSION_NAME = "session.json"
_LEVELS_ABOVE = 4
"""session.json lies beside the folder of the model: <session>/<model>/<Scenario>/performance/run_1."""


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises WrongCall."""
    return given_object(path, lambda why: WrongCall([why]))


def _session_request(run_folder: Path) -> Mapping[str, Any]:
    """What the call that made a run said of it: `source` and `passed_on`; empty where no session.json is found."""
    for folder in list(run_folder.parents)[:_LEVELS_ABOVE]:
        path = folder / SESSION_NAME
        if not path.is_file():
            continue
        content = read_object(path)
        record: Any = content.get("settings")
        if record is None:
            name = run_folder.relative_to(folder).as_posix()
            record = (content.get("runs") or {}).get(name, {}).get("request")
        return record if isinstance(record, dict) else {}
    return {}


def _scenario_folders(folder: Path) -> Iterator[Path]:
    if folder.name.startswith(TEST_PREFIX):
        return
    if (folder / "performance" / "run_1" / "run.json").is_file():
        yield folder
        return
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.is_symlink():
            yield from _scenario_folders(child)


def find_runs(folder: Path) -> tuple[MeasuredRun, ...]:
    """The performance runs below a folder in order of their paths. Raises WrongCall where there is none, and for one
    that is not finished or not VALID."""
    if not folder.is_dir():
        raise WrongCall([f"{folder} is not a folder"])
    runs, problems = [], []
    for scenario_folder in _scenario_folders(folder.resolve()):
        paths = RunPaths(scenario_folder / "performance" / "run_1")
        if not paths.result_json.is_file():
            problems.append(f"{paths.folder} is not finished: it has no {paths.result_json.name}")
            continue
        result = read_object(paths.result_json)
        if not result.get("valid"):
            problems.append(f"{paths.folder} is INVALID: {'; '.join(result.get('invalid_reasons', []))}")
            continue
        said = _session_request(paths.folder)
        runs.append(
            MeasuredRun(
                scenario_folder=scenario_folder,
                request=usable_request(read_object(paths.run_json), paths.folder),
                result=result,
                source=said.get("source"),
                passed_on=said.get("passed_on") or {},
            )
        )
    if not runs and not problems:
        problems.append(f"{folder} has no finished performance run (<Scenario>/performance/run_1/run.json) in it")
    if problems:
        raise WrongCall(problems)
    return tuple(runs)
