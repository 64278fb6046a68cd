"""Hooks of get-mlperf-endpoints-client: finds the client on this machine; never downloads it."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from typing import Any

from . import finder

NOT_FOUND_CODE = 16  # CM's code for "not found"
PREFIX = "CM_MLPERF_ENDPOINTS_CLIENT"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: sets the keys of the client, or ends with code 16 and how to install it."""
    env = i["env"]
    try:
        found = finder.find(i["values"]["path"])
    except finder.ClientNotFound as error:
        return {"return": NOT_FOUND_CODE, "error": str(error)}
    env[f"{PREFIX}_WITH_PATH"] = str(found.program)
    env[f"{PREFIX}_VERSION"] = found.version or "unknown"
    env[f"{PREFIX}_COMMIT"] = found.commit or "unknown"
    return {"return": 0}


plan = preprocess
