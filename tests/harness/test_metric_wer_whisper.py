"""Whisper's word accuracy agrees with accuracy_eval.py of speech2text."""

import re

import pytest
from harness_support import need
from scores import whisper_cases
from scores.agreement import check

need("whisper_normalizer")


@pytest.mark.parametrize("name", whisper_cases.CASES)
def test_line_is_the_official_one(name):
    check("whisper", name, whisper_cases.CASES[name](), whisper_cases.ours)


def test_checker_reads_the_accuracy():
    score = whisper_cases.ours(whisper_cases.CASES["real format"]())
    found = re.match(r"Word Error Rate\:.*, accuracy=([0-9\.]+)%", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["ACCURACY"]
