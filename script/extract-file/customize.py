"""Hooks of the recipe extract-file: unpack one archive into a folder, or refuse it whole.

`inputs.py` says what is asked for, `members.py` judges names and links, `archive.py` reads archives, `place.py` moves
what was unpacked to its place.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from pathlib import Path
from typing import Any

from . import archive, inputs, members, place


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the dependencies it has; of what it sets only the name of a key is known before."""
    env = i["env"]
    env["CM_EXTRACT_FINAL_ENV_NAME"] = env.get("CM_EXTRACT_FINAL_ENV_NAME", "")
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Unpacks the archive and sets its keys; declares what lies inside the current folder, the entry's when cached."""
    env = i["env"]
    try:
        asked = inputs.asked_in(env, i["values"])
        unpacked = place.unpack(asked)
    except (inputs.InputError, members.Refused, archive.ArchiveError, place.PlaceError) as error:
        return {"return": 1, "error": str(error)}
    if asked.removes_archive:
        asked.archive.unlink()
    env["CM_EXTRACT_EXTRACTED_PATH"] = str(unpacked.path)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = str(unpacked.path)
    if asked.final_env_name:
        env[asked.final_env_name] = str(unpacked.path)
    return {"return": 0, "files": [str(path) for path in unpacked.tops if Path.cwd() in path.parents]}
