"""Reads and writes `session.json`: the settings of a call and how far each of its runs came.

    {"format": 1, "settings": {...}, "recipes": {"app-mlperf-inference": "<sha256>", ...},
     "runs": {"Offline performance": {"progress": "finished"},
              "Offline accuracy": {"progress": "failed", "error": "..."}}}

The folder of a call is locked while the call works, so that no two calls go on with the same one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlperf_results.layout import ResultsPaths
from mlperf_results.names import Mode
from mlperf_results.wholefile import read_object, write_whole

from .matrix import RunSpec
from .outcome import FinishedRun
from .resume import FORMAT, FormerRun, Progress, run_name


class SessionFile:
    """The `session.json` of the call that works in ``paths``; each change is on disk before the call goes on."""

    def __init__(self, paths: ResultsPaths, settings: Mapping[str, Any], recipes: Mapping[str, str]) -> None:
        self.path = paths.session_json
        self._content: dict[str, Any] = {
            "format": FORMAT,
            "settings": dict(settings),
            "recipes": dict(recipes),
            "runs": {},
        }

    def take_over(self, content: Mapping[str, Any]) -> None:
        """Goes on with what an earlier call noted: its runs, and the recipes that it began with."""
        self._content["runs"] = dict(content["runs"])
        self._content["recipes"] = dict(content["recipes"])

    def note(self, spec: RunSpec, progress: Progress, error: str = "") -> None:
        """Notes how far a run came."""
        self._content["runs"][run_name(spec)] = {"progress": progress.value, **({"error": error} if error else {})}
        self.write()

    def write(self) -> None:
        """Puts the file in place, whole."""
        write_whole(self.path, json.dumps(self._content, indent=2) + "\n")


def read_session(path: Path) -> dict[str, Any] | None:
    """The content of a session.json; None when there is none that can be used."""
    content = read_object(path)
    is_usable = content is not None and content.get("format") == FORMAT
    if content is None or not is_usable:
        return None
    parts = (content.get("settings"), content.get("runs"), content.get("recipes"))
    return content if all(isinstance(part, dict) for part in parts) else None


def find_former(results_folder: Path, settings: Mapping[str, Any]) -> tuple[ResultsPaths, dict[str, Any]] | None:
    """The newest call with these settings and the content of its session.json; None when there is none."""
    wanted = json.loads(json.dumps(settings))
    try:
        names = sorted(os.listdir(results_folder), reverse=True)
    except OSError:
        return None
    for name in names:
        paths = ResultsPaths(results_folder, name)
        content = read_session(paths.session_json)
        if content is not None and content["settings"] == wanted:
            return paths, content
    return None


def former_runs(paths: ResultsPaths, content: Mapping[str, Any], specs: Sequence[RunSpec]) -> dict[str, FormerRun]:
    """What an earlier call left of each of these runs, by name."""
    found = {}
    for spec in specs:
        row = content["runs"].get(run_name(spec))
        if not isinstance(row, dict) or row.get("progress") not in [progress.value for progress in Progress]:
            continue
        progress = Progress(row["progress"])
        finished = read_run(paths, spec) if progress is Progress.FINISHED else None
        found[run_name(spec)] = FormerRun(progress=progress, error=str(row.get("error", "")), finished=finished)
    return found


def read_run(paths: ResultsPaths, spec: RunSpec) -> FinishedRun | None:
    """The outcome of a finished run from its files; None when one of them is gone or damaged."""
    run = paths.run(spec.model, spec.scenario, spec.mode)
    result = read_object(run.result_json)
    accuracy = read_object(run.accuracy_json) if spec.mode is Mode.ACCURACY else None
    if result is None or "valid" not in result or (spec.mode is Mode.ACCURACY and accuracy is None):
        return None
    folder = run.folder.relative_to(paths.folder).as_posix()
    return FinishedRun(spec=spec, folder=folder, result={"output_dir": str(run.folder), **result}, accuracy=accuracy)
