"""Checks a copy of KiTS19: every case of the benchmark is there, and no file is cut off."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.datasets import kits19
from harness.errors import HarnessError


def main() -> None:
    """Reads the command line; ends with what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    folder = parser.parse_args().folder
    try:
        dataset = kits19.open_dataset(folder)
    except HarnessError as error:
        raise SystemExit(f"{error}") from error
    print(f"{folder} holds the {dataset.count} cases of the benchmark")


if __name__ == "__main__":
    main()
