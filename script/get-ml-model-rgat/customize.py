"""Hooks of get-ml-model-rgat: choose between your own copy of the published weights, random and small fitted ones."""

from pathlib import Path

from mlperf_data import answers, errors, given, manual, weights

SOURCE = manual.Source(
    name="the checkpoint of R-GAT",
    pages=("https://inference.mlcommons-storage.org/metadata/rgat-model.uri, for the MLCommons R2 downloader",),
    licence="see there",
    steps=("fetch it with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=("RGAT.pt, with its weights below model_state_dict",),
    command="cm run script --tags=get,ml-model,rgat --path=FILE",
)


def checkpoint(path: Path) -> Path:
    """Return the checkpoint: the file itself, or the only one below a folder. Raises DataError."""
    found = given.only_file(path, "*.pt")
    if not found.is_file():
        raise errors.DataError(f"{found} is no file", f"--path: your own copy of {SOURCE.pages[0]}")
    return found


WEIGHTS = weights.OwnWeights(
    name="RGAT",
    source=SOURCE,
    reference={"acc": 72.86},  # README.md of graph/R-GAT, mlcommons/inference b66003e1
    find=checkpoint,
)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses real weights without a copy of them."""
    return WEIGHTS.plan(i)


def postprocess(i):
    """CM hook: exports the model after a look at its checksums."""
    return answers.model_answer(i["env"], Path.cwd())
