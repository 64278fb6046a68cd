"""Hooks of get-ml-model-ssd-mobilenet: choose between fitted, random and published weights, and hand the model on."""

from mlperf_data import given, published

GIVEN_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
FILES = {
    "onnx": published.PublishedFile(
        url="https://zenodo.org/record/4735652/files/ssd_mobilenet_v1_coco_2018_01_28.onnx",
        file_name="ssd_mobilenet_v1_coco_2018_01_28.onnx",
        licence="see https://zenodo.org/record/4735652",
        reference={"mAP": 23.0},
        is_complete=True,
    ),
    "pytorch": published.PublishedFile(
        url="https://zenodo.org/record/3239977/files/ssd_mobilenet_v1.pytorch",
        file_name="ssd_mobilenet_v1.pytorch",
        licence="see https://zenodo.org/record/3239977",
        reference={"mAP": 23.0},
    ),
}
"""Addresses and scores from the README of vision/classification_and_detection in mlcommons/inference, which gives no
checksums."""


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides whether a file must be fetched, and what run.sh makes of it."""
    env = i["env"]
    return published.plan(env, given.given_path(env.get(GIVEN_KEY)), FILES)


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums."""
    return published.finish(i["env"], "ssd_mobilenet")
