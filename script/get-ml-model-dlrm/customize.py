"""Hooks of get-ml-model-dlrm: choose between published, random and small fitted weights, where there is room."""

import json
from pathlib import Path

from mlperf_data import answers, given, room

WEIGHTS_BYTES = 96_146_383_876  # of float32 parameters at full size; the embedding tables are all but 10 MB of them
MEMORY_FACTOR = 2.5  # harness.making.makemodel holds the weights, the copy that it writes, and what an export takes
REFERENCE = {"AUC": 80.25}  # README.md of recommendation/dlrm/pytorch, mlcommons/inference at tag v3.0
HINT = "take _tiny to try the pipeline, or a machine that has it"


def needed_room(files):
    """What the model takes at full size, with so many files of it on disk."""
    return room.Room(disk_bytes=files * WEIGHTS_BYTES, memory_bytes=int(MEMORY_FACTOR * WEIGHTS_BYTES))


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses what the machine has no room for before anything is fetched."""
    env = i["env"]
    path = given.given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))
    source = env["CM_DLRM_SOURCE"]
    if path is not None and source != "published":
        return answers.failure(f"--path={path} and made weights exclude each other", "leave one of them out")
    env["CM_DLRM_IS_DOWNLOADED"] = "yes" if source == "published" and path is None else "no"
    if source == "published":
        facts = {"source": str(path or env["CM_DLRM_URL"]), "reference": REFERENCE, "licence": "not stated"}
        env["CM_DLRM_FACTS"] = json.dumps(facts)
        if path is not None:
            env["CM_DLRM_WEIGHTS_PATH"] = str(path)
    if source == "tiny":
        return {"return": 0}
    needed = needed_room(2 if env["CM_DLRM_IS_DOWNLOADED"] == "yes" else 1)
    refused = room.shortage_here("dlrm at full size", needed, i)
    return {"return": 0} if refused is None else answers.failure(refused, HINT)


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
