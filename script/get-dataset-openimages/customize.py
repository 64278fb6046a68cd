"""Hooks of get-dataset-openimages: the validation images, downloaded, given or synthetic, with their annotations."""

from crowdperf.data import datasets

IMAGES = datasets.ImageSet(
    name="openimages",
    full_count=24_781,
    annotations_file="annotations/openimages-mlperf.json",
    fetch_work="fetch",
    path_keys=("CM_DATASET_OPENIMAGES_DATASET_PATH",),
)

plan = preprocess = IMAGES.plan
postprocess = IMAGES.finish
