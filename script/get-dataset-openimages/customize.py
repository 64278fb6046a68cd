"""Hooks of get-dataset-openimages: the validation images, downloaded, given or synthetic, with their annotations."""

from mlperf_data import datasets

IMAGES = datasets.ImageSet(
    name="openimages",
    full_count=24_781,
    annotations_file="annotations/openimages-mlperf.json",
    fetch_work="fetch",
    path_keys=("CM_DATASET_OPENIMAGES_DATASET_PATH",),
)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides what run.sh does: synthetic, fetched or given images."""
    env = i["env"]
    return IMAGES.plan(env)


def postprocess(i):
    """CM hook: exports the folder with its identity and where the annotations are."""
    env = i["env"]
    return IMAGES.hand_on(env)
