"""Hooks of get-mlperf-results-server: the environment is made by run.sh; its Python is given to who asks."""

from typing import Any

PYTHON_KEY = "CM_MLPERF_RESULTS_SERVER_PYTHON"


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the Python that has the packages."""
    env = i["env"]
    env[PYTHON_KEY] = str(env["CM_PYTHON_BIN_WITH_PATH"])
    env["CM_GET_DEPENDENT_CACHED_PATH"] = env[PYTHON_KEY]
    return {"return": 0, "files": ["requirements.txt"]}
