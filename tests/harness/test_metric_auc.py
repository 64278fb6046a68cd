"""The area under the ROC curve agrees with accuracy-dlrm.py and, on many inputs, with the definition."""

import re

import numpy as np
import pytest
from scores import auc_cases
from scores.agreement import check

from crowdperf.harness.metrics import auc


@pytest.mark.parametrize("name", auc_cases.CASES)
def test_line_is_the_official_one(name):
    check("auc", name, auc_cases.CASES[name](), auc_cases.ours)


def test_checker_reads_the_area():
    score = auc_cases.ours(auc_cases.CASES["real format"]())
    found = re.match(r"^AUC=([\d\.]+).*", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["AUC"]
    accuracy = re.search(r"accuracy=([\d.]+)%", score.line)
    assert float(accuracy.group(1)) == score.values["accuracy"]


def test_area_is_the_share_of_pairs_in_the_right_order():
    random = np.random.RandomState(0)
    for _ in range(50):
        values = random.randint(-3, 4, 30).astype(np.float32)
        labels = np.array([1, 0, *random.randint(0, 2, 28)])
        clicked, others = values[labels == 1], values[labels == 0]
        share = np.mean((clicked[:, None] > others) + 0.5 * (clicked[:, None] == others))
        assert auc._area(clicked, others) == pytest.approx(share, rel=1e-14)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_do_not_change_the_line(chunk, monkeypatch):
    monkeypatch.setattr(auc, "_CHUNK_ROWS", chunk)
    check("auc", "many ties", auc_cases.CASES["many ties"](), auc_cases.ours)
