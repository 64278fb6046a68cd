"""From a bundle that was read to its results: everything in it must fit (derivations.py), or it is refused.

The files stay in memory. A scenario's runs are one result. Scores are `claimed`: the responses, from which they could
be computed again, are not sent; the digest of their log is kept.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crowdperf.kit.text_documents import mapping, part
from crowdperf.logs.found_runs import FoundRun, RunFiles, place_of
from crowdperf.logs.result_rows import label_of
from crowdperf.logs.run_facts import RunFacts, facts_of
from crowdperf.logs.run_log import LogError
from crowdperf.rules.names import Mode
from crowdperf.store.curve_bundles import result_of_members
from crowdperf.store.derivations import RECORD, RESULT, Checked, check_call, check_run, problem_of
from crowdperf.store.facts import Documents
from crowdperf.store.model import File, NewResult, Problem, ResultKind
from crowdperf.store.redaction import LOGS, OF_CALL
from crowdperf.store.refusal import BundleRefused, refused
from crowdperf.store.run_results import Runs, result_of_runs

if TYPE_CHECKING:
    from crowdperf.store.bundle import ReadBundle  # reads signatures, with a package that an import has not

CALL, ENVIRONMENT = OF_CALL
_MAX_PROBLEMS = 50
_RUN_FOLDER = re.compile(r"^[^/]+/[^/]+/(?:performance/run_\d{1,3}|accuracy)$")


def _check(bundle: ReadBundle, call: RunFiles, runs: Mapping[str, RunFiles]) -> dict[str, Checked]:
    """What was found of each run; raises BundleRefused with everything that does not fit, of the call as well."""
    masked = dict[str, dict[str, Collection[str]]]()
    for file in bundle.manifest.files:
        folder, _, name = file.name.rpartition("/")
        masked.setdefault(folder, {})[name] = file.masked
    found = {folder: check_run(own, folder, masked[folder]) for folder, own in runs.items()}
    problems = [] if CALL in call else [problem_of("V13", CALL, "missing", "the results of the run")]
    problems += check_call(mapping(call.object(CALL)), runs) if not problems else []
    problems += [problem for checked in found.values() for problem in checked.problems]
    if problems:
        raise BundleRefused(*problems[:_MAX_PROBLEMS])
    return found


def _run_of(bundle: ReadBundle, folder: str) -> FoundRun:
    """The run in a folder. Raises BundleRefused for one that is not that of a run."""
    root = Path("/") / bundle.manifest.run_id
    found = place_of(root, root / folder)
    if not isinstance(found, FoundRun) or not _RUN_FOLDER.search(folder):
        raise refused("NAME", folder, "not the folder of a run", "MODEL/SCENARIO/performance/run_1 or .../accuracy")
    return found


def _documents(call: RunFiles, own: RunFiles) -> Documents:
    return Documents(
        result=mapping(own.object(RESULT)),
        record=mapping(own.object(RECORD)),
        host=mapping(part(call.object(ENVIRONMENT), "host")),
        results=mapping(call.object(CALL)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Whose files they are: the run they are called by, and all of them; what does not fit in them."""

    run_id: str
    kind: ResultKind
    files: tuple[File, ...]
    problems: tuple[Problem, ...] = ()


def _origin_of(bundle: ReadBundle) -> _Origin:
    sizes = {file.name: file for file in bundle.manifest.files}
    files = [
        File(name=name, sha256=sizes[name].sha256, size_bytes=len(content), body=content)
        for name, content in bundle.files.items()
    ]
    files += [
        File(name=name, sha256=digest, size_bytes=0, body=None)
        for name, digest in bundle.manifest.digests.items()
        if "/" in name
    ]
    return _Origin(run_id=bundle.manifest.run_id, kind="crowd", files=tuple(files))


def _result(origin: _Origin, call: RunFiles, rows: list[tuple[RunFacts, RunFiles]]) -> NewResult | None:
    """The result of one scenario's runs; None without a performance run that has a figure."""
    shown = next(((facts, own) for facts, own in reversed(rows) if facts.run.mode is Mode.PERFORMANCE), None)
    scored = next((facts for facts, _ in reversed(rows) if facts.run.mode is Mode.ACCURACY), None)
    if shown is None:
        return None
    performance, own = shown
    both = (performance,) if scored is None else (performance, scored)
    folders = tuple(f"{facts.run.relative.as_posix()}/" for facts in both)
    found = performance.run
    return result_of_runs(
        Runs(
            run_id=f"{origin.run_id} {found.model} {found.scenario.value}",
            kind=origin.kind,
            problems=origin.problems,
            performance=performance,
            accuracy=scored,
            label=label_of(both, {})[0],
            documents=_documents(call, own),
            files=tuple(file for file in origin.files if "/" not in file.name or file.name.startswith(folders)),
        )
    )


def _any_masked(files: RunFiles) -> dict[str, Collection[str]]:
    """What may have been masked in the files of a run, where no manifest says it: all but the logs."""
    found: dict[str, Collection[str]] = {name: ("text",) for name in files if name not in LOGS}
    return found | {RECORD: tuple(mapping(files.object(RECORD)))}


def derived_again(new: NewResult) -> NewResult | None:
    """Return what the logs of a result say, with what does not fit in its notes; None without logs that have a figure.

    Its files come from an export: without the manifest and the signature of the bundle that they were in.
    """
    runs = RunFiles({file.name: file.body for file in new.files if file.body is not None}).by_folder()
    call = runs.pop("")
    runs = {folder: own for folder, own in runs.items() if _RUN_FOLDER.search(folder)}
    checked = {folder: check_run(own, folder, _any_masked(own)) for folder, own in runs.items()}
    problems = [problem for one in checked.values() for problem in one.problems]
    problems += check_call(mapping(call.object(CALL)), runs, is_whole=False) if CALL in call else []
    rows, root = list[tuple[RunFacts, RunFiles]](), Path("/export")
    try:
        for folder, own in runs.items():
            if isinstance(run := place_of(root, root / folder), FoundRun):
                rows.append((facts_of(run, own, checked[folder].log), own))
    except LogError:
        return None
    origin = _Origin(run_id=new.run_id, kind=new.kind, files=new.files, problems=tuple(problems[:_MAX_PROBLEMS]))
    found = _result(origin, call, rows)
    return None if found is None else dataclasses.replace(found, run_id=new.run_id)


def results_of_bundle(bundle: ReadBundle) -> tuple[NewResult, ...]:
    """Return the results in a bundle. Raises BundleRefused where anything does not fit, or there is no result."""
    if bundle.manifest.is_curve:
        return (result_of_members(bundle.files),)
    runs, origin = bundle.files.by_folder(), _origin_of(bundle)
    call = runs.pop("")
    checked = _check(bundle, call, runs)
    grouped: dict[tuple[str, str], list[tuple[RunFacts, RunFiles]]] = {}
    for folder, own in runs.items():
        run = _run_of(bundle, folder)
        try:
            facts = facts_of(run, own, checked[folder].log)
        except LogError as error:
            raise refused("FORM", run.relative.as_posix(), str(error), "both logs of LoadGen") from None
        grouped.setdefault((run.model, run.scenario.value), []).append((facts, own))
    results = [found for rows in grouped.values() if (found := _result(origin, call, rows)) is not None]
    if not results:
        raise refused("FORM", "", "no performance run with a result", "at least one")
    return tuple(results)
