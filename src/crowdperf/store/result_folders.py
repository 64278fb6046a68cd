"""Finds the results below a folder of LoadGen runs: calls of run,mlperf,inference, submission trees, others' logs.

The runs of one scenario's folder are one result; two calls are two results, however alike they are.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crowdperf
from crowdperf.kit.text_documents import mapping
from crowdperf.kit.whole_file import read_object
from crowdperf.logs.found_runs import FoundRun, RunFiles, files_of, find_runs
from crowdperf.logs.result_rows import (
    MEASUREMENTS,
    label_of,
    read_measurements,
    read_system,
    scenario_folder,
    tree_files,
    tree_folder,
)
from crowdperf.logs.run_facts import RunFacts, facts_of
from crowdperf.logs.run_log import LogError
from crowdperf.logs.tree import DIVISIONS
from crowdperf.rules.names import Mode
from crowdperf.store.derivations import DETAIL, RECORD, RESULT, SCORE, SCORE_TEXT, check_call, check_run
from crowdperf.store.facts import Documents
from crowdperf.store.keys import digest_of
from crowdperf.store.model import File, NewResult, Problem
from crowdperf.store.redaction import LOGS, OF_CALL, OF_RUN
from crowdperf.store.run_results import Runs, result_of_runs

CALL, ENVIRONMENT = OF_CALL
_DEEPEST = 5
"""How many folders above a run the files of its call are looked for, within the folder that is imported."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that make no result, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A scenario's folder whose files gave a result before. state: the result's."""

    state: str


_SETTLED_S = 2.0
"""Files that changed later than this before they were read are read again: they may change once more within the
resolution of the file system's clock (FAT's is 2 s)."""


class Stamp:
    """Of the files that a scenario's result is read from: a digest of their places, sizes, inodes and times (of their
    content, and of the last change of any kind, which no program can set). Files that are missing count, too."""

    def __init__(self, root: Path, runs: list[FoundRun]) -> None:
        self.began_s = time.time()
        self.newest_s = 0.0
        entries = [[crowdperf.__version__, str(root)], *map(self._entry, sorted(_sources(root, runs)))]
        self.digest = digest_of(entries)

    def _entry(self, path: str) -> list[str | int]:
        try:
            found = os.stat(path)
        except OSError:
            return [path]
        self.newest_s = max(self.newest_s, found.st_ctime, found.st_mtime)
        return [path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]

    @property
    def is_settled(self) -> bool:
        """Whether files with this stamp can have one content only."""
        return self.newest_s < self.began_s - _SETTLED_S


def _sources(root: Path, runs: list[FoundRun]) -> set[str]:
    """The places of all files that a scenario's result may be read from."""
    found: set[str] = set()
    for run in runs:
        folder = run.paths.folder
        found.update(f"{folder}/{name}" for name in OF_RUN)
        found.add(f"{scenario_folder(run)}/{MEASUREMENTS}")
        for parent in folder.parents[:_DEEPEST]:
            found.update(f"{parent}/{name}" for name in OF_CALL)
            if parent == root:
                break
        found.update(map(str, tree_files(run)))
    return found


class _Calls:
    """Reads the files of a call once for its runs, which come one after another."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last: dict[str, tuple[Path, Mapping[str, Any]]] = {}

    def above(self, folder: Path, name: str) -> tuple[Path, Mapping[str, Any]]:
        """The next JSON object of this name in a folder above, and that folder; an empty one where there is none."""
        for parent in folder.parents[:_DEEPEST]:
            kept = self._last.get(name)
            if kept is not None and kept[0] == parent:
                return kept
            found = read_object(parent / name)
            if found is not None:
                self._last[name] = (parent, found)
                return parent, found
            if parent == self._root:
                break
        return folder, {}


def _grouped(root: Path) -> tuple[dict[Path, list[FoundRun]], list[LeftOut]]:
    runs, misplaced = find_runs(root)
    grouped: dict[Path, list[FoundRun]] = {}
    for run in runs:
        grouped.setdefault(scenario_folder(run), []).append(run)
    return grouped, [LeftOut(found.relative.as_posix(), found.reason) for found in misplaced]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as it was read: its files by name, what they say, and what of them does not fit; None: nobody looked."""

    contents: RunFiles
    facts: RunFacts
    problems: tuple[Problem, ...] | None


