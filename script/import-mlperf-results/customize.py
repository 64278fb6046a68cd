"""Hooks of import-mlperf-results: results of a path go into a database, and what became of each is printed."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import dataclasses
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object
from crowdperf.store.callpaths import MissingPath, paths_of
from crowdperf.store.imports import FAILURES, NothingToImport, Report, import_path, is_bundle, report_lines
from crowdperf.store.result_folders import LeftOut

HINT = "hint: cm run script --tags=import,mlperf,results --db=results.db --path=results"
INPUTS = ("db", "path")
NOT_FOUND = 16
REPORT_FILE = "tmp-import.json"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be imported; nothing is read but names, nothing is written."""
    try:
        database, path = paths_of(i["values"], *INPUTS)
    except MissingPath as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if not path.exists():
        return {"return": NOT_FOUND, "error": f"--path={path} does not exist\n{HINT}"}
    if database.is_dir() or not database.parent.is_dir():
        why = "is a folder" if database.is_dir() else "has no parent folder"
        return {"return": 1, "error": f"--db={database} {why}: give a file\n{HINT}"}
    return {"return": 0, "runs": []}


def _reported(i: dict[str, Any], report: Report, path: Path, database: Path) -> dict[str, Any]:
    """Print a report and put it into the state; an import without any result is an error."""
    i["state"]["mlperf_results_import"] = dataclasses.asdict(report)
    print("\n".join(report_lines(report)))
    print(f"see them: cm run script --tags=serve,mlperf,results --db={database}")
    if report.added or report.known or report.changed or report.withdrawn:
        return {"return": 0}
    return {"return": NOT_FOUND, "error": f"{path} has no result that can be imported (the reasons are shown above)"}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: imports; `state.mlperf_results_import` says what was added, known, changed and left out.

    A bundle is left to run.sh: its signature is checked with a package of another environment.
    """
    env, refused = i["env"], plan(i)
    if refused["return"]:
        return refused
    database, path = paths_of(i["values"], *INPUTS)
    env["CM_TMP_IMPORT_KIND"] = "bundle" if is_bundle(path) else "other"
    env["CM_TMP_IMPORT_DB"], env["CM_TMP_IMPORT_PATH"] = str(database), str(path)
    if env["CM_TMP_IMPORT_KIND"] == "bundle":
        return {"return": 0}
    try:
        report = import_path(database, path, with_trust=bool(i["values"]["with_trust"]))
    except NothingToImport as error:
        return {"return": NOT_FOUND, "error": f"{error}\n{HINT}"}
    except FAILURES as error:
        return {"return": 1, "error": f"cannot import {path} into {database}: {error}"}
    return _reported(i, report, path, database)


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: what became of a bundle."""
    env = i["env"]
    if env.get("CM_TMP_IMPORT_KIND") != "bundle":
        return {"return": 0}
    found = read_object(Path(REPORT_FILE)) or {}
    left_out = [LeftOut(**one) for one in found.get("left_out", ())]
    report = Report(**{**found, "kind": "bundle", "left_out": left_out})
    return _reported(i, report, Path(env["CM_TMP_IMPORT_PATH"]), Path(env["CM_TMP_IMPORT_DB"]))
