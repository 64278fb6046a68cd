"""Top-1 accuracy agrees with accuracy-imagenet.py."""

import re

import pytest
from scores import top1_cases
from scores.agreement import check


@pytest.mark.parametrize("name", top1_cases.CASES)
def test_line_is_the_official_one(name):
    check("top1", name, top1_cases.CASES[name](), top1_cases.ours)


def test_checker_reads_the_printed_value():
    score = top1_cases.ours(top1_cases.CASES["real format"]())
    found = re.match(r"^(?:\{\"accuracy|accuracy)[\": ]*=?\s*([\d\.]+).*", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["acc"]
