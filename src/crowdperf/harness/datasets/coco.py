"""COCO 2017: 5,000 validation images with objects of 80 classes, whose category ids reach from 1 to 90.

Files read: `annotations/instances_val2017.json` and `val2017/*.jpg`. All 5,000 are samples. The PyTorch path of the
reference leaves out the 48 without objects, its other paths do not.
Source: coco.py in vision/classification_and_detection/python of mlcommons/inference.

In the set of yolo, 1,525 of these images, they are in `val2017_safe`. Source: yolo/README.md beside that folder.
"""

from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.base.dataset import ListedSamples
from crowdperf.harness.datasets.images import AnnotatedImages, listed_images, open_annotated_images

SAFE_IMAGES = "val2017_safe"
CALIBRATION_IMAGES = "train2017"
"""Where the images of the calibration list are; the list names training images."""


def open_dataset(folder: Path) -> AnnotatedImages:
    return open_annotated_images(
        folder,
        annotations="annotations/instances_val2017.json",
        images=SAFE_IMAGES if (folder / SAFE_IMAGES).is_dir() else "val2017",
        hint="rebuild the data set: cm run script --tags=get,dataset,coco,original --renew",
    )


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the images of `train2017` that lines of a calibration list name."""
    return listed_images(folder, CALIBRATION_IMAGES, entries)
