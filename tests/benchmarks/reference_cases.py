"""Seeded inputs whose results were recorded from the reference's own functions (reference_values.npz).

Recorded on 2026-11-28 with torch 2.13.0 (CPU), numpy 2.4.6, OpenCV 5.0.0 and scipy 1.17.1 from:
- mlcommons/inference b66003e1, vision/classification_and_detection/python: dboxes_R34_coco and Encoder.decode_batch of
  models/ssd_r34.py (0.5, 200; its calc_iou_tensor with negative sides of an intersection cut to 0, see
  ssd_resnet34/model.py), create_ssd_anchors of models/anchor_generator.py, decode_boxes and SSD.filter_results of
  models/utils.py and models/ssd_mobilenet_v1.py, pre_process_coco_* of dataset.py;
- MIC-DKFZ/nnUNet b38c69b3, the submodule of 3d-unet-brats19 at tag v2.0: crop_to_nonzero of cropping.py and
  GenericPreprocessor.resample_and_normalize of preprocessing.py; pad_nd_image of batchgenerators 0.25.5.

More cases than are kept here were compared: docs/benchmarks.md says how many.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

KINDS = ("plain", "few classes", "ties", "wild", "dense", "small")
BRATS_KINDS = ("plain", "floats", "sparse", "one value", "no signal", "negative")
BRATS_VOLUME = (40, 44, 36)
IMAGE_SIDES = ((1, 1), (300, 300), (2, 3), (1, 70), (480, 640), (37, 900), (299, 301), (123, 45))
_ANCHORS = {"ssd_resnet34": 15_130, "ssd_mobilenet": 1_917}
_CLASSES = {"ssd_resnet34": 81, "ssd_mobilenet": 91}


def softmax(logits: Floats) -> Floats:
    """Return the shares float32[n, classes]."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def network_says(model: str, kind: str, seed: int) -> tuple[Floats, Floats]:
    """Return what a network says of one image: for ssd_resnet34 logits, for ssd_mobilenet scores, and the deltas."""
    random = np.random.RandomState(seed)
    shape = count, classes = _ANCHORS[model], _CLASSES[model]
    is_logits = model == "ssd_resnet34"
    values = (random.standard_normal(shape) * (0.5 if is_logits else 0.001)).astype(np.float32)
    hot = random.choice(count, random.randint(5, 120), replace=False)
    if kind in ("dense", "small"):  # neighbours of one class; small: so small that what is added to a union counts
        hot = 600 + np.arange(300)
    labels = random.randint(1, {"few classes": 3, "dense": 2, "small": 2}.get(kind, classes), len(hot))
    if is_logits:
        values[:, 0] += 6
        values[hot, labels] += random.uniform(3, 9, len(hot)).astype(np.float32)
    else:
        values = np.abs(values)
        values[hot, labels] = random.rand(len(hot))
    if kind == "ties":
        values = np.round(values * 2) / 2 if is_logits else np.round(values, 1)
    deltas = random.standard_normal((count, 4)) * (5 if kind == "wild" else 0.7)
    if kind == "dense":
        deltas = deltas * [2, 2, 0.7, 0.7]
    if kind == "small":
        deltas = deltas * [0.02, 0.02, 2.5, 2.5] - [0, 0, 15, 15]
    return values.astype(np.float32), deltas.astype(np.float32)


def image(number: int) -> npt.NDArray[np.uint8]:
    """Return uint8[height, width, 3]: noise over a slope."""
    height, width = IMAGE_SIDES[number]
    random = np.random.RandomState(number)
    slope = np.linspace(0, 200, width)[None, :, None] + random.randint(0, 56, (height, width, 3))
    return slope.astype(np.uint8)


def places(count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Return the 200 places of a flat result whose values are kept."""
    return np.random.RandomState(seed).randint(0, count, 200)


def brats_scans(kind: str, seed: int) -> Floats:
    """Return float32[4, z, y, x]: a block of signal with zeros around and holes inside."""
    random = np.random.RandomState(seed)
    shape = random.randint(20, 37, 3)
    first, last = random.randint(0, 6, 3), shape - random.randint(0, 6, 3)
    scans = np.zeros((4, *shape), dtype=np.float32)
    block = tuple(slice(int(a), int(b)) for a, b in zip(first, last, strict=True))
    for modality in range(4):
        size = tuple((last - first).tolist())
        values = random.standard_normal(size) * 100 + 500 if kind == "floats" else random.randint(0, 4000, size)
        values = values.astype(np.float32) - (2000 if kind == "negative" else 0)
        values[random.random_sample(size) < (0.6 if kind == "sparse" else 0.05)] = 0
        if (kind, modality) == ("one value", 2):
            values[:] = 7
        if (kind, modality) == ("no signal", 1):
            values[:] = 0
        scans[(modality, *block)] = values
    return scans
