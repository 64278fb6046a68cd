"""Reads and writes `session.json`: how far each run of a folder came, and what it was made with.

    {"format": 3, "settings": {...},
     "runs": {"resnet50/Offline/performance/run_1": {"progress": "finished", "error": "", "request": {...},
      "recipes": {"app-mlperf-inference": "<sha256>+<sha256 of what it uses of src/>", ...},
      "files": {"model_path": "<sha256>", ...}}}}

`settings` are those of the call; a folder that several calls share (`--run_id`) has none. The folder is locked while a
call works in it, so that no two calls go on with the same one.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.records import Record, spelled
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.layout import ResultsPaths, RunPaths
from crowdperf.logs.run_requests import read_request
from crowdperf.rules.names import Mode

from .basis import FolderInUse, recipes_that_matter, request_of
from .matrix import Config, RunSpec
from .outcome import FinishedRun
from .resume import BASIS, Candidate, Progress

FORMAT = 3
READABLE = (2, FORMAT)
"""2 was that of shared folders, with the same runs; 1, of single calls, did not say what a run was made with."""
READ_PATHS = ("model_path", "model_info_path", "dataset_path", "preprocessed_path")
"""Keys of run.json that name what a run reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What decides runs beside their specs: the call, its inputs for the recipes below, those recipes as they are."""

    config: Config
    passed_on: Mapping[str, Any]
    app_meta: Mapping[str, Any]
    recipes: Sequence[Mapping[str, Any]]


class SessionFile:
    """The `session.json` of the folder that a call works in; each change is on disk before the call goes on."""

    def __init__(self, paths: ResultsPaths, surroundings: Surroundings, settings: Mapping[str, Any] | None) -> None:
        """Reads what earlier calls left. settings: of the call; None with `--run_id`. Raises FolderInUse."""
        self._paths, self._around = paths, surroundings
        content = read_object(paths.session_json)
        is_readable = content is None or content.get("format") in READABLE
        if settings is None and (not is_readable or "settings" in (content or {})):
            message = f"{paths.folder} contains the results of a run without --run_id. Use another name or folder"
            raise FolderInUse(message)
        if not is_readable:
            raise FolderInUse(
                f"{paths.session_json} was written by an earlier version: start a new run without --resume"
            )
        self._content: dict[str, Any] = {"format": FORMAT, **({} if settings is None else {"settings": settings})}
        self._runs = dict(Record(content or {}).within("runs").values)

    def candidates(self, specs: Sequence[RunSpec]) -> tuple[Candidate, ...]:
        """What the folder has of each of these runs."""
        return tuple(self._candidate(spec) for spec in specs)

    def _candidate(self, spec: RunSpec) -> Candidate:
        row = Record(self._runs).within(self._folder(spec))
        progress = row.take("progress", spelled(Progress, tuple(one.value for one in Progress)))
        if progress is None or not all(isinstance(row.values.get(part), dict) for part in BASIS):
            return Candidate(spec=spec)
        return Candidate(
            spec=spec,
            progress=progress,
            error=row.text("error"),
            run=read_run(self._paths, spec) if progress is Progress.FINISHED else None,
            before={part: row.values[part] for part in BASIS},
            now=self._basis(spec, progress),
        )

    def _folder(self, spec: RunSpec) -> str:
        run = self._paths.run(spec.model, spec.scenario, spec.mode)
        return run.folder.relative_to(self._paths.folder).as_posix()

    def _basis(self, spec: RunSpec, progress: Progress) -> dict[str, dict[str, Any]]:
        """What a run is made with now; the files of a finished one, whose run.json names them."""
        around, folder = self._around, self._paths.folder / self._folder(spec)
        return {
            "request": request_of(spec, around.config, around.passed_on),
            "recipes": recipes_that_matter(around.app_meta, around.recipes, spec),
            "files": fingerprints(folder) if progress is Progress.FINISHED else {},
        }

    def note(self, spec: RunSpec, progress: Progress, error: str = "") -> None:
        """Notes how far a run came, and what it was made with."""
        row = {"progress": progress.value, "error": error, **self._basis(spec, progress)}
        self._runs[self._folder(spec)] = row
        content = {**self._content, "runs": self._runs}
        write_json(self._paths.session_json, content)


def find_former(results_folder: Path, settings: Mapping[str, Any]) -> ResultsPaths | None:
    """The newest folder of a call with these settings; None when there is none."""
    try:
        names = sorted(os.listdir(results_folder), reverse=True)
    except OSError:
        return None
    for paths in (ResultsPaths(results_folder, name) for name in names):
        if (read_object(paths.session_json) or {}).get("settings") == settings:
            return paths
    return None


def read_run(paths: ResultsPaths, spec: RunSpec) -> FinishedRun | None:
    """The outcome of a finished run from its files; None when one of them is missing or damaged."""
    run = paths.run(spec.model, spec.scenario, spec.mode)
    result = read_object(run.result_json)
    accuracy = read_object(run.accuracy_json) if spec.mode is Mode.ACCURACY else None
    if result is None or "valid" not in result or (spec.mode is Mode.ACCURACY and accuracy is None):
        return None
    folder = run.folder.relative_to(paths.folder).as_posix()
    return FinishedRun(spec=spec, folder=folder, result={"output_dir": str(run.folder), **result}, accuracy=accuracy)


def fingerprints(run_folder: Path) -> dict[str, str]:
    """A digest of the names, sizes and times of what the run in this folder read, by the key of its run.json."""
    try:
        request = read_request(RunPaths(run_folder))
    except (OSError, ValueError):
        request = {}
    return {key: fingerprint(Path(str(request[key]))) for key in READ_PATHS if request.get(key)}


def fingerprint(path: Path) -> str:
    """A digest of the names, sizes and times of a file, or of all files in a folder; `gone` for nothing there.

    The bytes themselves are not read: a data set may have hundreds of GB.
    """
    if not path.exists():
        return "gone"
    digest = hashlib.sha256()
    for name in [path] if path.is_file() else sorted(_files_below(path)):
        facts = name.stat()
        relative = "." if name == path else name.relative_to(path).as_posix()
        digest.update(f"{relative}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files_below(folder: Path) -> list[Path]:
    return [path for place, _, names in os.walk(folder) for name in names if (path := Path(place, name)).is_file()]
