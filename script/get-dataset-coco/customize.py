"""Hooks of get-dataset-coco: the validation images, downloaded, given or synthetic, with their annotations.

`_safe`: the 1,525 of free licenses that yolo is measured with. run.sh takes them out of the 5,000 (`keep_free.py`).
"""

from dataclasses import replace
from pathlib import Path

from crowdperf.data import datasets

IMAGES = datasets.ImageSet(
    name="coco",
    full_count=5_000,
    annotations_file="annotations/instances_val2017.json",
    fetch_work="check",
)
SAFE_IMAGES = replace(IMAGES, full_count=1_525)
"""Source of the number: README.md in vision/classification_and_detection/yolo, mlcommons/inference b66003e1."""


def preprocess(i):
    """CM hook: decides what run.sh does: synthetic, fetched or given images."""
    env = i["env"]
    if env.get("CM_DATASET_COCO_PART") != "coco_safe":
        return IMAGES.plan(i)
    if str(env["CM_DATASET_SIZE"]) == str(IMAGES.full_count):
        env["CM_DATASET_SIZE"] = str(SAFE_IMAGES.full_count)
    answer = SAFE_IMAGES.plan(i)
    if answer["return"] == 0 and env["CM_DATASET_COCO_IS_FETCHED"] == "yes":
        env["CM_DATASET_COCO_WORK"], env["CM_DATASET_COCO_FOLDER"] = "filter", str(Path.cwd() / "coco_safe")
    return answer


plan = preprocess
postprocess = IMAGES.finish
