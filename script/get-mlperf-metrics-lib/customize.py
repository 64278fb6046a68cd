"""Hooks of get-mlperf-metrics-lib: make the package mlperf_metrics importable for the recipes that depend on this one.

Not cached, so that it holds in each process.
"""

import sys
from pathlib import Path


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: puts this recipe's folder on sys.path and PYTHONPATH."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    env["CM_MLPERF_METRICS_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    return {"return": 0}
