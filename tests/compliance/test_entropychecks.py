"""TEST08's verdict on dlrm-v3's answers.

What the official script says of the same logs (compliance/TEST08/run_verification.py, mlcommons/inference b66003e1) was
recorded on 2026-11-23 by running it on the logs that this module makes.
"""

import json
import math
import struct
from collections.abc import Sequence

import pytest

from crowdperf.compliance.entropy_checks import normalised_entropy, verify_entropies

LABELS, WEIGHTS = (1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 2.0, 0.5)
ANSWERS = {(90, query): (0.7, 0.2, 0.1 + query / 10, 0.9) for query in range(4)}


def hexed(*numbers: float) -> str:
    return struct.pack(f"<{len(numbers)}f", *numbers).hex().upper()


def log(data: Sequence[str]) -> list[str]:
    """The lines of an accuracy log."""
    rows = [json.dumps({"seq_id": number, "qsl_idx": 0, "data": one}) for number, one in enumerate(data)]
    return ["[", *(f"{row}," for row in rows[:-1]), *rows[-1:], "]"]


def whole(key: tuple[int, int], predictions: Sequence[float], weights: Sequence[float] = WEIGHTS) -> str:
    return hexed(*key, *predictions, *LABELS, *weights, 4)


def timed(key: tuple[int, int], predictions: Sequence[float]) -> str:
    return hexed(*key, *predictions)


REFERENCE = [whole(key, one) for key, one in ANSWERS.items()]
GOOD = [timed(key, one) for key, one in ANSWERS.items()][1:]
FIRST = ANSWERS[90, 1]

CASES = {
    "the same answers": (REFERENCE, GOOD, True, "PASS"),
    "one of them twice": (REFERENCE, [*GOOD, GOOD[0]], True, "PASS"),
    "within the tolerance": (REFERENCE, [timed((90, 1), (0.7003, *FIRST[1:]))], True, "PASS"),
    "one other prediction": (REFERENCE, [timed((90, 1), (0.6, *FIRST[1:])), *GOOD], False, "FAIL"),
    "predictions in another order": (REFERENCE, [timed((90, 1), FIRST[::-1])], False, "FAIL"),
    "an unknown query": (REFERENCE, [*GOOD, timed((90, 9), FIRST)], False, "FAIL"),
    "another time stamp": (REFERENCE, [timed((91, 1), FIRST)], False, "FAIL"),
    "the answers of another query": (REFERENCE, [timed((90, 0), ANSWERS[90, 3])], False, "FAIL"),
    "no answer": (REFERENCE, [], False, "FAIL"),
    "no weight": ([whole((90, 1), FIRST, (0.0,) * 4)], [timed((90, 1), FIRST[::-1])], True, "PASS"),
    "certain predictions": ([whole((90, 1), (1.0, 0.0, 0.0, 1.0))], [timed((90, 1), (1, 0, 0, 1))], True, "PASS"),
    "the later of two": ([whole((90, 1), FIRST[::-1]), *REFERENCE], [timed((90, 1), FIRST)], True, "PASS"),
    # where the script is less strict
    "no number": (REFERENCE, [timed((90, 1), (math.nan, *FIRST[1:]))], False, "PASS"),
    "one prediction for all": ([whole((90, 1), (0.3,) * 4)], [timed((90, 1), (0.3,))], False, "PASS"),
    "weights without end": ([whole((90, 1), FIRST, (math.inf,) * 4)], [timed((90, 1), FIRST[::-1])], False, "PASS"),
    "too few predictions": (REFERENCE, [timed((90, 1), FIRST[:3])], False, "error"),
    "a wrong number of candidates": ([hexed(90, 1, *FIRST, 3)], [timed((90, 1), FIRST)], False, "error"),
    "no time stamp": (REFERENCE, [hexed(math.nan, 1, *FIRST)], False, "error"),
    "nothing but a key": (REFERENCE, [hexed(90, 1)], False, "error"),
    "half a number": (REFERENCE, [timed((90, 1), FIRST)[:-2]], False, "error"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changed_answers_fail(name: str) -> None:
    reference, answers, is_passed, _ = CASES[name]
    verdict = verify_entropies(log(reference), log(answers), 0.001)
    assert verdict.is_passed == is_passed, verdict.text
    assert ("TEST PASS" in verdict.text) == is_passed


def test_nothing_passes_that_the_script_refuses() -> None:
    assert all(official == "PASS" for _, _, is_passed, official in CASES.values() if is_passed)


def test_entropies_and_counts_are_those_of_the_script() -> None:
    wrong = timed((90, 1), (0.6, *FIRST[1:]))
    verdict = verify_entropies(log(REFERENCE), log([wrong, *GOOD]), 0.001)
    assert "NE mismatch at (90, 1): acc_ne=0.376630, perf_ne=0.430448" in verdict.text
    counts = (
        "num_acc_log_entries = 4\nnum_perf_log_entries = 4\nnum_matched = 4\nnum_unmatched = 0\nnum_ne_mismatch = 1"
    )
    assert f"{counts}\ntolerance = 0.10%\n\nTEST FAIL\n" in verdict.text


def test_twenty_mismatches_are_shown_and_all_are_counted() -> None:
    wrong = timed((90, 1), (0.6, *FIRST[1:]))
    verdict = verify_entropies(log(REFERENCE), log([wrong] * 25), 0.001)
    assert verdict.text.count("NE mismatch at") == 20 and verdict.counts["num_ne_mismatch"] == 25


def test_what_is_no_answer_is_named() -> None:
    for reference, answers in (([hexed(90, 1)], GOOD), (REFERENCE, [hexed(90, 1)])):
        assert (
            "has 2 numbers, no time stamp, query and predictions"
            in verify_entropies(log(reference), log(answers), 0.001).text
        )


def test_a_cut_log_has_no_verdict() -> None:
    verdict = verify_entropies(log(REFERENCE)[:-1], log(GOOD), 0.001)
    assert not verdict.is_passed and verdict.counts == {}
    assert "truncated" in verdict.text


def test_the_entropy_is_one_where_the_mean_label_is_predicted() -> None:
    assert normalised_entropy((0.5, 0.5), (1.0, 0.0), (1.0, 1.0)) == pytest.approx(1.0)
    assert normalised_entropy((0.25, 0.75), (1.0, 0.0), (1.0, 1.0)) == pytest.approx(2.0)
