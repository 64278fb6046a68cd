"""3D-UNet on KiTS19: finds kidneys and tumours in CT volumes (benchmarks 3d-unet-99 and 3d-unet-99.9).

Untimed, as in preprocess.py of mlcommons/inference (vision/medical_imaging/3d-unet-kits19): resample to one voxel size,
clip and normalise, pad to the window, then pad or crop each side to a multiple of half a window. Timed: the network on
windows that overlap by half, summed with Gaussian weights, and the class with the highest score for each voxel. The
response is uint8[slices, rows, columns] of the whole padded volume.

The window (128 voxels each way) and the number of classes come from model.json, so that small models have small
windows. Constants are those of global_vars.py and inference_utils.py beside that file (read at tag v5.0).
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec, aligned_empty
from crowdperf.harness.datasets.kits19 import Kits19Dataset
from crowdperf.harness.media.nifti import Volume
from crowdperf.harness.metrics import dice

FloatVolume = npt.NDArray[np.float32]
LabelVolume = npt.NDArray[np.uint8]

SPACING_MM = (1.6, 1.2, 1.2)  # TARGET_SPACING
LOWEST, HIGHEST = -79.0, 304.0  # MIN_CLIP_VAL, MAX_CLIP_VAL, Hounsfield units
MEAN, DEVIATION = 101.0, 76.9  # MEAN_VAL, STDDEV_VAL of the clipped training volumes
PADDING = -2.2  # PADDING_VAL, after normalisation
WINDOW = 128  # ROI_SHAPE
CLASSES = 3
SIGMA_OF_WINDOW = 0.125  # standard deviation of the weights as a part of the window (inference_utils.prepare_arrays)
_BLOCK_VOXELS = 1 << 16
"""Voxels whose classes are compared at once: 256 KiB of each class, so that a block stays in the cache of a core."""
_SUMMED_SLICES = 2
"""Slices of a window that are weighted and summed at once, for the same reason: 128 KiB of each class."""


def resample(volume: Volume, *, order: int) -> npt.NDArray[np.generic]:
    """Return the volume with voxels of SPACING_MM; `order` 1 is linear (scans), 0 the nearest voxel (labels)."""
    from scipy.ndimage import zoom  # type: ignore[import-untyped]

    if tuple(volume.spacing_mm) == SPACING_MM:
        return volume.voxels
    factors = np.array(volume.spacing_mm) / np.array(SPACING_MM)
    resampled: npt.NDArray[np.generic] = zoom(
        volume.voxels, factors, order=order, mode="constant", cval=volume.voxels.min(), grid_mode=False
    )
    return resampled


def normalise(scan: FloatVolume) -> FloatVolume:
    """Return the clipped scan in standard deviations from the mean, float32."""
    return (np.clip(scan, LOWEST, HIGHEST) - np.float32(MEAN)) / np.float32(DEVIATION)


def _halves(count: int) -> tuple[int, int]:
    """Return how many voxels of `count` belong before a volume and how many after it."""
    return count // 2, count - count // 2


def fit_to_windows(volume: npt.NDArray[np.generic], window: int, padding: float) -> npt.NDArray[np.generic]:
    """Return the volume with sides that windows overlapping by half cover exactly.

    1. Sides under a window are filled up with the outermost voxels.
    2. A side that exceeds a multiple of half a window by less than a quarter is cropped, any other one is filled up
       with `padding`.
    """
    stride = window // 2
    missing = [_halves(max(0, window - side)) for side in volume.shape]
    volume = np.pad(volume, missing, mode="edge")
    excess = [side % stride for side in volume.shape]
    cropped = [_halves(extra if extra < stride // 2 else 0) for extra in excess]
    volume = volume[
        tuple(slice(before, side - after) for (before, after), side in zip(cropped, volume.shape, strict=True))
    ]
    added = [_halves(-side % stride) for side in volume.shape]
    return np.pad(volume, added, mode="constant", constant_values=padding)


def prepare_scan(volume: Volume, window: int = WINDOW) -> FloatVolume:
    """Return the network's volume of a scan: float32[slices, rows, columns], contiguous."""
    normal = normalise(resample(volume, order=1).astype(np.float32, copy=False))
    return np.ascontiguousarray(fit_to_windows(normal, window, PADDING), dtype=np.float32)


