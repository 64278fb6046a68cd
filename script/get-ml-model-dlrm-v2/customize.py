"""Hooks of get-ml-model-dlrm-v2: choose between given, random and small fitted weights, where there is room."""

import json
from pathlib import Path

from mlperf_data import answers, given, manual, room

WEIGHTS_BYTES = 104_606_687_236  # of float32 parameters at full size; the embedding tables are all but 60 MB of them
MEMORY_FACTOR = 2.5  # harness.making.makemodel holds the weights, the copy that it writes, and what an export takes
REFERENCE = {"AUC": 80.31}  # README.md of recommendation/dlrm_v2/pytorch, mlcommons/inference
HINT = "take _tiny to try the pipeline, or a machine that has it"

SOURCE = manual.Source(
    name="the weights of dlrm-v2 (97 GB, a snapshot of many files)",
    pages=("https://inference.mlcommons-storage.org (dlrm-v2-model-weights)",),
    licence="see there",
    steps=(
        "fetch the snapshot with the MLCommons R2 downloader, as README.md of recommendation/dlrm_v2/pytorch says",
        "write its state dict as one file with the packages torchsnapshot and safetensors (README.md of this recipe)",
    ),
    layout=("a *.safetensors or torch file with the tensors of torchrec's DLRM_DCN by name",),
    command="cm run script --tags=get,ml-model,dlrm-v2 --path=FILE",
)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses what is not there and what the machine has no room for."""
    env = i["env"]
    path = given.given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))
    source = env["CM_DLRM_V2_SOURCE"]
    if path is not None and source != "published":
        return answers.failure(f"--path={path} and made weights exclude each other", "leave one of them out")
    if source == "published":
        if path is None:
            return answers.failure(manual.refusal(SOURCE))
        env["CM_DLRM_V2_FACTS"] = json.dumps({"source": str(path), "reference": REFERENCE, "licence": "not stated"})
        env["CM_DLRM_V2_WEIGHTS_PATH"] = str(path)
    if source == "tiny":
        return {"return": 0}
    needed = room.Room(disk_bytes=WEIGHTS_BYTES, memory_bytes=int(MEMORY_FACTOR * WEIGHTS_BYTES))
    refused = room.shortage_here("dlrm-v2 at full size", needed, i)
    return {"return": 0} if refused is None else answers.failure(refused, HINT)


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
