"""Starts the wrapper of a point with any Python 3.10, without site packages: finds the package by this file's place."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from crowdperf.sweeps.wrapper import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
