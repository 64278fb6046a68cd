"""Opens a copy of the clips as the harness does; says what is missing or damaged: `python3 check_dataset.py --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.datasets.whisper import open_dataset
from harness.errors import HarnessError


def main() -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(prog="check_dataset.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", required=True, type=Path)
    folder = parser.parse_args().folder
    try:
        dataset = open_dataset(folder)
    except HarnessError as error:
        print(f"whisper: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1
    print(f"whisper: {dataset.count} clips in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
