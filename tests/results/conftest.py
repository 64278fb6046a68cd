"""Lets the tests import mlperf_results as the recipes do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "script" / "get-mlperf-results-lib"))
