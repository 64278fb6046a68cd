"""One update from the folders to the list of what changes: finds, judges, compares with what is there. Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import file_sha256, read_object
from crowdperf.logs.found_runs import FoundRun, find_runs
from crowdperf.logs.result_rows import label_of, read_measurements
from crowdperf.logs.run_facts import RunFacts, read_run
from crowdperf.logs.run_log import LogError
from crowdperf.logs.system_names import system_name
from crowdperf.rules.names import STAND_IN_LABEL, Mode, with_problems

from . import metadata, placement, rules, selection


class UpdateError(Exception):
    """The update cannot be made; `problems` has one text for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(with_problems("cannot update the results", problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The inputs of a call."""

    source: Path
    folders: placement.Folders
    request: selection.Request
    stamp: metadata.Stamp


@dataclass(frozen=True, slots=True)
class Update:
    """What an update does: `lines` for people, the moves, the metadata afterwards; `missing` what a round asks for."""

    lines: tuple[str, ...]
    moves: tuple[placement.Move, ...]
    content: Mapping[str, Any]
    missing: tuple[tuple[selection.Configuration, str], ...]


def _copied(facts: RunFacts) -> tuple[Path, ...]:
    paths = facts.run.paths
    wanted = [paths.accuracy_log, paths.detail_log, paths.summary_log]
    if facts.run.mode is Mode.ACCURACY:
        wanted.append(paths.accuracy_text)
    return tuple(path for path in wanted if path.is_file())


def _synthetic(facts: RunFacts) -> str:
    """Why a run is not of the published model and data; empty when it is, or does not say."""
    label, is_synthetic = label_of([facts], read_measurements(facts.run))
    made = is_synthetic or STAND_IN_LABEL in label
    return f"{label}, --include_synthetic copies it, with this label" if made else ""


def _read(runs: Sequence[FoundRun], lines: list[str]) -> list[RunFacts]:
    found = []
    for run in runs:
        try:
            found.append(read_run(run))
        except LogError as error:
            lines.append(f"left out {run.relative.as_posix()}: {error}")
    return found


def _old_runs(
    folders: placement.Folders, content: Mapping[str, Any]
) -> dict[selection.Configuration, dict[int, RunFacts]]:
    """The runs in the output that an earlier update wrote, and that are as it wrote them."""
    if not folders.output.is_dir():
        return {}
    found: dict[selection.Configuration, dict[int, RunFacts]] = {}
    for facts in _read(find_runs(folders.output)[0], []):
        place = selection.place_of(facts, facts.run.system)
        slot = facts.run.number or 0
        written = metadata.digests_of(content, place, slot)
        if written is not None and placement.contents(facts.run.paths.folder) == written:
            found.setdefault(place, {})[slot] = facts
    return found


def _describe(kept: selection.KeptRun) -> str:
    facts = kept.facts
    if facts.run.mode is Mode.ACCURACY:
        return facts.scores[0].line
    figure = facts.figure
    return "" if figure is None else f"{figure.value:,.6g} {figure.unit}"


class _Planner:
    """Collects what changes, place by place."""

    def __init__(self, job: Job, content: Mapping[str, Any]) -> None:
        self._job = job
        self.content = content
        self.lines: list[str] = []
        self.moves: list[placement.Move] = []
        self.problems: list[str] = []
        self.missing: list[tuple[selection.Configuration, str]] = []

    def add(self, choice: selection.Choice) -> None:
        place, output = choice.place, self._job.folders.output
        self.lines.append(f"{place.system} {place.benchmark} {place.scenario} ({choice.round_name}):")
        written = {}
        for kept in (*choice.performance, *((choice.accuracy,) if choice.accuracy else ())):
            target = f"{place.system}/{place.benchmark}/{place.scenario}/{metadata.slot_folder(kept.slot)}"
            if not kept.is_new:
                self.lines.append(f"  keep     {target}: {_describe(kept)}")
                continue
            sources, label = _copied(kept.facts), label_of([kept.facts], read_measurements(kept.facts.run))[0]
            digests = {source.name: file_sha256(source) for source in sources}
            before = metadata.digests_of(self.content, place, kept.slot)
            there = placement.contents(output / target)
            if there != digests:
                reason = placement.obstacle(output / target, before)
                if reason:
                    self.problems.append(f"{output / target} {reason}")
                word = "replace" if there else "add"
                from_where = kept.facts.run.relative.as_posix()
                self.lines.append(f"  {word:<8} {target}: {_describe(kept)}, from {from_where}")
                self.moves.append(placement.Move(target, sources, digests))
            else:
                self.lines.append(f"  adopt    {target}: {_describe(kept)}, it is there already")
            written[kept.slot] = metadata.Written(digests, label)
            self.lines += [f"           {label}"] if label else []
        self.lines += [f"  {note}" for note in choice.notes]
        self.lines += [f"  MISSING  {words}" for words in choice.missing]
        self.missing += [(place, words) for words in choice.missing]
        if written:
            self.content = metadata.updated(self.content, choice, written, self._job.stamp)


def prepare(job: Job) -> Update:
    """Return what the update does. Raises UpdateError, metadata.MetadataError; changes nothing."""
    planner = _Planner(job, metadata.read(job.folders.metadata_file))
    if not job.source.is_dir():
        raise UpdateError([f"{job.source} is not a folder. Give the folder with the logs with --input"])
    output, work = job.folders.output.resolve(), job.folders.work.resolve()
    runs, misplaced = find_runs(job.source)
    runs = tuple(run for run in runs if not {output, work} & set(run.paths.folder.resolve().parents))
    planner.lines += [f"left out {found.relative.as_posix()}: {found.reason}" for found in misplaced]
    pools: dict[selection.Configuration, list[RunFacts]] = {}
    for facts in _read(runs, planner.lines):
        place = selection.place_of(facts, system_name(facts.run, read_object(facts.run.paths.metadata_json)))
        round_name = job.request.round_name or facts.round_name
        reason = rules.skip_reason(place.benchmark, facts.run.scenario, job.request.category, round_name)
        reason = reason or ("" if job.request.may_be_synthetic else _synthetic(facts))
        if reason:
            planner.lines.append(f"left out {facts.run.relative.as_posix()}: {reason}")
        else:
            pools.setdefault(place, []).append(facts)
    if not pools:
        raise UpdateError([*planner.lines, f"no run that counts was found below {job.source}"])
    old = _old_runs(job.folders, planner.content)
    for place, found in sorted(selection.with_high_accuracy(pools).items()):
        last = metadata.last_slot(planner.content, place)
        planner.add(selection.choose(place, found, old.get(place, {}), last, job.request))
    if planner.problems:
        hint = "no changes were made. Move these folders away, or set another --output"
        raise UpdateError([*planner.problems, hint])
    return Update(tuple(planner.lines), tuple(planner.moves), planner.content, tuple(planner.missing))
