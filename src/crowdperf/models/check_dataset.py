"""Opens a copy of a data set as the harness does, and says what is missing or damaged:
`python3 -m crowdperf.models.check_dataset --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.registry import load_dataset


def main() -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(prog="check_dataset", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", required=True, help="as benchmarks' records name it")
    parser.add_argument("--folder", required=True, type=Path)
    arguments = parser.parse_args()
    try:
        count = load_dataset(arguments.dataset).open_dataset(arguments.folder).count
    except HarnessError as error:
        print(f"{arguments.dataset}: {error.with_hint}", file=sys.stderr)
        return 1
    print(f"{arguments.dataset}: {count} samples in {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
