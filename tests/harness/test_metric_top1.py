"""Top-1 accuracy agrees with accuracy-imagenet.py."""

import re

import pytest
from harness_support import need

need("numpy")

from scores import top1_cases  # noqa: E402
from scores.agreement import check  # noqa: E402


@pytest.mark.parametrize("name", top1_cases.CASES)
def test_line_is_the_official_one(name):
    check("top1", name, top1_cases.CASES[name](), top1_cases.ours)


def test_checker_reads_the_printed_value():
    score = top1_cases.ours(top1_cases.CASES["real format"]())
    found = re.match(r"^(?:\{\"accuracy|accuracy)[\": ]*=?\s*([\d\.]+).*", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["acc"]
