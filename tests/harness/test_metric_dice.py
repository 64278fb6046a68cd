"""The Dice scorers agree with accuracy_kits.py and accuracy-brats.py."""

import re

import numpy as np
import pytest
from scores import dice_cases
from scores.agreement import check

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics import dice

_PATTERN = re.compile(r"Accuracy\:\s*mean\s*=\s*([\d\.]+).*")  # the checkers'
_SLOW = [name for name in dice_cases.BRATS_CASES if name not in ("real format", "ties")]  # 64 MB a response


@pytest.mark.parametrize("name", dice_cases.KITS_CASES)
def test_kits_line_is_the_official_one(name):
    check("kits", name, dice_cases.KITS_CASES[name](), dice_cases.kits_ours)


@pytest.mark.parametrize(
    "name", ["real format", "ties", *(pytest.param(name, marks=pytest.mark.full) for name in _SLOW)]
)
def test_brats_line_is_the_official_one(name):
    check("brats", name, dice_cases.BRATS_CASES[name](), dice_cases.brats_ours)


def test_checker_reads_the_mean():
    score = dice_cases.kits_ours(dice_cases.KITS_CASES["real format"]())
    assert float(_PATTERN.match(score.line).group(1)) == score.values["DICE"]


def _tiny_case(**changes: object) -> dice.BratsCase:
    content = {"segmentation": np.ones((6, 5, 4), np.uint8), "cropped_size": (4, 4, 4), "crop_start": (1, 1, 0)}
    return dice.BratsCase(**{**content, **changes})


def _score_tiny(case: dice.BratsCase, data: bytes | None = None) -> dice.Score:
    response = np.zeros((4, 4, 4, 4), np.float16).tobytes() if data is None else data
    return dice.score_brats([(0, response)], lambda index: case, padded_size=(4, 4, 4))


def test_crop_as_large_as_the_padding_is_scored():
    # accuracy-brats.py cuts such an axis to nothing (it slices up to -0).
    logits = np.zeros((4, 4, 4, 4), np.float16)
    logits[3] = 1
    case = _tiny_case(segmentation=np.full((6, 5, 4), 3, np.uint8))
    assert _score_tiny(case, logits.tobytes()).values["DICE"] == pytest.approx(2 * 64 / (64 + 120), abs=5e-5)


def test_region_that_no_case_has_is_refused():
    with pytest.raises(HarnessError, match="neither cases nor responses have a voxel of tumor core, enhancing tumor"):
        _score_tiny(_tiny_case())


@pytest.mark.parametrize(
    ("case", "data", "said"),
    [
        (_tiny_case(cropped_size=(5, 4, 4)), None, "is not inside a padded"),
        (_tiny_case(crop_start=(3, 1, 0)), None, "is not inside a padded"),
        (_tiny_case(), b"\0" * 8, "has 8 bytes, expected 512"),
        (_tiny_case(), np.full((4, 4, 4, 4), np.nan, np.float16).tobytes(), "has NaN in it"),
        (_tiny_case(segmentation=np.full((6, 5, 4), 4, np.uint8)), None, "label 4; allowed: 0 to 3"),
    ],
)
def test_brats_response_that_cannot_be_is_refused(case, data, said):
    with pytest.raises(HarnessError, match=said):
        _score_tiny(case, data)


def test_log_without_responses_is_refused():
    with pytest.raises(HarnessError, match="no response"):
        dice.score_kits([], lambda index: np.zeros((1, 1, 1), np.uint8))
