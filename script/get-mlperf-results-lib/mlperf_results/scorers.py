"""Which recipe scores the accuracy runs of a benchmark: process-mlperf-accuracy, with the variation of its data set."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlperf_results.benchmarks import model_of

_TAGS = "process,mlperf,accuracy"
SCORERS: Mapping[str, str] = MappingProxyType(
    {
        "bert": "squad",
        "dlrm": "criteo",
        "dlrm_v2": "criteo",
        "gptj": "cnndm",
        "resnet50": "imagenet",
        "retinanet": "openimages",
        "rnnt": "librispeech",
        "ssd_mobilenet": "coco",
        "ssd_resnet34": "coco",
        "unet3d": "kits19",
        "unet3d_brats": "brats19",
    }
)
"""By the file in harness/models; one that is not here (digits) needs nothing more than the recipe itself."""


def accuracy_tags(benchmark: str) -> str:
    """Return the query of the recipe that scores a benchmark's accuracy runs."""
    variation = SCORERS.get(model_of(benchmark))
    return _TAGS + (f",_{variation}" if variation else "")
