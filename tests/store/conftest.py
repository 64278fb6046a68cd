"""Lets the tests import results_store and what it reads with, as the recipes do."""

import sys
from pathlib import Path

for name in ("get-mlperf-results-lib", "get-mlperf-results-store-lib", "check-mlperf-submission", "run-mlperf-curve"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "script" / name))
