"""Hooks of get-ml-model-retinanet: choose between fitted, random and published weights, and hand the model on."""

from mlperf_data import given, published

GIVEN_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
FILES = {
    "onnx": published.PublishedFile(
        url="https://zenodo.org/record/6617879/files/resnext50_32x4d_fpn.onnx",
        file_name="resnext50_32x4d_fpn.onnx",
        md5="4544f4e56e0a4684215831cc937ea45c",
        licence="see https://zenodo.org/record/6617879",
        reference={"mAP": 37.57},
        is_complete=True,
    ),
    "pytorch": published.PublishedFile(
        url="https://zenodo.org/record/6605272/files/retinanet_model_10.zip?download=1",
        file_name="retinanet_model_10.zip",
        md5="2037c152a6be18e371ebec654314f7e0",
        licence="see https://zenodo.org/record/6605272",
        reference={"mAP": 37.55},
    ),
}
"""Addresses and MD5 from the community's get-ml-model-retinanet, scores from the README of the reference."""
ARCHIVED_FILE = "retinanet_model_10.pth"


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides whether a file must be fetched, and what run.sh makes of it."""
    env = i["env"]
    answer = published.plan(env, given.given_path(env.get(GIVEN_KEY)), FILES)
    path = env.get(published.FILE_KEY) or env.get("CM_PUBLISHED_MODEL_FILE_NAME", "")
    env["CM_PUBLISHED_MODEL_IS_ARCHIVE"] = "yes" if str(path).endswith(".zip") else "no"
    env["CM_ML_MODEL_FILE"] = ARCHIVED_FILE
    return answer


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums."""
    return published.finish(i["env"], "retinanet")
