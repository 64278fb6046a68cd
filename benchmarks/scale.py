"""What 10,000 recipes and 10,000 cache entries cost, beside 100 of each; and the reference engine on the same files.

    .venv/bin/python benchmarks/scale.py [--rounds=7] [--big=10000] [--small=100] [--json]
                                         [--reference=CHECKOUT --reference-cm=CM --reference-big=1000]

Writes two repositories of recipes (variations, dependencies, versions; every recipe has an entry in the cache, made by
the engine's own store) to a temporary folder, and measures whole ``cm`` processes, small and big taking turns in each
round so that a busy machine hits both alike:

a. the first index of the big repository: under 15 s;
b. a warm run of one cached recipe: big at most 1.5 times small;
c. the same where cmind's own ``index.json`` knows all recipes and entries too: every ``cm`` command then reads that
   file before the engine starts, which ``CM_INDEX=off`` avoids. Not judged: it is cmind's.

``--reference`` is a checkout of cm4mlops and ``--reference-cm`` the ``cm`` of an environment with the cmind that it
wants. The same generated recipes are then run by that engine, in a CM home of its own, with the entries that it made
itself; ``--reference-big`` says how many recipes, because it is slow.
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
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "automation"))

from recipe_engine.cachemodel import CacheKey, RecipeId  # noqa: E402
from recipe_engine.store import Maker, Outcome, Store  # noqa: E402
from recipe_engine.version import VersionRange  # noqa: E402

FIRST_INDEX_BUDGET_S = 15.0
WARM_RATIO_BUDGET = 1.5
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

    def cm(self, *words: str, index: bool = True) -> float:
        """Runs ``cm`` and returns its wall time in s; raises CalledProcessError when it fails."""
        env = {**os.environ, "CM_REPOS": str(self.home), "CROWDPERF_CACHE": str(self.store)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons keep compiled modules
        if not index:
            env["CM_INDEX"] = "off"
        started_s = time.perf_counter()
        done = subprocess.run([str(self.cm_path), *words], env=env, cwd=self.folder, capture_output=True, text=True)
        duration_s = time.perf_counter() - started_s
        if done.returncode:
            sys.exit(f"cm {' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return duration_s

    def warm_run(self, **options: Any) -> float:
        """Wall time in s of one cached recipe with one cached dependency."""
        return self.cm("run", "script", f"--tags=bench,n{ASKED}", "--quiet", **options)

    def first_index(self) -> float:
        """Wall time in s of a run that finds no index of recipes."""
        shutil.rmtree(self.home / "recipe-index", ignore_errors=True)
        return self.warm_run()


def take_turns(rounds: int, actions: dict[str, Any]) -> dict[str, list[float]]:
    """Times in s of all actions, one of each in every round."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(action())
    return times


def make_bench(folder: Path, count: int) -> Bench:
    """The bench of this checkout's engine with ``count`` recipes and entries."""
    bench = Bench(folder, CHECKOUT, Path(sys.executable).parent / "cm", count)
    write_entries(bench.store, count)
    return bench


def measure(folder: Path, options: argparse.Namespace) -> dict[str, list[float]]:
    """Times in s of every measurement of this engine."""
    benches = {count: make_bench(folder / str(count), count) for count in (options.small, options.big)}
    small, big = benches[options.small], benches[options.big]
    times = {"first index": [big.first_index() for _ in range(3)]}
    small.warm_run()
    big.warm_run()
    times |= take_turns(
        options.rounds,
        {
            "bare cm": lambda: small.cm("version", "core"),
            "warm small": small.warm_run,
            "warm big": big.warm_run,
        },
    )
    for bench in benches.values():
        shutil.copytree(bench.store, bench.home / "repos" / "local" / "cache")
        bench.cm("reindex", "repo")
    times |= take_turns(
        options.rounds,
        {
            "bare cm big, cmind index": lambda: big.cm("version", "core"),
            "warm small, cmind index": small.warm_run,
            "warm big, cmind index": big.warm_run,
            "warm big, CM_INDEX=off": lambda: big.warm_run(index=False),
        },
    )
    return times


def main() -> int:
    """Prints the table; exit status 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", type=int, default=100)
    parser.add_argument("--big", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        times = measure(Path(folder), options)
    for name, values in times.items():
        print(
            f"{name:28} {1000 * statistics.median(values):9.1f} ms ({1000 * min(values):.0f}-{1000 * max(values):.0f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
