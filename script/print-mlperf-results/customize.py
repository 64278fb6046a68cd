"""Hooks of print-mlperf-results: print what a folder of logs says, and leave NVIDIA's two summary files.

The runs are read and joined by `crowdperf/logs`; `summaries.py` makes the texts.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
import os
import sys
from pathlib import Path

from crowdperf.call.answers import runs_to_its_end
from crowdperf.call.values import is_set
from crowdperf.kit.terminal import colored
from crowdperf.kit.user_paths import users_folder
from crowdperf.kit.whole_file import write_whole
from crowdperf.logs.result_csv import results_csv
from crowdperf.logs.result_rows import read_results, tree_folder
from crowdperf.rules.names import printable

from . import summaries

PERFORMANCE_NAME, ACCURACY_NAME = "perf_harness_summary.json", "accuracy_summary.json"
CSV_NAME = "results_summary.csv"
USUAL_FOLDERS = ("results", "build/logs")
"""Where run-mlperf-inference and NVIDIA's harness leave logs, below the folder where they are called."""


class PrintError(Exception):
    """There is nothing to print."""


def hint(start: Path, asked: Path) -> str:
    """The call to try next: with a usual folder that is there, else with a word in its place."""
    there = [name for name in USUAL_FOLDERS if (start / name).is_dir() and start / name != asked]
    text = f"hint: cm run script --tags=print,mlperf,results --input={there[0] if there else 'FOLDER'}"
    return text if there else f"{text}   # FOLDER contains LoadGen's logs, at any depth"


plan = runs_to_its_end


def preprocess(i):
    """CM hook: reads the logs, prints, writes the summaries."""
    source = i["values"]["input"]
    try:
        if not source.is_dir():
            raise PrintError(f"--input: {source} {'is not a folder' if source.exists() else 'does not exist'}")
        results = read_results(source)
        if not results.rows:
            raise PrintError("\n  ".join([f"no LoadGen run was found below {source}", *results.left_out]))
        return show(i, source, results)
    except (PrintError, OSError) as error:
        return {"return": 1, "error": f"{error}\n{hint(users_folder(i['env']), source)}"}


def show(i, source: Path, results) -> dict:
    """Prints the results, writes the files and gives CM's answer."""
    env, rows, form, output = i["env"], results.rows, i["values"]["form"], i["values"]["output"]
    performance, accuracy = summaries.performance_summary(rows), summaries.accuracy_summary(rows)
    is_csv = is_set(env.get("CM_MLPERF_PRINT_CSV"))
    lines = []
    if is_csv:
        lines = results_csv(rows).splitlines()
    else:
        if form in ("banners", "both"):
            lines += summaries.banner_lines(summaries.PERFORMANCE_BANNER, performance)
            lines += summaries.banner_lines(summaries.ACCURACY_BANNER, accuracy)
            lines += summaries.label_lines(rows)
        if form in ("tree", "both"):
            lines += summaries.tree_lines(rows)
        lines += [f"left out {text}" for text in results.left_out]
    print(colored("\n".join(map(printable, lines)), sys.stdout, os.environ), flush=True)
    i["state"]["mlperf_printed_results"] = {"performance": performance, "accuracy": accuracy}
    in_tree = any(tree_folder(row.runs[0].run) is not None for row in rows)
    if output is None and in_tree:
        print("no summary files were written: they would be stray files in a submission tree (give --output)")
        return {"return": 0}
    files = {
        "CM_MLPERF_PERF_HARNESS_SUMMARY_FILE": (PERFORMANCE_NAME, json.dumps(performance, indent=4) + "\n"),
        "CM_MLPERF_ACCURACY_SUMMARY_FILE": (ACCURACY_NAME, json.dumps(accuracy, indent=4) + "\n"),
    }
    if is_csv:
        files["CM_MLPERF_RESULTS_SUMMARY_CSV"] = (CSV_NAME, results_csv(rows))
    for key, (name, text) in files.items():
        path = (output or source) / name
        write_whole(path, text)
        env[key] = str(path)
    written = f"written to {printable(str(output or source))} (--output=FOLDER: elsewhere): "
    print(written + ", ".join(name for name, _ in files.values()), file=sys.stderr, flush=True)
    return {"return": 0}
