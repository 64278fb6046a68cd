"""What a sweep costs beside its points, in processor seconds: what points themselves cost is in fleet_overhead.py.

    .venv-test/bin/python benchmarks/sweep_overhead.py [--rounds=5] [--json]

expand      1,000 points of one file, in this process                               at most 0.5 s
plan        `cm run script --tags=run,mlperf,sweep --plan` of 100 points of digits   at most 3 s
kept        the same line again for --points points of a recipe that does nothing, which are done, beside the same for
            one point: seconds per point                                             at most 1 s
again       the whole of that call for 4 points                                      at most 5 s

Medians; `cm` is that of the Python that runs this, with this checkout as its only repository and an empty cache in a
temporary folder.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from crowdperf.sweeps.choice import Choice  # noqa: E402
from crowdperf.sweeps.definition import parse_definition  # noqa: E402
from crowdperf.sweeps.expand import expand  # noqa: E402

BUDGET_S = {"expand": 0.5, "plan": 3.0, "kept": 1.0, "again": 5.0}
HEAD = "format: 1\nname: bench\n"
DIGITS = "base: {model: digits, scenario: Offline, mode: performance, execution_mode: test}\n"
RECIPE = """alias: bench-nothing
automation_alias: script
automation_uid: "5b4e0237da074764"
cache: false
input_mapping: {number: BENCH_NUMBER}
tags: [bench, nothing]
uid: "be0000000000c4a1"
"""


class AnyInput:
    """A recipe that has every input, with every value."""

    def is_input(self, name: str) -> bool:
        return True

    def problem(self, name: str, value: str) -> str:
        return ""

    def meant(self, name: str) -> str:
        return ""


def axes(count: int, other: int) -> str:
    """The part `sweep` of a file with count x other points."""
    return f"sweep: {{batch_size: {list(range(1, count + 1))}, threads: {list(range(1, other + 1))}}}\n"


def expand_s() -> float:
    """Processor seconds of reading and expanding a file of 1,000 points."""
    begun_s = time.process_time()
    points = expand(parse_definition(HEAD + DIGITS + axes(50, 20), "bench"), AnyInput(), Choice(), 1000).points
    assert len(points) == 1000
    return time.process_time() - begun_s


def cm_s(folder: Path, *words: str) -> float:
    """Processor seconds of one call of run,mlperf,sweep and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "CM_REPOS": str(folder / "home"), "CROWDPERF_CACHE": str(folder / "cache")}
    command = [sys.executable, str(Path(sys.executable).with_name("cm")), "run", "script", "--tags=run,mlperf,sweep"]
    subprocess.run([*command, "--quiet", "--out=json", *words], cwd=folder, env=environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def prepare(folder: Path, points: int) -> None:
    """Writes the files of the sweeps and runs those that are kept."""
    (folder / "home").mkdir()
    recipe = folder / "recipes" / "script" / "bench-nothing"
    recipe.mkdir(parents=True)
    (recipe / "_cm.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "recipes" / "cmr.yaml").write_text('alias: bench\nuid: "be0000000000c4a2"\n', encoding="utf-8")
    repos = [str(ROOT), str(folder / "recipes")]
    (folder / "home" / "repos.json").write_text(json.dumps(repos), encoding="utf-8")
    (folder / "plan.yaml").write_text(HEAD + DIGITS + axes(10, 10), encoding="utf-8")
    for count in (1, 4, points):
        text = f"format: 1\nname: kept{count}\nrecipe: bench,nothing\nsweep: {{number: {list(range(count))}}}\n"
        (folder / f"kept{count}.yaml").write_text(text, encoding="utf-8")
        cm_s(folder, f"--file=kept{count}.yaml", "--exclusive=no")


def measure(rounds: int, points: int) -> dict[str, float]:
    """The median of each figure."""

    def median_of(once: Callable[[], float]) -> float:
        return statistics.median(once() for _ in range(rounds))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, points)
        found = {"expand": median_of(expand_s), "plan": median_of(lambda: cm_s(folder, "--file=plan.yaml", "--plan"))}
        found["again"] = median_of(lambda: cm_s(folder, "--file=kept4.yaml", "--exclusive=no"))
        many = median_of(lambda: cm_s(folder, f"--file=kept{points}.yaml", "--exclusive=no"))
        one = median_of(lambda: cm_s(folder, "--file=kept1.yaml", "--exclusive=no"))
        found["kept"] = (many - one) / (points - 1)
    return found


def main() -> int:
    """Prints the figures and the budgets; 1 where one is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.rounds, given.points)
    if given.json:
        print(json.dumps(found))
    else:
        for figure, seconds in found.items():
            print(f"{figure:8} {seconds:8.4f} s of at most {BUDGET_S[figure]:g} s")
    return int(any(found[figure] > budget for figure, budget in BUDGET_S.items()))


if __name__ == "__main__":
    sys.exit(main())
