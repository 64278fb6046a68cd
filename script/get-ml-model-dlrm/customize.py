"""Hooks of get-ml-model-dlrm: choose between published, random and small fitted weights, where there is room."""

import json
from pathlib import Path

from mlperf_data import answers, weights

WEIGHTS_BYTES = 96_146_383_876  # of float32 parameters at full size; the embedding tables are all but 10 MB of them
REFERENCE = {"AUC": 80.25}  # README.md of recommendation/dlrm/pytorch, mlcommons/inference at tag v3.0


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses what the machine has no room for before anything is fetched."""
    env = i["env"]
    source = env["CM_DLRM_SOURCE"]
    path, refused = weights.own_copy(env, source)
    if refused is not None:
        return refused
    env["CM_DLRM_IS_DOWNLOADED"] = "yes" if source == "published" and path is None else "no"
    if source == "published":
        facts = {"source": str(path or env["CM_DLRM_URL"]), "reference": REFERENCE, "licence": "not stated"}
        env["CM_DLRM_FACTS"] = json.dumps(facts)
        if path is not None:
            env["CM_DLRM_WEIGHTS_PATH"] = str(path)
    if source == "tiny":
        return {"return": 0}
    files = 2 if env["CM_DLRM_IS_DOWNLOADED"] == "yes" else 1
    return weights.room_answer("dlrm at full size", WEIGHTS_BYTES, files, i)


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
