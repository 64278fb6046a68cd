"""The word error rate agrees with accuracy_eval.py."""

import random
import re

import pytest
from scores import wer_cases
from scores.agreement import check

from crowdperf.harness.metrics import wer


@pytest.mark.parametrize("name", wer_cases.CASES)
def test_line_is_the_official_one(name):
    check("wer", name, wer_cases.CASES[name](), wer_cases.ours)


def test_checker_reads_the_accuracy():
    score = wer_cases.ours(wer_cases.CASES["real format"]())
    found = re.match(r"Word Error Rate\:.*, accuracy=([0-9\.]+)%", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["WER"]


def _distance(first: list[str], second: list[str]) -> int:
    """The definition, without memory."""
    if not first or not second:
        return len(first) + len(second)
    if first[0] == second[0]:
        return _distance(first[1:], second[1:])
    shorter = [(first[1:], second), (first, second[1:]), (first[1:], second[1:])]
    return 1 + min(_distance(a, b) for a, b in shorter)


def test_distance_is_the_definition():
    generator = random.Random(0)
    for _ in range(200):
        first, second = ([generator.choice("abc") for _ in range(generator.randrange(6))] for _ in range(2))
        assert wer.word_distance(first, second) == _distance(first, second)


def test_characters_are_the_official_ones():
    assert (len(wer.CHARACTERS), wer.CHARACTERS[0], wer.CHARACTERS[1], wer.CHARACTERS[27]) == (28, " ", "a", "'")
