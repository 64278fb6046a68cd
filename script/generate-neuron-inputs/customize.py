"""Hooks of generate-neuron-inputs: hand on the folder of the samples that run.sh wrote."""

from pathlib import Path
from typing import Any


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the dependencies it has; what it writes is there only then."""
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the folder; an error where no samples lie in it."""
    env = i["env"]
    scratch = Path(str(env.get("MLPERF_SCRATCH_PATH") or env["CM_MLPERF_SCRATCH_PATH"]))
    folder = scratch / "preprocessed_data" / str(env["CM_NEURON_INPUTS_FOLDER"])
    if next(folder.glob("*.npy"), None) is None:
        return {
            "return": 1,
            "error": f"{folder} contains no samples (*.npy)\nhint: set another --path and rerun the command",
        }
    env["CM_NEURON_INPUTS_PATH"] = str(folder)
    return {"return": 0}
