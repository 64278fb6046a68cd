"""What 10,000 recipes and 10,000 cache entries cost beside 100 of each, and a plan of 300 steps.

    .venv/bin/python benchmarks/scale.py [--rounds=7] [--big=10000] [--small=100] [--cmind-index] [--json]
                                         [--reference=CHECKOUT --reference-cm=CM --reference-big=1000]

Writes two repositories of recipes (variations, conditions, dependencies, versions; every recipe has an entry in the
cache, made by the engine's own store) to a temporary folder, and measures whole ``cm`` processes. Small and big take
turns in each round, so that a busy machine hits both alike; next to the wall time is the CPU time, which other
processes disturb less.

a. the first index of the big repository: under 15 s;
b. a warm run of one cached recipe with one cached dependency: big at most 1.3 times small;
c. a plan of 300 steps (``cm plan script``), in all and over a bare start of cmind: under 1 s in all;
d. with ``--cmind-index`` the runs of b. where cmind's own ``index.json`` knows all recipes and entries too: each ``cm``
   command then reads that file before the engine starts, which ``CM_INDEX=off`` avoids. Not judged: it is cmind's.

``--reference`` is a checkout of cm4mlops and ``--reference-cm`` the ``cm`` of an environment with the cmind that it
wants. The same generated recipes are then run by both engines, each with entries of its own making, and the ratios are
printed; ``--reference-big`` says how many recipes, because the other engine is slow. Exit status 1 when a budget is
exceeded.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "automation"))

from recipe_engine.disk.store import Maker, Outcome, Store  # noqa: E402
from recipe_engine.rules.model import CacheKey, RecipeId  # noqa: E402
from recipe_engine.rules.query import VersionRange  # noqa: E402

FIRST_INDEX_BUDGET_S = 15.0
WARM_RATIO_BUDGET = 1.3
PLAN_BUDGET_S = 1.0
BRANCHES = 13
LEAVES = 22
"""One step asks for BRANCHES others and each of these for LEAVES: 1 + 13 + 13 * 22 = 300 steps."""
PLANNED_STEPS = 1 + BRANCHES + BRANCHES * LEAVES
ASKED = 7
"""The number of the recipe that the warm runs ask for; it has one dependency, which is cached too."""
KINDS = ("get", "install", "build", "convert", "prepare")
THINGS = ("tool", "model", "dataset", "library", "runtime", "driver", "compiler")
META = """alias: {alias}
automation_alias: script
automation_uid: 5b4e0237da074764
cache: true
category: Generated recipes
default_env:
  CM_BENCH_MODE: plain
  CM_BENCH_{number}_LEVEL: '2'
default_version: '1.{number}'
deps:{deps}
input_description:
  level:
    desc: How much to do
    choices: ['1', '2', '3']
input_mapping:
  level: CM_BENCH_{number}_LEVEL
  mode: CM_BENCH_MODE
env:
  CM_BENCH_{number}: 'yes'
new_env_keys:
- CM_BENCH_{number}
- CM_BENCH_{number}_*
prehook_deps:
- tags: bench,{other}
  names: [helper]
  enable_if_env:
    CM_BENCH_MODE: ['helped']
tags: [{tags}]
uid: {uid}
variations:
  fp32:
    default: true
    env:
      CM_BENCH_{number}_PRECISION: fp32
    group: precision
  fp16:
    env:
      CM_BENCH_{number}_PRECISION: fp16
    group: precision
  int8:
    add_deps_recursive:
      helper:
        tags: _int8
    env:
      CM_BENCH_{number}_PRECISION: int8
    group: precision
  batch_size.#:
    env:
      CM_BENCH_{number}_BATCH: '#'
  with-checks:
    deps:
    - tags: bench,{other},_fp16
      if_env:
        CM_BENCH_MODE: ['helped']
    env:
      CM_BENCH_{number}_CHECKED: 'yes'
versions:
  '1.{number}':
    env:
      CM_BENCH_{number}_VERSION: '1.{number}'
  '2.{number}':
    env:
      CM_BENCH_{number}_VERSION: '2.{number}'
