"""Lets the tests import mlperf_curves, and what it stands on, as its recipe does."""

import sys
from pathlib import Path

for name in ("get-mlperf-results-lib", "run-mlperf-sweep", "run-mlperf-curve"):
    folder = str(Path(__file__).resolve().parents[2] / "script" / name)
    if folder not in sys.path:
        sys.path.append(folder)
