"""Hooks of get-mlperf-sweep-lib: make the package mlperf_sweeps, which lies beside run-mlperf-sweep, importable.

For hooks, which run in the engine's process (sys.path), and for programs that they start (PYTHONPATH).
"""

import sys
from pathlib import Path


def preprocess(i):
    """CM hook: puts the folder of run-mlperf-sweep on sys.path and PYTHONPATH."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve().parent / "run-mlperf-sweep")
    if folder not in sys.path:
        sys.path.append(folder)
    env["CM_MLPERF_SWEEP_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    return {"return": 0}


plan = preprocess
