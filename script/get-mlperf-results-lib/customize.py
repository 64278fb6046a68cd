"""Hooks of get-mlperf-results-lib: make the package mlperf_results importable for the recipes that depend on this one.

Two kinds of Python need it: hooks, which run in the engine's process (sys.path), and run.sh scripts, which start
another one (PYTHONPATH). Not cached, so that the first holds in each process.
"""

import sys
from pathlib import Path


def preprocess(i):
    """CM hook: puts this recipe's folder on sys.path and PYTHONPATH."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    env["CM_MLPERF_RESULTS_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    return {"return": 0}


plan = preprocess
