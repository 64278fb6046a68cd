"""Cases of the two Dice scorers. truth: KiTS19: the label volumes by index; BraTS19: the BratsCases by index."""

from collections.abc import Callable

import numpy as np
from scores.case import Case

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import dice

_BRATS_PADDED = (224, 224, 160)  # accuracy-brats.py knows no other


def _blobs(random: np.random.RandomState, shape: tuple[int, ...], highest: int) -> np.ndarray:
    """Nested boxes of the labels 1 to `highest`."""
    volume = np.zeros(shape, dtype=np.uint8)
    low, high = np.zeros(3, dtype=int), np.array(shape)
    for label in range(1, highest + 1):
        low = low + random.randint(1, 4, 3)
        high = np.maximum(high - random.randint(1, 4, 3), low + 1)
        volume[tuple(map(slice, low, high))] = label
    return volume


def _noisy(random: np.random.RandomState, volume: np.ndarray, highest: int) -> np.ndarray:
    wrong = random.rand(*volume.shape) < random.rand() * 0.4
    return np.where(wrong, random.randint(0, highest + 1, volume.shape), volume).astype(np.uint8)


def _kits(seed: int, change: Callable[[int, np.ndarray], np.ndarray] = lambda index, volume: volume) -> Case:
    random = np.random.RandomState(seed)
    truth, responses = [], []
    for index in range(9):
        volume = _blobs(random, tuple(random.randint(12, 24, 3).tolist()), 2)
        truth.append(volume)
        responses.append((index, change(index, _noisy(random, volume, 2)).tobytes()))
    return Case([responses[i] for i in random.permutation(len(responses))], truth)


def _kits_absent() -> Case:
    """No tumour in the truth of one, in the prediction of another, in both of a third; nothing at all in a fourth."""

    def without(volume: np.ndarray, index: int, tumourless: tuple[int, ...]) -> np.ndarray:
        changed = np.where((volume == 2) & (index in tumourless), 1, volume) * (index != 3)
        return np.asarray(changed, dtype=np.uint8)

    case = _kits(3, lambda index, volume: without(volume, index, (1, 2)))
    return Case(case.responses, [without(volume, index, (0, 2)) for index, volume in enumerate(case.truth)])


KITS_CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _kits(1),
    "perfect": lambda: Case([(i, v.tobytes()) for i, v in enumerate(_kits(2).truth)], _kits(2).truth),
    "labels that are absent": _kits_absent,
    "background only": lambda: _kits(4, lambda index, volume: np.zeros_like(volume)),
    "duplicated indices": lambda: Case([*_kits(5).responses, _kits(5).responses[0]], _kits(5).truth),
    "a case missing": lambda: Case(_kits(6).responses[1:], _kits(6).truth),
    "another shape": lambda: _kits(7, lambda index, volume: volume[1:]),
    "label 3": lambda: _kits(8, lambda index, volume: volume + 1),
}


def kits_ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return dice.score_kits(case.responses, lambda index: case.truth[index])


def _brats_case(random: np.random.RandomState, size: tuple[int, int, int], highest: int) -> dice.BratsCase:
    original = (155, 240, 240)
    start = tuple(int(random.randint(0, whole - part + 1)) for whole, part in zip(original, size, strict=True))
    segmentation = np.zeros(original, dtype=np.uint8)
    inside = tuple(slice(first, first + part) for first, part in zip(start, size, strict=True))
    segmentation[inside] = _blobs(random, size, highest)
    return dice.BratsCase(segmentation=segmentation, cropped_size=size, crop_start=start)


def _brats_logits(random: np.random.RandomState, case: dice.BratsCase, step: float) -> bytes:
    """Return scores that mostly favour the true label; the margin around the crop is noise that must not count."""
    inside = tuple(slice(f, f + s) for f, s in zip(case.crop_start, case.cropped_size, strict=True))
    truth = case.segmentation[inside]
    padded = np.zeros(_BRATS_PADDED, dtype=np.int64) + 3
    margins = [(pad - part) // 2 for pad, part in zip(_BRATS_PADDED, case.cropped_size, strict=True)]
    padded[tuple(slice(m, m + s) for m, s in zip(margins, case.cropped_size, strict=True))] = truth
    noise = random.rand((1 << 20) - 3).astype(np.float32)  # repeated: a response has 32 million numbers
    logits = np.resize(noise, (4, *_BRATS_PADDED))
    logits += 0.4 * (np.arange(4).reshape(4, 1, 1, 1) == padded)
    return (np.round(logits / step) * step).astype(np.float16).tobytes()


def _brats(
    seed: int,
    sizes: tuple[tuple[int, int, int], ...] = ((138, 171, 137), (145, 170, 141)),
    *,
    highest: tuple[int, ...] = (3, 3),
    step: float = 2.0**-9,
) -> Case:
    random = np.random.RandomState(seed)
    truth = [_brats_case(random, size, label) for size, label in zip(sizes, highest, strict=True)]
    responses = [(index, _brats_logits(random, case, step)) for index, case in enumerate(truth)]
    return Case(responses[::-1], truth)


BRATS_CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _brats(1),
    "ties": lambda: _brats(2, step=0.25),
    "odd margins": lambda: _brats(4, ((155, 173, 139), (131, 223, 159))),
    "no enhancing tumour": lambda: _brats(5, highest=(2, 3)),
}


def brats_ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return dice.score_brats(case.responses, lambda index: case.truth[index], padded_size=_BRATS_PADDED)
