"""Hooks of get-mlperf-benchmark-config: make mlperf_configs importable; with --benchmark, give its settings.

Not cached, so that the package is importable in each process.
"""

import sys
from pathlib import Path


def plan(i):
    """The same when a run is only planned."""
    return preprocess(i)


def preprocess(i):
    """CM hook: puts this recipe's folder on sys.path and PYTHONPATH."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    env["CM_MLPERF_CONFIG_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    return {"return": 0}
