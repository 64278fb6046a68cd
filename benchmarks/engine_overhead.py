"""What the engine costs beside the recipes it runs: start, cached dependencies, first run of a chain.

    .venv/bin/python benchmarks/engine_overhead.py [--rounds=7] [--json] [--reference=CHECKOUT --reference-cm=CM]

Makes a repository of recipes that do nothing in a temporary folder, and measures whole ``cm`` processes, the variants
taking turns in each round so that a busy machine hits all of them alike. Prints medians in ms, of the wall time and of
the CPU time (user + sys), which a busy machine changes less, and the budgets, which count in wall time:

a. ``cm run script`` of one cached recipe against ``cm version core``, a bare start of cmind: at most 30 ms more;
b. a recipe with 50 cached dependencies against one with none: at most 50 ms more;
c. the first run of a chain of 50 cached recipes whose customize.py does nothing: at most 5 ms a step.

``--reference`` is a checkout with another CM engine in ``automation/`` (cm4mlops), ``--reference-cm`` the ``cm`` of an
environment with the cmind that it wants. It then runs the same recipes, in turns with this engine and with compiled
files kept, and two more budgets count: never slower than the reference at a., and at least 6 times as fast at b., which
is what the dependencies cost: of whole calls it cannot be, as a bare ``cm`` takes a fifth of the reference's time. Each
engine's repository of recipes of its own is left out.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
STEPS = 50
BUDGET_MS = {"a": 30.0, "b": 50.0, "c": 5.0}
NAMES = {"a": "cached recipe over bare cmind", "b": "50 cached dependencies", "c": "first run, per step"}
CACHED_VARIANTS = ("one cached", "50 cached")
MIN_RATIO = {"one cached": 1.0, "50 cached dependencies": 6.0}
"""How many times as long the reference may take at least."""
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


class Cost(NamedTuple):
    """What one process took, in ms; ``cpu_ms`` is user + sys, of the processes that it started too."""

    wall_ms: float
    cpu_ms: float


class Bench:
    """A CM home of its own with one engine and the bench repository; lives for one measurement."""

    def __init__(self, folder: Path, engine: Path = CHECKOUT, cm: Path = Path(sys.executable).parent / "cm") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.store = self.home / "repos" / "local" / "cache"
        self._cm = cm
        write_repository(folder / "repo")
        self.home.mkdir()
        alone = folder / "engine"
        alone.mkdir()
        (alone / "cmr.yaml").write_text('alias: engine\nuid: "00000000000e0e02"\n', encoding="utf-8")
        (alone / "automation").symlink_to(engine / "automation")
        (self.home / "repos.json").write_text(json.dumps([str(alone), str(folder / "repo")]), encoding="utf-8")
        self.cm("version", "core")

    def cm(self, *words: str) -> Cost:
        """Runs ``cm`` and returns what it took; raises CalledProcessError when it fails."""
        env = {**os.environ, "CM_REPOS": str(self.home)}
        for name in ("PYTHONDONTWRITEBYTECODE", "CROWDPERF_CACHE"):  # users' Pythons keep compiled modules
            env.pop(name, None)
        before, started_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([str(self._cm), *words], env=env, cwd=self.folder, check=True, capture_output=True)
        wall_s, after = time.perf_counter() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(1000 * wall_s, 1000 * cpu_s)

    def run(self, alias: str) -> Cost:
        """What one recipe takes."""
        return self.cm("run", "script", f"--tags=bench,{alias}", "--quiet")

    def first_chain(self) -> Cost:
        """What the chain takes with an empty cache; cmind's index of the old one goes too."""
        shutil.rmtree(self.store, ignore_errors=True)
        self.cm("reindex", "repo")
        return self.run("chain-0")


