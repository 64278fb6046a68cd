"""The folder that several calls share (`--run_id`): its `session.json`, and what of it can be kept (`keeping.py`).

Has effects, as `sessionfile.py` has for the folder of a single call.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_results.layout import ResultsPaths, RunPaths
from mlperf_results.runrequests import read_request
from mlperf_results.wholefile import read_object, write_whole

from .keeping import FORMAT, Candidate, RunRecord, recipes_that_matter, request_of
from .matrix import Config, RunSpec
from .resume import Progress
from .sessionfile import read_run

READ_PATHS = ("model_path", "model_info_path", "dataset_path", "preprocessed_path")
"""Keys of run.json that name what a run reads."""


class FolderInUse(Exception):
    """The folder of this name belongs to something else; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What decides runs beside their specs: the call, its inputs for the recipes below, those recipes as they are."""

    config: Config
    passed_on: Mapping[str, Any]
    app_meta: Mapping[str, Any]
    recipes: Sequence[Mapping[str, Any]]


class FixedFolder:
    """The `session.json` of a shared folder; each change is on disk before the call goes on."""

    def __init__(self, paths: ResultsPaths, surroundings: Surroundings) -> None:
        """Reads what earlier calls left. Raises FolderInUse for a folder of a call without `--run_id`."""
        self._paths, self._around = paths, surroundings
        content = read_object(paths.session_json)
        if content is not None and content.get("format") != FORMAT:
            message = f"{paths.folder} holds the results of a call without --run_id; give another name or folder"
            raise FolderInUse(message)
        runs = (content or {}).get("runs")
        self._runs: dict[str, Any] = dict(runs) if isinstance(runs, dict) else {}

    def candidates(self, specs: Sequence[RunSpec]) -> tuple[Candidate, ...]:
        """What the folder has of each of these runs."""
        return tuple(self._candidate(spec) for spec in specs)

    def _candidate(self, spec: RunSpec) -> Candidate:
        folder = self._folder(spec)
        record = _record(self._runs.get(folder))
        is_finished = record is not None and record.progress == Progress.FINISHED.value
        return Candidate(
            spec=spec,
            folder=str(self._paths.folder / folder),
            record=record,
            run=read_run(self._paths, spec) if is_finished else None,
            request=self._request(spec),
            recipes=self._recipes(spec),
            files=fingerprints(self._paths.folder / folder) if is_finished else {},
        )

    def _folder(self, spec: RunSpec) -> str:
        run = self._paths.run(spec.model, spec.scenario, spec.mode)
        return run.folder.relative_to(self._paths.folder).as_posix()

    def _request(self, spec: RunSpec) -> dict[str, Any]:
        # through JSON, so that it can be compared with what a file says
        request = request_of(spec, self._around.config, self._around.passed_on)
        loaded: dict[str, Any] = json.loads(json.dumps(request))
        return loaded

    def _recipes(self, spec: RunSpec) -> dict[str, str]:
        return recipes_that_matter(self._around.app_meta, self._around.recipes, spec)

    def note(self, spec: RunSpec, progress: Progress, error: str = "") -> None:
        """Notes how far a run came; of a finished one, with what it was made."""
        folder = self._folder(spec)
        row: dict[str, Any] = {"progress": progress.value, "error": error}
        row |= {"request": self._request(spec), "recipes": self._recipes(spec)}
        row["files"] = fingerprints(self._paths.folder / folder) if progress is Progress.FINISHED else {}
        self._runs[folder] = row
        write_whole(self._paths.session_json, json.dumps({"format": FORMAT, "runs": self._runs}, indent=2) + "\n")


def _record(row: object) -> RunRecord | None:
    if not isinstance(row, dict):
        return None
    parts = {name: row.get(name) for name in ("request", "recipes", "files")}
    if not all(isinstance(part, dict) for part in parts.values()):
        return None
    return RunRecord(progress=str(row.get("progress", "")), error=str(row.get("error", "")), **parts)


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
