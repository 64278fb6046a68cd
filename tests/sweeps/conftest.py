"""Lets the tests import mlperf_sweeps, and what it imports, as its recipe does."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
for folder in (SCRIPTS / "run-mlperf-sweep", SCRIPTS / "get-mlperf-results-lib"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