def measure(benches: dict[str, Bench], rounds: int) -> dict[str, list[Cost]]:
    """What every variant took with each engine, one of each in every round."""
    times: dict[str, list[Cost]] = {}
    for _ in range(rounds):
        for prefix, bench in benches.items():
            variants: dict[str, Callable[[], Cost]] = {
                "first chain": bench.first_chain,
                "bare cmind": partial(bench.cm, "version", "core"),
                "one cached": partial(bench.run, "one"),
                "no dependency": partial(bench.run, "none"),
                "50 cached": partial(bench.run, "many"),
            }
            for name, action in variants.items():
                if name in CACHED_VARIANTS:
                    action()  # fills the cache that the first chain emptied
                times.setdefault(prefix + name, []).append(action())
    return times


def costs_ms(median: dict[str, float], prefix: str) -> dict[str, float]:
    """What is judged, from the medians of one engine."""
    one = {name.removeprefix(prefix): value for name, value in median.items() if name.startswith(prefix)}
    return {
        "a": one["one cached"] - one["bare cmind"],
        "b": one["50 cached"] - one["no dependency"],
        "c": (one["first chain"] - one["no dependency"]) / STEPS,
    }


def main() -> int:
    """Prints the table; exit status 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--reference", metavar="CHECKOUT", type=Path, help="a checkout with another CM engine")
    parser.add_argument("--reference-cm", metavar="CM", type=Path, help="the cm command that runs it")
    options = parser.parse_args()
    if bool(options.reference) is not bool(options.reference_cm):
        parser.error("--reference and --reference-cm belong together")
    with tempfile.TemporaryDirectory(prefix="engine-overhead-") as folder:
        benches = {"": Bench(Path(folder) / "ours")}
        if options.reference:
            benches["reference: "] = Bench(
                Path(folder) / "reference", options.reference, options.reference_cm.absolute()
            )
        times = measure(benches, max(5, options.rounds))
    median = {name: statistics.median(cost.wall_ms for cost in costs) for name, costs in times.items()}
    cpu_ms = {name: [cost.cpu_ms for cost in costs] for name, costs in times.items()}
    median_cpu = {name: statistics.median(values) for name, values in cpu_ms.items()}
    cost = costs_ms({name: value for name, value in median.items() if ": " not in name}, "")
    theirs = costs_ms(median, "reference: ") if options.reference else {}
    ratio = {name: median[f"reference: {name}"] / median[name] for name in CACHED_VARIANTS} if options.reference else {}
    ratio |= {"50 cached dependencies": theirs["b"] / cost["b"]} if options.reference else {}
    is_met = all(cost[key] <= BUDGET_MS[key] for key in cost)
    is_met &= all(ratio[name] >= least for name, least in MIN_RATIO.items() if name in ratio)
    if options.json:
        rows = {
            "median_ms": median,
            "median_cpu_ms": median_cpu,
            "result_ms": cost,
            "reference_ms": theirs,
            "ratio": ratio,
            "budget_ms": BUDGET_MS,
        }
        print(json.dumps(rows, indent=2))
        return 0 if is_met else 1
    for name, value in median.items():
        walls = [cost.wall_ms for cost in times[name]]
        spread = f"median of {len(walls)}, {min(walls):.1f} to {max(walls):.1f}"
        print(f"{name:25} {value:8.1f} ms ({spread}), CPU {median_cpu[name]:.1f} ms, minimum {min(cpu_ms[name]):.1f}")
    for key, value in cost.items():
        verdict = "ok" if value <= BUDGET_MS[key] else "TOO MUCH"
        beside = f", reference {theirs[key]:.1f} ms" if theirs else ""
        print(f"{key}. {NAMES[key]:30} {value:7.1f} ms, budget {BUDGET_MS[key]:.0f} ms: {verdict}{beside}")
    for name, value in ratio.items():
        least = MIN_RATIO.get(name)
        verdict = "" if least is None else f", at least {least:.0f}: {'ok' if value >= least else 'TOO LITTLE'}"
        print(f"reference / ours, {name:22} {value:7.2f}{verdict}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
