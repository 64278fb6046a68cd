"""Lets the tests import mlperf_results and mlperf_gate as the recipes and the command do."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
for folder in ("get-mlperf-results-lib", "check-mlperf-submission"):
    if str(SCRIPTS / folder) not in sys.path:
        sys.path.append(str(SCRIPTS / folder))
