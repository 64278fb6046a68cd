"""Hooks of get-dataset-coco: the validation images, downloaded, given or synthetic, with their annotations."""

from mlperf_data import datasets

IMAGES = datasets.ImageSet(
    name="coco",
    full_count=5_000,
    annotations_file="annotations/instances_val2017.json",
    fetch_work="check",
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
