"""The model.json that docs/howto/run-a-benchmark.md shows is one that the recipes take."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from crowdperf.data.errors import DataError
from crowdperf.data.model_info import read_model_info

ROOT = Path(__file__).resolve().parents[2]

PAGE = (ROOT / "docs" / "howto" / "run-a-benchmark.md").read_text(encoding="utf-8")


def test_the_model_json_of_the_page_describes_a_model_of_ones_own(tmp_path: Path) -> None:
    shown = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    info = json.loads(shown[1])
    own = info["files"]["model"]
    (tmp_path / own["file"]).write_bytes(b"weights")
    (tmp_path / "model.json").write_text(json.dumps(info), encoding="utf-8")
    with pytest.raises(DataError, match="SHA-256"):
        read_model_info(tmp_path)
    own.update(sha256=hashlib.sha256(b"weights").hexdigest(), size_bytes=len(b"weights"))
    (tmp_path / "model.json").write_text(json.dumps(info), encoding="utf-8")
    assert read_model_info(tmp_path).values["name"] == "resnet50"
