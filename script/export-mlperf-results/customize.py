"""Hooks of export-mlperf-results: all results of a database as files; with _static run.sh writes the pages."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import sqlite3
from pathlib import Path
from typing import Any

from crowdperf.kit.rooms import MissingRoom, require_room
from crowdperf.rules.names import counted
from crowdperf.store.callpaths import MissingPath, paths_of
from crowdperf.store.data_tables import NoParquet, write_tables
from crowdperf.store.exports import NotEmpty, write_export
from crowdperf.store.schema import StoreError
from crowdperf.store.store import Store

HINT = "hint: cm run script --tags=export,mlperf,results --db=results.db --output=exported"
INPUTS = ("db", "output")
NOT_FOUND = 16


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be exported; nothing is written."""
    try:
        database, output = paths_of(i["values"], *INPUTS)
        if i["env"].get("CM_MLPERF_EXPORT_FORM") == "pages":
            require_room("web", "_static", "leave it out to export files")
    except MissingRoom as error:
        return {"return": 1, "error": str(error)}
    except MissingPath as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if not database.is_file():
        return {"return": NOT_FOUND, "error": f"--db={database} does not exist\n{HINT}"}
    if output.exists() and not output.is_dir():
        return {"return": 1, "error": f"--output={output} is a file: give a folder\n{HINT}"}
    return {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes the export; `state.mlperf_results_export` has the folder and the numbers."""
    env, refused = i["env"], plan(i)
    if refused["return"]:
        return refused
    database, output = paths_of(i["values"], *INPUTS)
    if env.get("CM_MLPERF_EXPORT_FORM") == "pages":
        env["CM_TMP_EXPORT_DB"], env["CM_TMP_EXPORT_OUTPUT"] = str(database), str(output)
        env["CM_TMP_EXPORT_NAME"] = i["values"]["name"]
        i["state"]["mlperf_results_export"] = {"output": str(output), "form": "pages"}
        return {"return": 0}
    env["CM_TMP_EXPORT_DB"] = ""
    try:
        if (form := env.get("CM_MLPERF_EXPORT_FORM")) in ("csv", "parquet"):
            return _tables(i, database, output, form)
        with Store.open(database) as store:
            written = write_export(store, output)
    except (NotEmpty, NoParquet) as error:
        return {"return": 1, "error": str(error)}
    except (StoreError, OSError, sqlite3.Error) as error:
        return {"return": 1, "error": f"cannot export {database} to {output}: {error}\n{HINT}"}
    i["state"]["mlperf_results_export"] = {
        "output": str(output), "form": "files", "results": written.results, "files": written.files
    }  # fmt: skip
    print(f"{counted(written.results, 'result')} and {counted(written.files, 'file')} of them in {output}")
    return {"return": 0}


def _tables(i: dict[str, Any], database: Path, output: Path, form: str) -> dict[str, Any]:
    """Writes the tables and prints how many rows they have."""
    with Store.open(database) as store:
        rows = write_tables(store, output, is_parquet=form == "parquet")
    i["state"]["mlperf_results_export"] = {"output": str(output), "form": form, **rows}
    print(f"{counted(rows['results'], 'result')} and {counted(rows['metrics'], 'further metric')} in {output}")
    return {"return": 0}