def prepare_labels(volume: Volume, window: int = WINDOW) -> LabelVolume:
    """Return the labels of the voxels of `prepare_scan`: uint8[slices, rows, columns]."""
    return np.ascontiguousarray(fit_to_windows(resample(volume, order=0), window, 0), dtype=np.uint8)


def window_weights(window: int) -> FloatVolume:
    """Return the weights of a window's voxels, float32[window, window, window], 1 at the middle.

    The cube root of the product of three Gaussians, computed in float64.
    """
    distance = np.arange(window) - (window - 1.0) / 2.0
    deviation = SIGMA_OF_WINDOW * window
    line = np.exp(-(distance**2) / (2.0 * deviation * deviation))
    cube = np.cbrt(np.outer(np.outer(line, line), line).reshape(window, window, window))
    return (cube / cube.max()).astype(np.float32)


def window_starts(shape: Sequence[int], window: int) -> list[tuple[int, int, int]]:
    """Return where the windows of a volume start, the last axis running fastest."""
    stride = window // 2
    first, second, third = (range(0, side - window + 1, stride) for side in shape)
    return list(itertools.product(first, second, third))


def classes_of(scores: FloatVolume, norm: FloatVolume) -> LabelVolume:
    """Return the class with the highest quotient of float32[2 or more classes, ...] and float32[...], the first of
    equal ones: uint8[...].

    Blocks that fit into a core's cache need a tenth of the time of whole volumes, and a twentieth of that of an argmax
    across the first axis.
    """
    flat, divisors = scores.reshape(len(scores), -1), norm.reshape(-1)
    labels = aligned_empty(divisors.shape, np.uint8)
    buffers = aligned_empty((2, _BLOCK_VOXELS), np.float32)
    better = aligned_empty((_BLOCK_VOXELS,), np.uint8)
    for start in range(0, len(labels), _BLOCK_VOXELS):
        block = slice(start, start + _BLOCK_VOXELS)
        divisor, found = divisors[block], labels[block]
        (highest, own), is_higher = buffers[:, : len(found)], better[: len(found)]
        np.divide(flat[0, block], divisor, out=highest)
        for number in range(1, len(flat)):
            np.divide(flat[number, block], divisor, out=own)
            if number == 1:
                np.greater(own, highest, out=found.view(np.bool_))
            else:
                np.greater(own, highest, out=is_higher.view(np.bool_))
                np.maximum(found, np.multiply(is_higher, np.uint8(number), out=is_higher), out=found)
            if number < len(flat) - 1:
                np.maximum(highest, own, out=highest)
    return labels.reshape(norm.shape)


class _Sum:
    """The weighted scores of one volume's windows, and the sum of the weights."""

    def __init__(self, shape: Sequence[int], classes: int, weights: FloatVolume) -> None:
        self._scores = np.zeros((classes, *shape), dtype=np.float32)
        self._norm = np.zeros(tuple(shape), dtype=np.float32)
        self._weights = weights
        self._weighted = aligned_empty((classes, min(_SUMMED_SLICES, len(weights)), *weights.shape[1:]), np.float32)

    def add(self, start: tuple[int, int, int], scores: FloatVolume) -> None:
        """Add one window's scores, float32[classes, window, window, window]."""
        place = tuple(slice(first, first + side) for first, side in zip(start, self._weights.shape, strict=True))
        whole = (slice(None), *place)
        sums, norm = self._scores[whole], self._norm[place]
        for first in range(0, len(self._weights), _SUMMED_SLICES):
            part = slice(first, first + _SUMMED_SLICES)
            weights = self._weights[part]
            sums[:, part] += np.multiply(scores[:, part], weights, out=self._weighted[:, : len(weights)])
            norm[part] += weights

    def labels(self) -> LabelVolume:
        """Return the class of each voxel. The division changes a rounding at most, but the reference divides too."""
        return classes_of(self._scores, self._norm)