"""
CUSTOMIZE = """def preprocess(i):
    return {"return": 0}


plan = preprocess
"""


def alias_of(number: int) -> str:
    """``get-tool-00000`` and the like."""
    return f"{KINDS[number % len(KINDS)]}-{THINGS[number % len(THINGS)]}-{number:05d}"


def uid_of(number: int) -> str:
    """A recipe's uid."""
    return f"b{number:015x}"


def tags_of(number: int) -> list[str]:
    """Tags that many share, tags that some share, and one of its own."""
    return ["bench", KINDS[number % len(KINDS)], THINGS[number % len(THINGS)], f"family-{number % 100}", f"n{number}"]


def write_repository(root: Path, count: int) -> None:
    """``count`` recipes; every one from the second on needs the first."""
    root.mkdir(parents=True)
    (root / "cmr.yaml").write_text('alias: bench\ngit: false\nuid: "0123456789abcdef"\n', encoding="utf-8")
    for number in range(count):
        folder = root / "script" / alias_of(number)
        folder.mkdir(parents=True)
        text = META.format(
            alias=alias_of(number),
            uid=uid_of(number),
            number=number,
            tags=", ".join(tags_of(number)),
            deps="\n- tags: bench,n0" if number else " []",
            other=f"n{(number + 1) % count}",
        )
        (folder / "_cm.yaml").write_text(text, encoding="utf-8")
        (folder / "customize.py").write_text(CUSTOMIZE, encoding="utf-8")


def write_entries(root: Path, count: int) -> None:
    """A finished entry for each recipe, through the engine's own store."""
    store = Store(root)
    for number in range(count):
        key = CacheKey(
            recipe=RecipeId(alias_of(number), uid_of(number)),
            required_tags=(*tags_of(number), f"script-artifact-{uid_of(number)}"),
            excluded_tags=(),
            explicit=(),
            variations=("fp32",),
            extra_tags=(),
            inputs={},
            version=VersionRange(exact=f"1.{number}"),
        )
        outcome = Outcome(
            new_env={f"CM_BENCH_{number}": "yes", f"CM_BENCH_{number}_PRECISION": "fp32"},
            new_state={},
            dependencies=[{"tags": "bench,n0"}] if number else [],
            version=f"1.{number}",
            added_tags=(),
            files=(),
            dependent_path="",
            details={"recipe": key.recipe.text},
        )
        store.commit(store.start(key, Maker("0" * 64, "00000000")), key, outcome)


def write_plan(root: Path) -> None:
    """The recipes of a plan of PLANNED_STEPS steps, with variations and conditions; none has an entry in the cache."""

    def write(alias: str, number: int, deps: list[str]) -> None:
        folder = root / "script" / alias
        folder.mkdir(parents=True)
        text = META.format(
            alias=alias,
            uid=f"c{number:015x}",
            number=number,
            tags=f"plan, {alias}",
            deps="".join(f"\n- tags: plan,{name}\n  skip_if_env: {{CM_BENCH_MODE: ['never']}}" for name in deps)
            or " []",
            other="n0",
        )
        (folder / "_cm.yaml").write_text(text, encoding="utf-8")
        (folder / "customize.py").write_text(CUSTOMIZE, encoding="utf-8")

    number = 1_000_000
    branches = [f"branch-{branch}" for branch in range(BRANCHES)]
    write("root", number, [f"{name},_fp16" for name in branches])
    for branch, name in enumerate(branches):
        leaves = [f"leaf-{branch}-{leaf}" for leaf in range(LEAVES)]
        write(
            name, number + 1 + branch, [f"{leaf},_int8,_batch_size.{position}" for position, leaf in enumerate(leaves)]
        )
        for leaf, leaf_name in enumerate(leaves):
            write(leaf_name, number + 100 + branch * LEAVES + leaf, [])


class Cost(NamedTuple):
    """What a process took, both in s: wall time, and CPU time of itself and its children."""

    wall_s: float
    cpu_s: float


