"""CPU seconds (user and system) and memory of the submission checker by the number of systems:

    python benchmarks/submission_checker.py [--systems 1,10] [--rounds 5] [--official FOLDER]

The tree is the good closed one of the tests (resnet50, four scenarios with compliance tests), whose system is copied.
--official: tools/submission of a checkout of mlcommons/inference, whose checker gets the same trees in turns. Prints
medians, and the cost of a further system. Exit code 0, or 1 if a checker does not accept a tree.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import tree_builder  # noqa: E402


def tree_of(folder: Path, systems: int) -> Path:
    """Return a tree with so many systems."""
    tree_builder.build(folder, "closed")
    submitter = folder / "closed" / tree_builder.SUBMITTER
    for number in range(2, systems + 1):
        shutil.copytree(submitter / "results" / tree_builder.SYSTEM, submitter / "results" / f"box-{number}")
        shutil.copy(submitter / "systems" / f"{tree_builder.SYSTEM}.json", submitter / "systems" / f"box-{number}.json")
    return folder


def cost(command: list[str], folder: Path) -> tuple[float, float]:
    """Return CPU seconds and MB of a checker; ends the program if it does not accept the tree."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with code {os.waitstatus_to_exitcode(status)}: {folder / 'log'}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="1,10")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--official", type=Path)
    given = parser.parse_args()
    counts = [int(word) for word in given.systems.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="checker-"))  # left where a checker fails: its log is in there
    trees = {count: tree_of(folder / str(count), count) for count in counts}
    checkers = {"crowdperf": ["-m", "crowdperf.gate"]}
    if given.official:
        checkers["official"] = [str(given.official.resolve() / "submission_checker" / "main.py"), "--input"]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(given.rounds):
        for count, tree in trees.items():
            for name, words in checkers.items():
                command = [sys.executable, *words, str(tree), f"--version={tree_builder.LOG_ROUND}"]
                found.setdefault((name, count), []).append(cost(command, folder))
    for (name, count), rows in found.items():
        seconds, memory = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:10} {count:3} systems {seconds:8.2f} s {memory:6.0f} MB")
    for name in checkers:
        first, last = (statistics.median(row[0] for row in found[name, count]) for count in (counts[0], counts[-1]))
        if counts[-1] > counts[0]:
            print(f"{name:10} a further system {(last - first) / (counts[-1] - counts[0]):.3f} s")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
