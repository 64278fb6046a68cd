"""Hooks of report-mlperf-submission: results_summary.csv and one static HTML report for each submission of a folder.

The runs are read by `crowdperf/logs`; `sections.py` makes the parts of a page, `evidence.py` its links, `report.py` the
page.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
from pathlib import Path

from crowdperf.call.answers import runs_to_its_end
from crowdperf.kit.privacy import find_leaks, known_here
from crowdperf.kit.text_documents import mapping, part
from crowdperf.kit.whole_file import file_sha256, read_object, write_whole
from crowdperf.logs.found_runs import find_runs
from crowdperf.logs.result_csv import results_csv
from crowdperf.logs.result_rows import read_results
from crowdperf.logs.tree import DIVISIONS, BesideTree
from crowdperf.rules.names import counted, printable

from . import report

SUMMARY_NAME = "results_summary.csv"
HINT = "hint: cm run script --tags=report,mlperf,submission --input=FOLDER   # of results, or a submission tree"


class ReportError(Exception):
    """The report cannot be made."""


def check_places(source: Path | None, output: Path) -> Path:
    """The folder to read. Raises ReportError for a missing one, and for an output that would spoil a tree."""
    if source is None:
        raise ReportError("--input is missing: the submission tree or the results folder")
    if not source.is_dir():
        raise ReportError(f"--input: {source} is not a folder")
    for parent in (output.resolve(), *output.resolve().parents):
        if (parent / "systems").is_dir() and (parent / "results").is_dir():
            raise ReportError(f"--output: {output} is in a submission tree, which must not contain reports")
        if parent == source.resolve() and any((source / name).is_dir() for name in DIVISIONS):
            raise ReportError(f"--output: {output} is in the input submission tree")
    return source


def read_loads(folder: Path | None) -> dict:
    """The load.json of every run below a folder, by the SHA-256 of its detail log."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise ReportError(f"--results_dir: {folder} is not a folder")
    runs = [run for run in find_runs(folder)[0] if run.paths.load_json.is_file() and run.paths.detail_log.is_file()]
    found = {file_sha256(run.paths.detail_log): read_object(run.paths.load_json) for run in runs}
    return {digest: load for digest, load in found.items() if load is not None}


def read_origins(source: Path) -> dict:
    """Where the facts of each system come from: <tree>_facts/systems.json of generate-submission, where it is."""
    systems = mapping(part(read_object(BesideTree(source).systems_json), "systems"))
    return {
        system: {
            key: str(origin) for key, row in mapping(part(entry, "facts")).items() if (origin := part(row, "origin"))
        }
        for system, entry in systems.items()
    }


def write(path: Path, text: str, source: Path) -> None:
    """Puts a file in place, whole. Raises ReportError when it would give away a person or a machine."""
    leaks = find_leaks(text, known_here())
    if leaks:
        shown = "\n  ".join(printable(str(leak)) for leak in leaks[:10])
        raise ReportError(f"{path.name} would reveal private information. Change it in {source.name}:\n  {shown}")
    write_whole(path, text)


plan = runs_to_its_end


def preprocess(i):
    """CM hook: reads the folder and writes the summary and the reports."""
    env, values = i["env"], i["values"]
    output = values["output"]
    try:
        source = check_places(values["input"], output)
        results = read_results(source)
        if not results.rows:
            raise ReportError(
                "\n  ".join([f"no LoadGen run was found below {source}", *map(printable, results.left_out)])
            )
        extras = report.Extras(read_loads(values["results_dir"]), read_origins(source))
        summary = output / SUMMARY_NAME
        write(summary, results_csv(results.rows), source)
        files = []
        for submission in report.submissions(results):
            files.append(output / submission.file_name)
            write(files[-1], report.render(submission, extras, results.left_out), source)
    except (ReportError, OSError) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    print(
        "\n".join(
            [
                counted(len(results.rows), "result"),
                f"Summary: {summary}",
                *(f"Report:  {printable(str(file))}" for file in files),
            ]
        )
    )
    env["CM_MLPERF_REPORT_SUMMARY_FILE"] = str(summary)
    env["CM_MLPERF_REPORT_FILES"] = json.dumps([str(file) for file in files])
    i["state"]["mlperf_report"] = {"summary": str(summary), "reports": [str(file) for file in files],
                                   "results": len(results.rows), "left_out": list(results.left_out)}  # fmt: skip
    return {"return": 0}
