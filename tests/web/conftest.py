"""Puts the packages of the collector, and the driver of the browser, where the tests find them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("get-mlperf-results-lib", "get-mlperf-results-store-lib", "check-mlperf-submission", "run-mlperf-curve",
           "serve-mlperf-results")  # fmt: skip
for folder in (*(ROOT / "script" / name for name in SCRIPTS), ROOT / "tests" / "e2e", ROOT / "tests" / "store"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
