"""OpenImages v6 as MLPerf uses it: 24,781 validation images with objects of 264 classes.

Files read: `annotations/openimages-mlperf.json` (COCO's format, categories 0 to 263) and `validation/data/*.jpg`.
Source of the layout: tools/openimages.py in vision/classification_and_detection of mlcommons/inference.
"""

from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.base.dataset import ListedSamples
from crowdperf.harness.datasets.images import AnnotatedImages, listed_images, open_annotated_images

CALIBRATION_IMAGES = "calibration/data"
"""Where openimages_calibration.py of mlcommons/inference puts the images of the calibration list."""


def open_dataset(folder: Path) -> AnnotatedImages:
    return open_annotated_images(
        folder,
        annotations="annotations/openimages-mlperf.json",
        images="validation/data",
        hint="rebuild the data set: cm run script --tags=get,dataset,openimages,original --renew",
    )


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the images of `calibration/data` that lines of a calibration list name."""
    return listed_images(folder, CALIBRATION_IMAGES, entries)
