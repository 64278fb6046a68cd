"""Which files of the engine one call of ``cm`` reaches, and how often control passes from one to another.

    .venv/bin/python benchmarks/engine_reach.py [--files]

Counts with ``sys.setprofile``, in a CM home of its own: a cache hit, and a recipe with one cached dependency that is
made for the first time. A reader who follows such a call from start to end opens the files whose functions run; those
that are only loaded cost time at start. ``--files`` lists the former, each with the number of calls into it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine_overhead import CHECKOUT, Bench, write_recipe

COUNTER = """
import collections, json, sys
import cmind

OPTIMIZED = 1  # a flag of functions: the bodies of modules and classes run without it
loaded, calls, last, switches = set(), collections.Counter(), "", 0

def count(frame, event, argument):
    global last, switches
    name = frame.f_code.co_filename
    if event != "call" or "/automation/" not in name or not name.startswith(sys.argv[1]):
        return
    loaded.add(name)
    if frame.f_code.co_flags & OPTIMIZED:
        calls[name[len(sys.argv[1]) :]] += 1
        switches += name != last
        last = name

sys.setprofile(count)
answer = cmind.access({"action": "run", "automation": "script", "tags": sys.argv[2], "quiet": True})
sys.setprofile(None)
assert answer["return"] == 0, answer
json.dump({"loaded": len(loaded), "calls": calls, "switches": switches}, open(sys.argv[3], "w"))
"""


def reach(bench: Bench, tags: str) -> dict[str, Any]:
    """Of one run: number of files ``loaded``, ``calls`` by file, ``switches`` of control from one file to another."""
    output = bench.folder / "reach.json"
    environment = {**os.environ, "CM_REPOS": str(bench.home), "CROWDPERF_CACHE": str(bench.store)}
    command = [sys.executable, "-c", COUNTER, f"{CHECKOUT}/", tags, str(output)]
    subprocess.run(command, env=environment, cwd=bench.folder, check=True, capture_output=True)
    counted: dict[str, Any] = json.loads(output.read_text())
    return counted


def main() -> int:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="engine-reach-") as folder:
        bench = Bench(Path(folder))
        write_recipe(Path(folder) / "repo", "made", 9000, deps=["one"], cache=True, hooks=True)
        bench.run("one")
        bench.run("none")  # so that the recipe index knows the new recipe
        for name, tags in (("recipe made, with one cached dependency", "bench,made"), ("cache hit", "bench,one")):
            counted = reach(bench, tags)
            calls = counted["calls"]
            print(
                f"{name}: functions of {len(calls)} files run, {counted['loaded']} files loaded, "
                f"{sum(calls.values())} calls, {counted['switches']} switches between files"
            )
            for path, count in sorted(calls.items()) if options.files else ():
                print(f"  {count:5d} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
