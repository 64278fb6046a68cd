"""Finds the results below a folder of LoadGen runs: calls of run,mlperf,inference, submission trees, others' logs.

The runs of one scenario's folder are one result; two calls are two results, however alike they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_results.foundruns import FoundRun, find_runs
from mlperf_results.logs import LogError
from mlperf_results.names import Mode
from mlperf_results.resultrows import label_of, read_measurements, read_system, scenario_folder, tree_folder
from mlperf_results.runfacts import RunFacts, read_run
from mlperf_results.wholefile import read_object

from results_store.facts import Documents
from results_store.model import File, NewResult
from results_store.runresults import Runs, result_of_runs

_DEEPEST = 5
"""How many folders above a run the files of its call are looked for, within the folder that is imported."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that make no result, and why."""

    place: str
    reason: str


class _Calls:
    """Reads the files of a call once for its runs, which come one after another."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last: dict[str, tuple[Path, Mapping[str, Any]]] = {}

    def above(self, folder: Path, name: str) -> Mapping[str, Any]:
        """The next JSON object of this name in a folder above."""
        for parent in folder.parents[:_DEEPEST]:
            kept = self._last.get(name)
            if kept is not None and kept[0] == parent:
                return kept[1]
            found = read_object(parent / name)
            if found is not None:
                self._last[name] = (parent, found)
                return found
            if parent == self._root:
                break
        return {}


def _grouped(root: Path) -> tuple[dict[Path, list[FoundRun]], list[LeftOut]]:
    runs, misplaced = find_runs(root)
    grouped: dict[Path, list[FoundRun]] = {}
    for run in runs:
        grouped.setdefault(scenario_folder(run), []).append(run)
    return grouped, [LeftOut(found.relative.as_posix(), found.reason) for found in misplaced]


def _file(path: Path, folder: Path, sha256: str = "") -> File | None:
    try:
        size = path.stat().st_size
        sha256 = sha256 or hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
    return File(name=path.relative_to(folder).as_posix(), sha256=sha256, size_bytes=size, body=None)


def _files(folder: Path, runs: tuple[RunFacts, ...]) -> Iterator[File]:
    """The files that a figure or a score stands in, by their digests; in a folder's own they stay where they are."""
    for facts in runs:
        paths = facts.run.paths
        wanted = [(paths.summary_log, ""), (paths.detail_log, facts.detail_sha256)]
        if facts.run.mode is Mode.ACCURACY:
            wanted += [(paths.accuracy_text, ""), (paths.accuracy_json, "")]
        for path, sha256 in wanted:
            found = _file(path, folder, sha256)
            if found is not None:
                yield found


def _documents(performance: FoundRun, calls: _Calls, result: Mapping[str, Any]) -> Documents:
    folder = performance.paths.folder
    host = calls.above(folder, "environment.json").get("host")
    is_ours = bool(result)
    return Documents(
        result=result,
        record=read_object(folder / "record.json") or {} if is_ours else {},
        host=host if isinstance(host, Mapping) else {},
        results=calls.above(folder, "results.json") if is_ours else {},
        system=read_system(performance),
        measurements=read_measurements(performance),
    )


def _last(runs: list[FoundRun], mode: Mode) -> FoundRun | None:
    chosen = [run for run in runs if run.mode is mode]
    return max(chosen, key=lambda run: (run.number or 0, run.relative.as_posix()), default=None)


def _result(folder: Path, runs: list[FoundRun], calls: _Calls) -> NewResult | str:
    """The result of a scenario's folder, or why it has none."""
    performance, accuracy = _last(runs, Mode.PERFORMANCE), _last(runs, Mode.ACCURACY)
    if performance is None:
        return "there is an accuracy run only, and no figure of speed"
    shown = read_run(performance)
    scored = read_run(accuracy) if accuracy is not None else None
    both = (shown,) if scored is None else (shown, scored)
    documents = _documents(performance, calls, shown.result or {})
    tree, parts = tree_folder(performance), performance.group.split("/")
    division = tree.parent.name if tree is not None else ""
    identity = [facts.detail_sha256 or facts.run.relative.as_posix() for facts in both]
    found = result_of_runs(
        Runs(
            run_id=" ".join((performance.model, performance.scenario.value, *identity)),
            kind="own",
            verification="none",
            performance=shown,
            accuracy=scored,
            label=label_of(both, documents.measurements)[0],
            documents=documents,
            files=tuple(_files(folder, both)),
            division=division if division in ("closed", "open", "network") else "",
            submitter=tree.name if tree is not None and parts else "",
        )
    )
    return "its log has no figure" if found is None else found


def results_below(root: Path) -> Iterator[NewResult | LeftOut]:
    """Give each result below a folder, and each place without one. Raises OSError."""
    grouped, left_out = _grouped(root)
    calls = _Calls(root)
    for folder, runs in grouped.items():
        place = runs[0].relative.as_posix()
        try:
            found = _result(folder, runs, calls)
        except LogError as error:
            found = str(error)
        yield LeftOut(place, found) if isinstance(found, str) else found
    yield from left_out
