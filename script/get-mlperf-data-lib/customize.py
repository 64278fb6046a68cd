"""Hooks of get-mlperf-data-lib: make the package mlperf_data importable, and identify the copy that a user gave.

The recipe that depends on this one names in CM_MLPERF_DATA_GIVEN_KEYS the env keys that may hold `--path`. As a dynamic
dependency this runs before the cache is looked at, so that a copy that was changed gives another identity, and with it
another entry.
"""

import sys
from pathlib import Path

KEYS_KEY = "CM_MLPERF_DATA_GIVEN_KEYS"
IDENTITY_KEY = "CM_MLPERF_DATA_GIVEN_IDENTITY"
PATH_KEY = "CM_MLPERF_DATA_GIVEN_PATH"


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: puts this recipe's folder on sys.path and PYTHONPATH; sets path and identity of the given copy."""
    env = i["env"]
    folder = str(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    from mlperf_data import given
    from mlperf_data.errors import DataError

    env["CM_MLPERF_DATA_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    keys = [key.strip() for key in str(env.get(KEYS_KEY, "") or "").split(",")]
    path = given.given_path(*map(env.get, filter(None, keys)))
    try:
        env[IDENTITY_KEY] = given.NO_IDENTITY if path is None else given.identity(path)
    except DataError as error:
        return {"return": 1, "error": str(error)}
    env[PATH_KEY] = "" if path is None else str(path)
    return {"return": 0}