class Bench:
    """A CM home with an engine, the generated repository and a cache, all in one folder."""

    def __init__(self, folder: Path, engine: Path, cm: Path, count: int) -> None:
        self.folder = folder
        self.cm_path = cm
        self.home = folder / "home"
        self.store = folder / "cache"
        self.home.mkdir(parents=True)
        write_repository(folder / "repo", count)
        self._register(engine)
        self.cm("version", "core")  # cmind's own index, of the engine only, as run.sh makes it
        self._register(engine, folder / "repo")

    def _register(self, *repos: Path) -> None:
        (self.home / "repos.json").write_text(json.dumps([str(repo) for repo in repos]), encoding="utf-8")

    def cm(self, *words: str, index: bool = True) -> Cost:
        """What a ``cm`` process took; ends the program when it fails."""
        return self._run(words, index=index)[0]

    def _run(self, words: tuple[str, ...], *, index: bool = True) -> tuple[Cost, str]:
        env = {**os.environ, "CM_REPOS": str(self.home), "CROWDPERF_CACHE": str(self.store)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons keep compiled modules
        if not index:
            env["CM_INDEX"] = "off"
        before = os.times()
        started_s = time.perf_counter()
        done = subprocess.run([str(self.cm_path), *words], env=env, cwd=self.folder, capture_output=True, text=True)
        wall_s = time.perf_counter() - started_s
        after = os.times()
        if done.returncode:
            sys.exit(f"cm {' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        return Cost(wall_s, cpu_s), done.stdout

    def warm_run(self, **options: Any) -> Cost:
        """One cached recipe with one cached dependency."""
        return self.cm("run", "script", f"--tags=bench,n{ASKED}", "--quiet", **options)

    def plan(self) -> Cost:
        """A plan of PLANNED_STEPS steps; ends the program when it has another number of them."""
        cost, text = self._run(("plan", "script", "--tags=plan,root", "--quiet"))
        if not re.search(rf"^steps: +{PLANNED_STEPS}: {PLANNED_STEPS} to make$", text, re.MULTILINE):
            sys.exit(f"the plan has not {PLANNED_STEPS} steps:\n{text[:2000]}")
        return cost

    def first_index(self) -> Cost:
        """A run that finds no index of recipes."""
        shutil.rmtree(self.home / "recipe-index", ignore_errors=True)
        return self.warm_run()


Times = dict[str, list[Cost]]


def take_turns(rounds: int, actions: dict[str, Callable[[], Cost]]) -> Times:
    """What all actions took, one of each in every round."""
    times: Times = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(action())
    return times


def make_bench(folder: Path, count: int) -> Bench:
    """The bench of this checkout's engine with ``count`` recipes and entries."""
    bench = Bench(folder, CHECKOUT, Path(sys.executable).parent / "cm", count)
    write_entries(bench.store, count)
    return bench


def measure(folder: Path, options: argparse.Namespace) -> Times:
    """What every measurement of this engine took."""
    benches = {count: make_bench(folder / str(count), count) for count in (options.small, options.big)}
    small, big = benches[options.small], benches[options.big]
    times: Times = {"first index": [big.first_index()]}
    small.warm_run()
    big.warm_run()  # notes the entries in the index of the cache
    warm: dict[str, Callable[[], Cost]] = {
        "bare cm": lambda: small.cm("version", "core"),
        "warm small": small.warm_run,
        "warm big": big.warm_run,
    }
    times |= take_turns(options.rounds, warm)
    write_plan(small.folder / "repo")
    small.plan()  # reads the new recipes once
    planning: dict[str, Callable[[], Cost]] = {"bare cm next to plan": lambda: small.cm("version", "core")}
    times |= take_turns(options.rounds, planning | {f"plan of {PLANNED_STEPS}": small.plan})
    if options.cmind_index:
        times |= measure_cmind_index(small, big, options.rounds)
    return times


def measure_cmind_index(small: Bench, big: Bench, rounds: int) -> Times:
    """The warm runs where cmind's own index knows every recipe and entry."""
    for bench in (small, big):
        shutil.copytree(bench.store, bench.home / "repos" / "local" / "cache")
        bench.cm("reindex", "repo")
    indexed: dict[str, Callable[[], Cost]] = {
        "bare cm big, cmind index": lambda: big.cm("version", "core"),
        "warm small, cmind index": small.warm_run,
        "warm big, cmind index": big.warm_run,
        "warm big, CM_INDEX=off": lambda: big.warm_run(index=False),
    }
    return take_turns(rounds, indexed)


def measure_reference(folder: Path, options: argparse.Namespace) -> Times:
    """Both engines on equal repositories: the first run ever, and warm ones, without and with many recipes."""
    times: Times = {}
    for count in (options.small, options.reference_big):
        ours = Bench(folder / f"ours-{count}", CHECKOUT, Path(sys.executable).parent / "cm", count)
        theirs = Bench(folder / f"theirs-{count}", Path(options.reference), Path(options.reference_cm), count)
        times |= {f"ours first, {count}": [ours.warm_run()], f"theirs first, {count}": [theirs.warm_run()]}
        for bench in (ours, theirs):
            bench.warm_run()
        pair: dict[str, Callable[[], Cost]] = {
            f"ours bare, {count}": lambda bench=ours: bench.cm("version", "core"),  # type: ignore[misc]
            f"theirs bare, {count}": lambda bench=theirs: bench.cm("version", "core"),  # type: ignore[misc]
            f"ours warm, {count}": ours.warm_run,
            f"theirs warm, {count}": theirs.warm_run,
        }
        times |= take_turns(options.rounds, pair)
    return times


def results(times: Times, options: argparse.Namespace) -> dict[str, tuple[float, float | None]]:
    """Name of each figure to the figure and its budget, if it has one."""
    wall = {name: statistics.median(cost.wall_s for cost in costs) for name, costs in times.items()}
    cpu = {name: statistics.median(cost.cpu_s for cost in costs) for name, costs in times.items()}
    plan = f"plan of {PLANNED_STEPS}"
    found: dict[str, tuple[float, float | None]] = {
        "a. first index, s": (wall["first index"], FIRST_INDEX_BUDGET_S),
        "b. warm big / warm small": (wall["warm big"] / wall["warm small"], WARM_RATIO_BUDGET),
        "b. the same in CPU time": (cpu["warm big"] / cpu["warm small"], None),
        f"c. {plan} steps, s": (wall[plan], PLAN_BUDGET_S),
        "c. the same over a bare cm, s": (wall[plan] - wall["bare cm next to plan"], None),
    }
    if options.reference:
        for count in (options.small, options.reference_big):
            for kind in ("first", "warm"):
                ratio = wall[f"theirs {kind}, {count}"] / wall[f"ours {kind}, {count}"]
                found[f"reference / ours, {kind}, {count} recipes"] = (ratio, None)
    return found


def main() -> int:
    """Prints the tables; exit status 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", type=int, default=100)
    parser.add_argument("--big", type=int, default=10_000)
    parser.add_argument("--cmind-index", action="store_true")
    parser.add_argument("--reference", metavar="CHECKOUT", help="a checkout of cm4mlops")
    parser.add_argument("--reference-cm", metavar="CM", help="the cm command that runs it")
    parser.add_argument("--reference-big", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if bool(options.reference) is not bool(options.reference_cm):
        parser.error("--reference and --reference-cm belong together")
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        times = measure(Path(folder), options)
        if options.reference:
            times |= measure_reference(Path(folder), options)
    found = results(times, options)
    if options.json:
        print(json.dumps({"times_s": times, "results": found}, indent=2))
    else:
        for name, costs in times.items():
            walls = [cost.wall_s for cost in costs]
            cpu_s = statistics.median(cost.cpu_s for cost in costs)
            spread = f"median of {len(walls)}, {min(walls):.3f} to {max(walls):.3f}, CPU {cpu_s:.3f} s"
            print(f"{name:26} {statistics.median(walls):8.3f} s ({spread})")
        for name, (value, budget) in found.items():
            verdict = "" if budget is None else f", budget {budget:g}: {'ok' if value <= budget else 'TOO MUCH'}"
            print(f"{name:42} {value:7.2f}{verdict}")
    return 0 if all(budget is None or value <= budget for value, budget in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
