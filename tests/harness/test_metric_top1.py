"""Top-1 accuracy agrees with accuracy-imagenet.py."""

import re

import numpy as np
import pytest
from scores import top1_cases
from scores.agreement import check
from scores.case import Case


@pytest.mark.parametrize("name", top1_cases.CASES)
def test_line_is_the_official_one(name):
    check("top1", name, top1_cases.CASES[name](), top1_cases.ours)


def test_checker_reads_the_printed_value():
    score = top1_cases.ours(top1_cases.CASES["real format"]())
    found = re.match(r"^(?:\{\"accuracy|accuracy)[\": ]*=?\s*([\d\.]+).*", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["acc"]


def test_of_a_sample_that_comes_twice_the_first_response_counts_once():
    right, wrong = np.float32(3).tobytes(), np.float32(2).tobytes()
    score = top1_cases.ours(Case([(0, right), (0, right), (1, wrong), (1, right)], np.array([3, 3])))
    assert score.line == "accuracy=50.000%, good=1, total=2"
