"""Dice coefficients of segmented volumes: kidneys with tumours (KiTS19), brain tumours (BraTS19).

KiTS19 agrees with accuracy_kits.py of mlcommons/inference, which prints
`Accuracy: mean = 0.86170, kidney = 0.9335, tumor = 0.7899`; BraTS19 (rounds v0.7 to v1.1) with accuracy-brats.py and
the nnU-Net functions it calls: `Accuracy: mean = 0.85300, whole tumor = 0.9141, tumor core = 0.8679, enhancing tumor =
0.7770`. One volume at a time is in memory, beside the response that the caller holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array

_SMOOTHING = 1e-6  # of numerator and denominator alike: a class that neither volume has scores 1 (accuracy_kits.py)
_KITS_CLASSES = {"kidney": 1, "tumor": 2}
_BRATS_REGIONS: Mapping[str, int] = {"whole tumor": 1, "tumor core": 2, "enhancing tumor": 3}
"""Lowest label of each region; nnU-Net numbers oedema 1, necrosis 2, enhancing tumour 3, so a region is "at least"."""
_HINT = "score the log with the model and the data set that made it"


@dataclass(frozen=True, slots=True, kw_only=True)
class BratsCase:
    """The truth of one case.

    segmentation: uint8, of the original size, axes z, y, x, in nnU-Net's numbers 0 to 3. cropped_size and crop_start:
    the part of it that was preprocessed ("size_after_cropping" and the first indices of "crop_bbox" in nnU-Net's
    properties).
    """

    segmentation: Array
    cropped_size: tuple[int, int, int]
    crop_start: tuple[int, int, int]


def _require_size(index: int, data: bytes, wanted_bytes: int) -> None:
    if len(data) != wanted_bytes:
        raise HarnessError(f"the response of sample {index} has {len(data)} bytes, expected {wanted_bytes}", _HINT)


def _require_labels(what: str, index: int, volume: Array, highest: int) -> None:
    if volume.size and not 0 <= int(volume.min()) <= int(volume.max()) <= highest:
        raise HarnessError(
            f"{what} of sample {index} has the label {int(volume.max())}; allowed: 0 to {highest}", _HINT
        )


def _kits_dice(prediction: Array, truth: Array, label: int) -> float:
    predicted, wanted = prediction == label, truth == label
    common = np.count_nonzero(predicted & wanted)
    together = np.count_nonzero(predicted) + np.count_nonzero(wanted)
    return float((2.0 * common + _SMOOTHING) / (together + _SMOOTHING))


def _rows_in_order(rows: Mapping[int, Sequence[float]]) -> npt.NDArray[np.float64]:
    """Return one row for each case, in the order of the validation set: the sums below depend on it."""
    if not rows:
        raise HarnessError("no responses to score", "score the log of an accuracy run")
    return np.array([rows[index] for index in sorted(rows)], dtype=np.float64)


def _require_new(index: int, rows: Mapping[int, object]) -> None:
    """The official scripts of both data sets refuse a log with a case twice."""
    if index in rows:
        raise HarnessError(f"sample {index} is in the log twice", "score the log of an accuracy run")


def score_kits(responses: Iterable[tuple[int, bytes]], load_segmentation: Callable[[int], Array]) -> Score:
    """Return "DICE", the mean of kidney and tumour over all cases, 0 to 1, and the two beside it, as printed.

    A response is the label volume uint8 of the whole padded shape in C order; `load_segmentation(index)` is the truth
    of that case in the same shape, labels 0 to 2. Raises HarnessError for another size or label.
    """
    rows: dict[int, tuple[float, ...]] = {}
    for index, data in responses:
        _require_new(index, rows)
        truth = load_segmentation(index)
        _require_size(index, data, truth.size)
        prediction = np.frombuffer(data, dtype=np.uint8).reshape(truth.shape)
        _require_labels("the response", index, prediction, 2)
        _require_labels("the truth", index, truth, 2)
        rows[index] = tuple(_kits_dice(prediction, truth, label) for label in _KITS_CLASSES.values())
    table = _rows_in_order(rows)
    mean, (kidney, tumor) = float(table.mean(axis=1).mean()), table.mean(axis=0).tolist()
    return Score(
        values={"DICE": round(mean, 5), "kidney": round(kidney, 4), "tumor": round(tumor, 4)},
        line=f"Accuracy: mean = {mean:.5f}, kidney = {kidney:.4f}, tumor = {tumor:.4f}",
    )


def _brats_labels(index: int, logits: npt.NDArray[np.float16], case: BratsCase) -> Array:
    """Return the label volume in the original size of logits float16[4, padded]: unpad, argmax, put back the crop."""
    padded = logits.shape[1:]
    margins = [(pad - size) // 2 for pad, size in zip(padded, case.cropped_size, strict=True)]
    ends = [first + size for first, size in zip(case.crop_start, case.cropped_size, strict=True)]
    if min(margins) < 0 or any(end > size for end, size in zip(ends, case.segmentation.shape, strict=True)):
        raise HarnessError(
            f"case {index}: a crop of {case.cropped_size} at {case.crop_start} is not inside a padded {padded} or an "
            f"original {case.segmentation.shape}",
            "rebuild the preprocessed data set",
        )
    inside = [slice(margin, margin + size) for margin, size in zip(margins, case.cropped_size, strict=True)]
    whole = np.zeros(case.segmentation.shape, dtype=np.uint8)
    whole[tuple(map(slice, case.crop_start, ends))] = logits[:, inside[0], inside[1], inside[2]].argmax(axis=0)
    return whole


def _brats_dice(prediction: Array, truth: Array, lowest_label: int) -> float:
    """Return NaN for a region that neither volume has: nnU-Net leaves such a case out of the region's mean."""
    predicted, wanted = np.greater_equal(prediction, lowest_label), np.greater_equal(truth, lowest_label)
    together = np.count_nonzero(predicted) + np.count_nonzero(wanted)
    return 2.0 * np.count_nonzero(predicted & wanted) / together if together else float("nan")


