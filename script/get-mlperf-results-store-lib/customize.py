"""Hooks of get-mlperf-results-store-lib: make the package results_store importable for the recipes that need it.

Two kinds of Python need it: hooks, which run in the engine's process (sys.path), and run.sh scripts, which start
another one (PYTHONPATH). Not cached, so that the first holds in each process.
"""

import sys
from pathlib import Path

NEEDED = ("check-mlperf-submission", "run-mlperf-curve")
"""The recipes whose packages have the rules of a log (mlperf_gate) and the form of an Endpoints tree
(mlperf_curves)."""


def preprocess(i):
    """CM hook: puts this recipe's folder, and those of the packages it reads with, on sys.path and PYTHONPATH."""
    env = i["env"]
    own = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve()
    folders = [str(own), *(str(own.parent / name) for name in NEEDED)]
    sys.path += [folder for folder in folders if folder not in sys.path]
    env["CM_MLPERF_RESULTS_STORE_LIB_PATH"] = str(own)
    env["+PYTHONPATH"] = folders
    return {"return": 0}


plan = preprocess
