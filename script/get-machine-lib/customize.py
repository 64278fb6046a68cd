"""Hooks of get-machine-lib: make the package machine_facts importable for the recipes that depend on this one.

Not cached, so that it holds in each process: hooks run in the engine's (sys.path), scripts start another (PYTHONPATH).
"""

import sys
from pathlib import Path


def preprocess(i):
    """CM hook: puts this recipe's folder on sys.path and PYTHONPATH."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    env["CM_MACHINE_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    return {"return": 0}


plan = preprocess
