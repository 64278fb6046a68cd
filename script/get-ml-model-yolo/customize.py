"""Hooks of get-ml-model-yolo: choose between fitted, random and your own copy of the published weights."""

from mlperf_data import answers, given, manual, published

GIVEN_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
SOURCE = manual.Source(
    name="the checkpoint of YOLO11l",
    pages=("https://yolo.mlcommons-storage.org/metadata/YOLO-model.uri, for the MLCommons R2 downloader",),
    licence="AGPL-3.0 (ultralytics/ultralytics)",
    steps=("fetch it with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=("the checkpoint, one *.pt",),
    command="cm run script --tags=get,ml-model,yolo --path=FOLDER",
)
_FILE = published.PublishedFile(
    url=SOURCE.pages[0], file_name="yolo11l.pt", licence=SOURCE.licence, reference={"mAP": 53.4}
)
"""Address: get-ml-model-yolov11 of mlcommons/mlperf-automations, 20d3d94c of 2026-07-22. No checksum is published with
it. Score: what the official checker compares with (mlcommons/inference b66003e1)."""
FILES = {"onnx": _FILE, "pytorch": _FILE}


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh makes; refuses real weights without a copy of them."""
    env = i["env"]
    path = given.given_path(env.get(GIVEN_KEY))
    if path is None and env[published.SOURCE_KEY] == "published":
        return answers.failure(manual.refusal(SOURCE))
    return published.plan(env, None if path is None else given.only_file(path, "*.pt"), FILES)


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums."""
    return published.finish(i["env"], "yolo")
