"""Hooks of get-ml-model-dlrm-v2: choose between given, random and small fitted weights, where there is room."""

from pathlib import Path

from mlperf_data import answers, manual, weights

SOURCE = manual.Source(
    name="the weights of dlrm-v2 (97 GB, a snapshot of many files)",
    pages=("https://inference.mlcommons-storage.org (dlrm-v2-model-weights)",),
    licence="not stated",
    steps=(
        "fetch the snapshot with the MLCommons R2 downloader, as README.md of recommendation/dlrm_v2/pytorch says",
        "write its state dict as one file with the packages torchsnapshot and safetensors (README.md of this recipe)",
    ),
    layout=("a *.safetensors or torch file with the tensors of torchrec's DLRM_DCN by name",),
    command="cm run script --tags=get,ml-model,dlrm-v2 --path=FILE",
)
WEIGHTS = weights.OwnWeights(
    name="DLRM_V2",
    source=SOURCE,
    reference={"AUC": 80.31},  # README.md of recommendation/dlrm_v2/pytorch, mlcommons/inference
    title="dlrm-v2 at full size",
    weights_bytes=104_606_687_236,  # of float32 parameters; the embedding tables are all but 60 MB of them
    files=1,
)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses what is not there and what the machine has no room for."""
    return WEIGHTS.plan(i)


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
