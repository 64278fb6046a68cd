"""Checks cnn_eval.json as the benchmark reads it.

    python3 check.py --dataset_dir FOLDER [--expected 13368]

Run in the benchmark's virtual environment with src on PYTHONPATH.
"""

import argparse
import sys
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.cnndm import open_dataset


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument("--expected", type=int, default=0, help="articles there must be; 0: any number")
    given = parser.parse_args()
    try:
        dataset = open_dataset(given.dataset_dir)
    except HarnessError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 1
    if given.expected and dataset.count != given.expected:
        print(f"check.py: {dataset.count} articles; there should be {given.expected}", file=sys.stderr)
        return 1
    empty = [number for number, article in enumerate(dataset.samples) if not (article.text and article.summary)]
    if empty:
        print(f"check.py: {len(empty)} articles lack text or summary, first number {empty[0]}", file=sys.stderr)
        return 1
    print(f"cnndm: {dataset.count} articles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
