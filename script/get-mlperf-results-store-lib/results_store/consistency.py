"""From a bundle that was read to its results: everything in it must fit (derivations.py), or it is refused.

The files stay in memory. A scenario's runs are one result. Scores are `claimed`: the responses, from which they could
be computed again, are not sent; the digest of their log is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlperf_results.foundruns import FoundRun, place_of
from mlperf_results.logs import LogError
from mlperf_results.names import STAND_IN_LABEL, SYNTHETIC_LABEL, TEST_RUN_LABEL, Mode
from mlperf_results.resultrows import label_of
from mlperf_results.runfacts import RunFacts, facts_of

from results_store.bundle import ReadBundle
from results_store.derivations import GROUPS as GROUPS  # who checks bundles takes all of it from here
from results_store.derivations import RECORD, RESULT, SCORE, check_run, differences, mapping, object_in, problem_of
from results_store.facts import Documents
from results_store.model import File, NewResult, Problem
from results_store.refusal import BundleRefused, refused
from results_store.runresults import Runs, result_of_runs

_MOST_PROBLEMS = 50
_RUN_FOLDER = re.compile(r"^[^/]+/[^/]+/(?:performance/run_\d{1,3}|accuracy)$")

_OF_CALL = ("valid", "invalid_reasons", "errors", "metric", "label", "duration_s", "query_count", "latency")


def _of_call(files: Mapping[str, bytes]) -> Iterator[Problem]:
    """V13: results.json says what the files of its runs say."""
    path = "results.json"
    if path not in files:
        yield problem_of("V13", path, "missing", "the results of the call")
        return
    call = object_in(files, path)
    scenarios = call.get("scenarios")
    labels = set[str]()
    for row in scenarios if isinstance(scenarios, list) else []:
        for kind in ("performance", "accuracy"):
            said = mapping(mapping(row).get(kind))
            name = f"{said.get('folder')}/{RESULT}"
            if not said:
                continue
            if name not in files:
                yield problem_of("V13", path, f"a run in {said.get('folder')}", "a folder of the bundle")
                continue
            result = object_in(files, name)
            keys = _OF_CALL if kind == "performance" else _OF_CALL[:3]
            yield from differences("V13", path, said, {key: result.get(key) for key in keys})
            labels |= set(str(result.get("label")).split("; "))
            score = f"{said.get('folder')}/{SCORE}"
            if kind == "accuracy" and score in files:
                metrics = object_in(files, score).get("metrics")
                yield from differences("V13", path, said, {"metrics": metrics})
    own = str(call.get("label")).split("; ")
    for label in (TEST_RUN_LABEL, SYNTHETIC_LABEL, STAND_IN_LABEL):
        if label in labels and label not in own:
            yield problem_of("V12", path, f"label = {call.get('label')!r}", f"a label with {label!r}, as its runs have")


def check_bundle(bundle: ReadBundle) -> tuple[Problem, ...]:
    """Return everything that does not fit in a bundle, of all its runs and of the call."""
    masked = {file.name: file.masked for file in bundle.manifest.files}
    problems = list(_of_call(bundle.files))
    folders = dict.fromkeys(name.rpartition("/")[0] for name in bundle.files if "/" in name)
    for folder in folders:
        start = f"{folder}/"
        own = {name[len(start) :]: content for name, content in bundle.files.items() if name.startswith(start)}
        touched = {name[len(start) :]: places for name, places in masked.items() if name.startswith(start)}
        problems += check_run(own, folder, touched)
    return tuple(problems[:_MOST_PROBLEMS])


def _own_files(files: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """The files of a run by their names."""
    start = f"{folder}/"
    return {name[len(start) :]: content for name, content in files.items() if name.startswith(start)}


def _runs(bundle: ReadBundle) -> Iterator[tuple[FoundRun, dict[str, bytes]]]:
    """The runs of a bundle, each with its files. Raises BundleRefused for a folder that is not that of a run."""
    root = Path("/") / bundle.manifest.run_id
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in bundle.files if "/" in name):
        found = place_of(root, root / folder)
        if not isinstance(found, FoundRun) or not _RUN_FOLDER.search(folder):
            raise refused("NAME", folder, "not the folder of a run", "MODEL/SCENARIO/performance/run_1 or .../accuracy")
        yield found, _own_files(bundle.files, folder)


def _documents(bundle: ReadBundle, own: Mapping[str, bytes]) -> Documents:
    return Documents(
        result=object_in(own, RESULT),
        record=object_in(own, RECORD),
        host=mapping(object_in(bundle.files, "environment.json").get("host")),
        results=object_in(bundle.files, "results.json"),
    )


def _result(bundle: ReadBundle, rows: list[tuple[RunFacts, dict[str, bytes]]]) -> NewResult | None:
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
            verification="logs consistent",
            performance=performance,
            accuracy=scored,
            label=label_of(both, {})[0],
            documents=_documents(bundle, own),
            files=tuple(files),
        )
    )


def results_of_bundle(bundle: ReadBundle) -> tuple[NewResult, ...]:
    """Return the results in a bundle. Raises BundleRefused where anything does not fit, or there is no result."""
    problems = check_bundle(bundle)
    if problems:
        raise BundleRefused(*problems)
    grouped: dict[tuple[str, str], list[tuple[RunFacts, dict[str, bytes]]]] = {}
    for run, own in _runs(bundle):
        try:
            facts = facts_of(run, own)
        except LogError as error:
            raise refused("FORM", run.relative.as_posix(), str(error), "both logs of LoadGen") from None
        grouped.setdefault((run.model, run.scenario.value), []).append((facts, own))
    results = [found for rows in grouped.values() if (found := _result(bundle, rows)) is not None]
    if not results:
        raise refused("FORM", "", "no performance run with a figure", "at least one")
    return tuple(results)
