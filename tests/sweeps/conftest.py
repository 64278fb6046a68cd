"""Lets the tests import mlperf_sweeps as its recipe does."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
if str(SCRIPTS / "run-mlperf-sweep") not in sys.path:
    sys.path.append(str(SCRIPTS / "run-mlperf-sweep"))
