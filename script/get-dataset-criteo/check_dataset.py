"""Checks a copy of Criteo's day 23: the files of one form are there, with types and lengths that fit together."""

import argparse
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets import criteo


def main() -> None:
    """Reads the command line; ends with what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--multi_hot", choices=("yes", "no"), required=True)
    asked = parser.parse_args()
    try:
        dataset = criteo.open_dataset(asked.folder)
    except HarnessError as error:
        raise SystemExit(f"{error}") from error
    is_multi_hot = dataset.table.hot_counts != criteo.ONE_HOT
    if is_multi_hot != (asked.multi_hot == "yes"):
        found = "multi-hot rows (dlrm-v2)" if is_multi_hot else "one value for each category (dlrm)"
        raise SystemExit(f"{asked.folder} contains {found}. Use the variation _multihot for dlrm-v2, and not for dlrm")
    print(f"{asked.folder} contains {dataset.table.row_count:,} measured rows, {dataset.count:,} samples")


if __name__ == "__main__":
    main()
