"""Opens a copy of a data set as the harness does, and says what is missing or damaged.

    python3 -m crowdperf.harness.commands.check_dataset --dataset coco --folder FOLDER --thorough --count 5000

With --thorough, where the data set has `problems`, each file is read, and files that do not belong are named.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.registry import load_dataset

_SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_dataset", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", required=True, help="as benchmarks' records name it")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--thorough", action="store_true", help="read every file")
    parser.add_argument("--count", type=int, default=0, help="expected number of samples (0: any number)")
    given = parser.parse_args()
    try:
        dataset = load_dataset(given.dataset).open_dataset(given.folder)
        look: Callable[[], list[str]] = getattr(dataset, "problems", list) if given.thorough else list
        problems = look()
    except HarnessError as error:
        print(f"{given.dataset}: {error.with_hint}", file=sys.stderr)
        return 1
    if given.count not in (0, dataset.count):
        problems.insert(0, f"{dataset.count} samples, expected {given.count}")
    if problems:
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        lines = "".join(f"\n  {problem}" for problem in problems[:_SHOWN])
        hint = "download the missing or damaged files again. If the recipe has _size, _size.NUMBER sets another count"
        print(f"{given.dataset}: {given.folder} cannot be used:{lines}{more}\nhint: {hint}", file=sys.stderr)
        return 1
    print(f"{given.dataset}: {dataset.count:,} samples in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
