"""The verdicts on a language model's answers: TEST06, TEST07, TEST09.

Each rule has a log that passes and mutations that fail. The texts of the files are those of the official scripts
(compliance/TEST07 and TEST09, mlcommons/inference b66003e1), recorded 2026-11-23.
"""

import json
import struct
from collections.abc import Iterable, Sequence

import pytest

from crowdperf.compliance.answer_checks import verify_answers, verify_lengths, verify_score
from crowdperf.compliance.verdict_lines import missing_lines
from crowdperf.rules.names import Scenario

ENDS = (128001, 128009)
BOUNDS = (1150.38, 1406.02)


def hexed(tokens: Iterable[int]) -> str:
    return b"".join(struct.pack("<i", token) for token in tokens).hex().upper()


def entry(tokens: Sequence[int], index: int = 0, **changes: object) -> dict[str, object]:
    """An entry of a Server run's log."""
    row = {"seq_id": index, "qsl_idx": index, "data": hexed(tokens), "token_data": hexed(tokens[:1])}
    return {**row, "token_count": len(tokens), **changes}


def log(*entries: dict[str, object]) -> list[str]:
    return ["[", *(json.dumps(one) + "," for one in entries[:-1]), json.dumps(entries[-1]), "]"] if entries else ["[]"]


GOOD = entry([5, 6, 7, 128009])


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (GOOD, ""),
        (entry([5, 6]), ""),  # cut at its length
        (entry([128009, 128009]), ""),  # the official script does not look at the first token
        (entry([5, 6], token_data=hexed([6])), "First token check pass: False"),
        (entry([5, 6], token_data=hexed([5, 7])), "First token check pass: False"),
        (entry([5, 6], token_count=3), "Sample length check pass: False"),
        (entry([5, 6, 128009, 128009]), "EOS check pass: False"),
        (entry([5, 6, 128001, 128009]), "EOS check pass: False"),  # two different end tokens of one model
        (entry([5, 6], data="0500"), "TEST06 verification failed"),
        ({"qsl_idx": 0, "data": hexed([5, 6])}, "TEST06 verification failed"),  # no token_count
    ],
)
def test_each_check_of_test06_fails_by_one_mutation(changed: dict[str, object], line: str) -> None:
    verdict = verify_answers(log(GOOD, changed), Scenario.SERVER, ENDS)
    assert verdict.is_passed == (not line)
    assert line in verdict.text
    assert bool(missing_lines("TEST06", verdict.text)) == bool(line)


def test_one_end_token_may_be_given_as_a_number() -> None:
    for answer, is_passed in (([5, 6, 2], True), ([5, 6, 2, 2], False)):
        assert verify_answers(log(entry(answer)), Scenario.SERVER).is_passed is is_passed


def test_int64_answers_are_twice_as_long_as_they_say() -> None:
    wide = b"".join(struct.pack("<q", token) for token in (5, 6)).hex()
    verdict = verify_answers(log(entry([5, 6], data=wide)), Scenario.OFFLINE, ENDS)
    assert not verdict.is_passed and "Sample length check pass: False" in verdict.lines


def test_offline_has_no_first_tokens_and_an_empty_log_does_not_pass() -> None:
    plain = {name: value for name, value in GOOD.items() if name != "token_data"}
    verdict = verify_answers(log(plain), Scenario.OFFLINE, ENDS)
    assert verdict.is_passed and verdict.lines[0] == "First token check pass: Skipped"
    assert not verify_answers(log(plain), Scenario.SERVER, ENDS).is_passed
    assert not verify_answers(log(), Scenario.OFFLINE, ENDS).is_passed


def test_an_end_token_of_another_model_finds_nothing() -> None:
    """What the official script does by default: 2 ends no answer of Llama 3.1."""
    answers = log(entry([5, 6, 128009, 128009]))
    assert verify_answers(answers, Scenario.OFFLINE).is_passed
    assert not verify_answers(answers, Scenario.OFFLINE, 128009).is_passed


def test_test07_writes_what_the_official_script_writes() -> None:
    line = "{'exact_match': 61.250, 'num-samples': 990}"
    rule = "=" * 80
    assert verify_score(line, 61.25, 60.698).text == (
        f"{line}\n\n{rule}\nTEST07 Verification Summary\n{rule}\nAccuracy score: 61.25\nAccuracy threshold: 60.698\n"
        "Accuracy check pass: True\nTEST PASS\n"
    )


@pytest.mark.parametrize(("score", "is_passed"), [(60.698, True), (60.697, False), (0.0, False), (None, False)])
def test_test07_asks_for_its_score(score: float | None, is_passed: bool) -> None:
    verdict = verify_score("{'exact_match': 1}", score, 60.698)
    assert verdict.is_passed == is_passed
    assert bool(missing_lines("TEST07", verdict.text)) != is_passed


def lengths_log(*lengths: int) -> list[str]:
    return log(*(entry(range(length), index) for index, length in enumerate(lengths)))


def test_test09_writes_what_the_official_script_writes() -> None:
    rule = "=" * 80
    assert verify_lengths(lengths_log(1200, 1300, 1400), BOUNDS, 3).text == (
        f"{rule}\nTEST09: Verify Output Token Length in Performance Mode\n{rule}\n\nOutput Token Length Statistics\n"
        f"{'-' * 40}\nTotal samples: 3\nMean output tokens: 1300.00\nMin output tokens: 1200\nMax output tokens: 1400\n"
        f"Std deviation: 81.65\n\n{rule}\nVerification Results\n{rule}\nMean output tokens: 1300.00\n"
        "Min threshold: 1150.38\nMax threshold: 1406.02\nMin check pass: True\nMax check pass: True\n\nTEST PASS\n"
    )


@pytest.mark.parametrize(
    ("answers", "count", "said"),
    [
        (lengths_log(1151, 1150), 2, ""),
        (lengths_log(1150, 1150), 2, "Min check pass: False"),
        (lengths_log(1407, 1406), 2, "Max check pass: False"),
        (lengths_log(1300, 1300), 3, "1 of 3 samples are missing"),
        (log(entry(range(1300), 0), entry(range(1300), 0)), 2, "1 of 2 samples are missing, 1 come twice"),
        (log(entry(range(1300), 7)), 1, "1 are unknown"),
        (log(entry(range(1300), 0, data="050000")), 1, "3 bytes, which is not a whole number of int32"),
        (log(entry(range(1300), 0, data="xyz")), 1, "damaged"),
        (log(), 0, "contains no answers"),
        (["["], 1, "is incomplete"),
    ],
)
def test_each_check_of_test09_fails_by_one_mutation(answers: list[str], count: int, said: str) -> None:
    verdict = verify_lengths(answers, BOUNDS, count)
    assert verdict.is_passed == (not said)
    assert said in verdict.text
    assert bool(missing_lines("TEST09", verdict.text)) == bool(said)