def score_brats(
    responses: Iterable[tuple[int, bytes]],
    load_case: Callable[[int], BratsCase],
    padded_size: tuple[int, int, int],
) -> Score:
    """Return "DICE", the mean of three regions, 0 to 1, and the regions beside it, as printed.

    A response is float16[4][padded_size] of class scores; equal ones go to the lower label. Each region's mean is
    rounded to four digits before the three are averaged: the official script reads them back from nnU-Net's
    summary.csv. Raises HarnessError for another size, for NaN, and where no case has a region.
    """
    rows: dict[int, tuple[float, ...]] = {}
    wanted_bytes = 4 * int(np.prod(padded_size)) * 2
    for index, data in responses:
        _require_new(index, rows)
        _require_size(index, data, wanted_bytes)
        logits = np.frombuffer(data, dtype=np.float16).reshape(4, *padded_size)
        if np.isnan(logits).any():
            raise HarnessError(f"the response of sample {index} has NaN in it", "look at the model's precision")
        case = load_case(index)
        _require_labels("the truth", index, case.segmentation, 3)
        labels = _brats_labels(index, logits, case)
        rows[index] = tuple(_brats_dice(labels, case.segmentation, lowest) for lowest in _BRATS_REGIONS.values())
    table = _rows_in_order(rows)
    empty = [name for name, column in zip(_BRATS_REGIONS, table.T, strict=True) if np.isnan(column).all()]
    if empty:
        raise HarnessError(f"neither cases nor responses have a voxel of {', '.join(empty)}", "use the validation set")
    regions = [float(f"{np.nanmean(column):.4f}") for column in table.T]
    mean = sum(regions) / 3
    shown = ", ".join(f"{name} = {value:.4f}" for name, value in zip(_BRATS_REGIONS, regions, strict=True))
    values = {"DICE": round(mean, 5), **dict(zip(_BRATS_REGIONS, regions, strict=True))}
    return Score(values=values, line=f"Accuracy: mean = {mean:.5f}, {shown}")
