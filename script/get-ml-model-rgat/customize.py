"""Hooks of get-ml-model-rgat: choose between your own copy of the published weights, random and small fitted ones."""

import json
from pathlib import Path

from mlperf_data import answers, given, manual, weights

REFERENCE = {"acc": 72.86}  # README.md of graph/R-GAT, mlcommons/inference b66003e1
SOURCE = manual.Source(
    name="the checkpoint of R-GAT",
    pages=("https://inference.mlcommons-storage.org/metadata/rgat-model.uri, for the MLCommons R2 downloader",),
    licence="see there",
    steps=("fetch it with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=("RGAT.pt, with its weights below model_state_dict",),
    command="cm run script --tags=get,ml-model,rgat --path=FILE",
)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses real weights without a copy of them."""
    env = i["env"]
    path, refused = weights.own_copy(env, env["CM_RGAT_SOURCE"], SOURCE)
    if refused is not None or path is None:
        return refused or {"return": 0}
    path = given.only_file(path, "*.pt")
    if not path.is_file():
        return answers.failure(f"{path} is no file", f"--path: your own copy of {SOURCE.pages[0]}")
    env["CM_RGAT_FACTS"] = json.dumps({"source": str(path), "reference": REFERENCE, "licence": SOURCE.licence})
    env["CM_RGAT_WEIGHTS_PATH"] = str(path)
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
