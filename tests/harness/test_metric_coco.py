"""The detection scorer agrees with accuracy-coco.py and accuracy-openimages.py."""

import json
import re

import numpy as np
import pytest
from harness_support import need
from scores import coco_cases
from scores.agreement import check

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics import coco

need("pycocotools")


@pytest.mark.parametrize("name", coco_cases.CASES)
def test_line_is_the_official_one(name, tmp_path):
    check("coco", name, coco_cases.CASES[name](), lambda case: coco_cases.ours(case, tmp_path))


@pytest.mark.parametrize("portion", [1, 5, 24])
def test_portions_do_not_change_the_line(portion, tmp_path, monkeypatch):
    monkeypatch.setattr(coco, "_PORTION_IMAGES", portion)
    check("coco", "ties and doubles", coco_cases.CASES["ties and doubles"](), lambda c: coco_cases.ours(c, tmp_path))


def test_checker_reads_the_line_and_nothing_else_is_printed(tmp_path, capsys):
    score = coco_cases.ours(coco_cases.CASES["real format"](), tmp_path)
    found = re.match(r".*(?:mAP=|'Total':)\s*([\d.]+)", score.line)  # the checkers' pattern
    assert float(found.group(1)) == score.values["mAP"]
    assert capsys.readouterr().out == ""


def test_detections_that_name_another_sample_are_told(tmp_path, caplog):
    coco_cases.ours(coco_cases.CASES["another index in the rows"](), tmp_path)
    assert "samples have detections that name another sample" in caplog.text


@pytest.mark.parametrize("content", ["no json", "[]", json.dumps({"images": [], "categories": [], "annotations": []})])
def test_damaged_annotations_are_named(content, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(HarnessError, match=r"a\.json"):
        coco.score([(0, b"")], tmp_path / "a.json")


def test_unknown_sample_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(coco_cases.make_truth(1)))
    with pytest.raises(HarnessError, match="sample 24 is unknown, the data set has 0 to 23"):
        coco.score([(24, np.zeros(7, np.float32).tobytes())], tmp_path / "a.json")
    with pytest.raises(HarnessError, match="no response"):
        coco.score([], tmp_path / "a.json")
