"""What the engine costs beside the recipes it runs: start, cached dependencies, first run of a chain.

    .venv/bin/python benchmarks/engine_overhead.py [--rounds=7] [--json]

Makes a repository of recipes that do nothing in a temporary folder, and measures whole ``cm`` processes, the variants
taking turns in each round so that a busy machine hits all of them alike. Prints medians in ms and the budgets:

a. ``cm run script`` of one cached recipe against ``cm version core``, a bare start of cmind: at most 40 ms more;
b. a recipe with 50 cached dependencies against one with none: at most 100 ms more;
c. the first run of a chain of 50 cached recipes whose customize.py does nothing: at most 10 ms a step.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
STEPS = 50
BUDGET_MS = {"a": 40.0, "b": 100.0, "c": 10.0}
CUSTOMIZE = """def preprocess(i):
    return {"return": 0}


def postprocess(i):
    return {"return": 0}
"""


def write_recipe(root: Path, alias: str, number: int, *, deps: list[str], cache: bool, hooks: bool = False) -> None:
    """One recipe that sets a single env key; ``number`` makes its uid."""
    folder = root / "script" / alias
    folder.mkdir(parents=True)
    meta = {
        "alias": alias,
        "automation_alias": "script",
        "automation_uid": "5b4e0237da074764",
        "cache": cache,
        "deps": [{"tags": f"bench,{name}"} for name in deps],
        "env": {f"BENCH_{number}": "1"},
        "new_env_keys": ["BENCH_*"],
        "tags": ["bench", alias],
        "uid": f"b{number:015x}",
    }
    (folder / "_cm.json").write_text(json.dumps(meta), encoding="utf-8")
    if hooks:
        (folder / "customize.py").write_text(CUSTOMIZE, encoding="utf-8")


def write_repository(root: Path) -> None:
    """The recipes of all three measurements."""
    (root / "cmr.yaml").parent.mkdir(parents=True)
    (root / "cmr.yaml").write_text('alias: bench\nuid: "0123456789abcdef"\n', encoding="utf-8")
    write_recipe(root, "one", 1, deps=[], cache=True, hooks=True)
    write_recipe(root, "none", 2, deps=[], cache=False, hooks=True)
    leaves = [f"leaf-{number}" for number in range(STEPS)]
    write_recipe(root, "many", 3, deps=leaves, cache=False, hooks=True)
    for number, alias in enumerate(leaves):
        write_recipe(root, alias, 100 + number, deps=[], cache=True, hooks=True)
    for number in range(STEPS):
        deps = [f"chain-{number + 1}"] if number + 1 < STEPS else []
        write_recipe(root, f"chain-{number}", 1000 + number, deps=deps, cache=True, hooks=True)


class Bench:
    """A CM home of its own with this checkout and the bench repository; lives for one measurement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.store = folder / "cache"
        write_repository(folder / "repo")
        self.home.mkdir()
        (self.home / "repos.json").write_text(json.dumps([str(CHECKOUT), str(folder / "repo")]), encoding="utf-8")
        self.cm("version", "core")

    def cm(self, *words: str) -> float:
        """Runs ``cm`` and returns its wall time in ms; raises CalledProcessError when it fails."""
        env = {**os.environ, "CM_REPOS": str(self.home), "CROWDPERF_CACHE": str(self.store)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons keep compiled modules
        started_s = time.perf_counter()
        command = [str(Path(sys.executable).parent / "cm"), *words]
        subprocess.run(command, env=env, cwd=self.folder, check=True, capture_output=True)
        return 1000 * (time.perf_counter() - started_s)

    def run(self, alias: str) -> float:
        """Wall time in ms of one recipe."""
        return self.cm("run", "script", f"--tags=bench,{alias}", "--quiet")

    def first_chain(self) -> float:
        """Wall time in ms of the chain with an empty cache."""
        shutil.rmtree(self.store, ignore_errors=True)
        return self.run("chain-0")


def measure(bench: Bench, rounds: int) -> dict[str, list[float]]:
    """Times in ms of every variant, one of each in every round."""
    variants: dict[str, Callable[[], float]] = {
        "first chain": bench.first_chain,
        "bare cmind": lambda: bench.cm("version", "core"),
        "one cached": lambda: bench.run("one"),
        "no dependency": lambda: bench.run("none"),
        "50 cached": lambda: bench.run("many"),
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, action in variants.items():
            if name in ("one cached", "50 cached"):
                action()  # fills the cache that the first chain emptied
            times[name].append(action())
    return times


def main() -> int:
    """Prints the table; exit status 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="engine-overhead-") as folder:
        times = measure(Bench(Path(folder)), max(5, options.rounds))
    median = {name: statistics.median(values) for name, values in times.items()}
    result = {
        "a": median["one cached"] - median["bare cmind"],
        "b": median["50 cached"] - median["no dependency"],
        "c": (median["first chain"] - median["no dependency"]) / STEPS,
    }
    if options.json:
        print(json.dumps({"median_ms": median, "result_ms": result, "budget_ms": BUDGET_MS}, indent=2))
    else:
        for name, value in median.items():
            spread = f"median of {len(times[name])}, {min(times[name]):.1f} to {max(times[name]):.1f}"
            print(f"{name:14} {value:8.1f} ms ({spread})")
        names = {"a": "cached recipe over bare cmind", "b": "50 cached dependencies", "c": "first run, per step"}
        for key, value in result.items():
            verdict = "ok" if value <= BUDGET_MS[key] else "TOO MUCH"
            print(f"{key}. {names[key]:30} {value:7.1f} ms, budget {BUDGET_MS[key]:.0f} ms: {verdict}")
    return 0 if all(result[key] <= BUDGET_MS[key] for key in result) else 1


if __name__ == "__main__":
    sys.exit(main())
