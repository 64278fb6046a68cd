"""From a bundle that was read to its results: everything in it must fit (derivations.py), or it is refused.

The files stay in memory. A scenario's runs are one result. Scores are `claimed`: the responses, from which they could
be computed again, are not sent; the digest of their log is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from mlperf_results.foundruns import FoundRun, RunFiles, place_of
from mlperf_results.logs import LogError
from mlperf_results.names import Mode
from mlperf_results.resultrows import label_of
from mlperf_results.runfacts import RunFacts, facts_of
from mlperf_results.textdocuments import mapping, part

from results_store.bundle import ReadBundle
from results_store.curvebundles import result_of_members
from results_store.derivations import RECORD, RESULT, Checked, check_call, check_run, problem_of
from results_store.facts import Documents
from results_store.masking import OF_CALL
from results_store.model import File, NewResult
from results_store.refusal import BundleRefused, refused
from results_store.runresults import Runs, result_of_runs

CALL, ENVIRONMENT = OF_CALL
_MOST_PROBLEMS = 50
_RUN_FOLDER = re.compile(r"^[^/]+/[^/]+/(?:performance/run_\d{1,3}|accuracy)$")


def _by_folder(files: Mapping[str, bytes]) -> dict[str, RunFiles]:
    """The files of each run by their names, by its folder; those of the call by the empty one."""
    found = {"": RunFiles()}
    for path, content in files.items():
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, RunFiles())[name] = content
    return found


def _check(bundle: ReadBundle, call: RunFiles, runs: Mapping[str, RunFiles]) -> dict[str, Checked]:
    """What was found of each run; raises BundleRefused with everything that does not fit, of the call as well."""
    masked = dict[str, dict[str, Collection[str]]]()
    for file in bundle.manifest.files:
        folder, _, name = file.name.rpartition("/")
        masked.setdefault(folder, {})[name] = file.masked
    found = {folder: check_run(own, folder, masked[folder]) for folder, own in runs.items()}
    problems = [] if CALL in call else [problem_of("V13", CALL, "missing", "the results of the call")]
    problems += check_call(mapping(call.object(CALL)), runs) if not problems else []
    problems += [problem for checked in found.values() for problem in checked.problems]
    if problems:
        raise BundleRefused(*problems[:_MOST_PROBLEMS])
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


def _result(bundle: ReadBundle, call: RunFiles, rows: list[tuple[RunFacts, RunFiles]]) -> NewResult | None:
    """The result of one scenario's runs; None without a performance run that has a figure."""
    shown = next(((facts, own) for facts, own in reversed(rows) if facts.run.mode is Mode.PERFORMANCE), None)
    scored = next((facts for facts, _ in reversed(rows) if facts.run.mode is Mode.ACCURACY), None)
    if shown is None:
        return None
    performance, own = shown
    both = (performance,) if scored is None else (performance, scored)
    sizes = {file.name: file for file in bundle.manifest.files}
    folders = tuple(f"{facts.run.relative.as_posix()}/" for facts in both)
    files = [
        File(name=name, sha256=sizes[name].sha256, size_bytes=len(content), body=content)
        for name, content in bundle.files.items()
        if "/" not in name or name.startswith(folders)
    ]
    files += [
        File(name=name, sha256=digest, size_bytes=0, body=None)
        for name, digest in bundle.manifest.digests.items()
        if name.startswith(folders)
    ]
    found = performance.run
    return result_of_runs(
        Runs(
            run_id=f"{bundle.manifest.run_id} {found.model} {found.scenario.value}",
            kind="crowd",
            problems=(),
            performance=performance,
            accuracy=scored,
            label=label_of(both, {})[0],
            documents=_documents(call, own),
            files=tuple(files),
        )
    )


def results_of_bundle(bundle: ReadBundle) -> tuple[NewResult, ...]:
    """Return the results in a bundle. Raises BundleRefused where anything does not fit, or there is no result."""
    if bundle.manifest.is_curve:
        return (result_of_members(bundle.files),)
    runs = _by_folder(bundle.files)
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
    results = [found for rows in grouped.values() if (found := _result(bundle, call, rows)) is not None]
    if not results:
        raise refused("FORM", "", "no performance run with a figure", "at least one")
    return tuple(results)