class Unet3d:
    """One network that sees windows, one in a call: a single window keeps the cores busy. Samples are volumes of
    differing shapes."""

    response = None
    is_ragged = True

    def __init__(self, *, window: int, classes: int) -> None:
        self._window = window
        self._classes = classes
        self._weights = window_weights(window)
        sides = (window, window, window)
        self.networks = (
            NetworkSpec(
                name="model",
                inputs=(TensorSpec(name="input", dtype="float32", shape=(1, *sides)),),
                outputs=(TensorSpec(name="output", dtype="float32", shape=(classes, *sides)),),
            ),
        )

    def preprocess(self, raw: Sequence[Volume]) -> list[Tensors]:
        """Return `volume` float32[slices, rows, columns] of each scan."""
        return [{"volume": prepare_scan(volume, self._window)} for volume in raw]

    def length(self, sample: Tensors) -> int:
        """Return the number of windows."""
        return len(window_starts(sample["volume"].shape, self._window))

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return the volumes one behind the other: `voxels` float32[sum of sizes], `shapes` int64[batch, 3].

        Nothing is padded, and a single volume is not copied.
        """
        volumes = [np.asarray(sample["volume"]) for sample in samples]
        flat = [volume.reshape(-1) for volume in volumes]
        return {
            "voxels": flat[0] if len(flat) == 1 else np.concatenate(flat),
            "shapes": np.array([volume.shape for volume in volumes], dtype=np.int64),
        }

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return the labels of each volume, uint8[slices, rows, columns]."""
        infer, side = networks["model"], self._window
        window = np.empty((1, 1, side, side, side), dtype=np.float32)
        labels = []
        for volume in _volumes(inputs):
            total = _Sum(volume.shape, self._classes, self._weights)
            for i, j, k in window_starts(volume.shape, side):
                window[0, 0] = volume[i : i + side, j : j + side, k : k + side]
                total.add((i, j, k), infer({"input": window})["output"][0])
            labels.append(total.labels())
        return labels

    def device_post(
        self, networks: Mapping[str, Infer], inputs: Tensors, to_device: Callable[[str, Any], Any]
    ) -> Sequence[Any]:
        """Return the labels of each volume as torch tensors, with the sums and classes of `predict`. Volumes are cut
        into windows on the device."""
        infer, weights = networks["model"], to_device("weights", self._weights)
        labels = []
        for volume in _volumes({**inputs, "voxels": to_device("voxels", inputs["voxels"])}):
            scores, norm = volume.new_zeros((self._classes, *volume.shape)), volume.new_zeros(volume.shape)
            for start in window_starts(volume.shape, self._window):
                place = tuple(slice(first, first + self._window) for first in start)
                whole = (slice(None), *place)
                scores[whole].add_(infer({"input": volume[place][None, None]})["output"][0] * weights)
                norm[place].add_(weights)
            highest, *others = scores.div_(norm)
            classes = norm.new_zeros(norm.shape).byte()
            for number, own in enumerate(others, 1):
                classes.masked_fill_(own > highest, number)
                highest = highest.maximum(own)
            labels.append(classes)
        return labels

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: Kits19Dataset) -> Score:
        """Return "DICE" over kidney and tumour, 0 to 1."""
        return dice.score_kits(responses, lambda index: prepare_labels(dataset.labels(index), self._window))


def _volumes(inputs: Mapping[str, Any]) -> Iterable[Any]:
    """Yield the volumes of a batch as views, arrays or tensors as `voxels` is."""
    voxels = inputs["voxels"]
    start = 0
    for shape in inputs["shapes"].tolist():
        size = shape[0] * shape[1] * shape[2]
        yield voxels[start : start + size].reshape(shape)
        start += size


def open_model(facts: ModelFacts) -> Unet3d:
    """Return the model with the window of model.json, or the benchmark's; raises HarnessError for a wrong window."""
    window = facts.config.get("window", WINDOW)
    classes = facts.config.get("classes", CLASSES)
    if not isinstance(window, int) or window < 4 or window % 4 != 0 or classes != CLASSES:
        raise HarnessError(
            f"3d-unet: model.json has a window of {window!r} and {classes!r} classes; allowed: a multiple of 4, and 3",
            "rebuild the model",
        )
    return Unet3d(window=window, classes=classes)