def _read(run: FoundRun, folder: Path) -> _Run:
    """Read a run; one of this project is checked. Raises LogError."""
    contents = files_of(run, OF_RUN)
    if RESULT not in contents:
        return _Run(contents, facts_of(run, contents), None)
    checked = check_run(contents, run.paths.folder.relative_to(folder.parent.parent).as_posix())
    return _Run(contents, facts_of(run, contents, checked.log), checked.problems)


def _files(folder: Path, runs: tuple[_Run, ...]) -> Iterator[File]:
    """The files that a figure or a score stands in, by their digests; in a folder's own they stay where they are."""
    for run in runs:
        place = run.facts.run.paths.folder.relative_to(folder).as_posix()
        for name in (*LOGS, *((SCORE_TEXT, SCORE) if run.facts.run.mode is Mode.ACCURACY else ())):
            content = run.contents.get(name)
            if content is not None:
                known = run.facts.detail_sha256 if name == DETAIL else ""
                digest = known or hashlib.sha256(content).hexdigest()
                yield File(name=f"{place}/{name}", sha256=digest, size_bytes=len(content), body=None)


def _documents(performance: _Run, calls: _Calls) -> Documents:
    run, is_ours = performance.facts.run, performance.facts.result is not None
    host = calls.above(run.paths.folder, ENVIRONMENT)[1].get("host")
    return Documents(
        result=performance.facts.result or {},
        record=mapping(performance.contents.object(RECORD)) if is_ours else {},
        host=mapping(host),
        results=calls.above(run.paths.folder, CALL)[1] if is_ours else {},
        system=read_system(run),
        measurements=read_measurements(run),
    )


def _problems(runs: tuple[_Run, ...], calls: _Calls) -> tuple[Problem, ...] | None:
    """What does not fit in the runs of a result; None where they are not this project's."""
    if any(run.problems is None for run in runs):
        return None
    found = [problem for run in runs for problem in run.problems or ()]
    above, call = calls.above(runs[0].facts.run.paths.folder, CALL)
    own = {run.facts.run.paths.folder.relative_to(above).as_posix(): run.contents for run in runs} if call else {}
    return (*found, *check_call(call, own, is_whole=False))


def _last(runs: list[FoundRun], mode: Mode) -> FoundRun | None:
    chosen = [run for run in runs if run.mode is mode]
    return max(chosen, key=lambda run: (run.number or 0, run.relative.as_posix()), default=None)


def _result(folder: Path, runs: list[FoundRun], calls: _Calls) -> NewResult | str:
    """The result of a scenario's folder, or why it has none."""
    performance, accuracy = _last(runs, Mode.PERFORMANCE), _last(runs, Mode.ACCURACY)
    if performance is None:
        return "there is only an accuracy run, and no performance result"
    both = tuple(_read(run, folder) for run in (performance, accuracy) if run is not None)
    both_facts = [run.facts for run in both]
    documents = _documents(both[0], calls)
    tree, parts = tree_folder(performance), performance.group.split("/")
    division = tree.parent.name if tree is not None else ""
    identity = [facts.detail_sha256 or facts.run.relative.as_posix() for facts in both_facts]
    found = result_of_runs(
        Runs(
            run_id=" ".join((performance.model, performance.scenario.value, *identity)),
            kind="own",
            problems=_problems(both, calls),
            performance=both_facts[0],
            accuracy=both_facts[1] if accuracy is not None else None,
            label=label_of(both_facts, documents.measurements)[0],
            documents=documents,
            files=tuple(_files(folder, both)),
            division=division if division in DIVISIONS else "",
            submitter=tree.name if tree is not None and parts else "",
        )
    )
    return "its log has no result" if found is None else found


def results_below(
    root: Path, seen: Mapping[str, str] | None = None
) -> Iterator[tuple[NewResult, str] | LeftOut | Seen]:
    """Give each result below a folder with the stamp of its files, and each place without one. seen: states of results
    by stamps of files that are not read again. Raises OSError."""
    grouped, left_out = _grouped(root)
    calls = _Calls(root)
    for folder, runs in grouped.items():
        stamp = Stamp(root, runs)
        if seen and (state := seen.get(stamp.digest)) is not None:
            yield Seen(state)
            continue
        place = runs[0].relative.as_posix()
        try:
            found = _result(folder, runs, calls)
        except LogError as error:
            found = str(error)
        yield LeftOut(place, found) if isinstance(found, str) else (found, stamp.digest if stamp.is_settled else "")
    yield from left_out
