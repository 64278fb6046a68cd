"""Follows docs/howto/add-backend.md: its file, put into a copy of the harness, runs in every scenario and scores."""

import json
import re
from pathlib import Path

import onnx
import pytest
from harness_support import copy_harness, need, request, run_harness
from test_harness_runs import Digits, digits  # noqa: F401 - a fixture

from crowdperf.harness.runner import registry

need("mlperf_loadgen")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-backend.md").read_text(encoding="utf-8")


def code() -> tuple[str, dict[str, str]]:
    """The name of the page's backend and its files."""
    name = re.search(r"^## 1\. The record: `backends/(\w+)/record\.py`$", PAGE, re.MULTILINE)
    record, backend, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    return name[1], {"record.py": record, "backend.py": backend}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of the harness with the page's file in it."""
    folder = tmp_path_factory.mktemp("source")
    copy_harness(folder)
    name, files = code()
    (folder / "crowdperf" / "harness" / "backends" / name).mkdir()
    for file, text in files.items():
        (folder / "crowdperf" / "harness" / "backends" / name / file).write_text(text)
    return folder


@pytest.fixture
def data(digits: Digits) -> Path:  # noqa: F811
    """Digits, and a linear model fitted to others of them."""
    return digits.dataset


def ask(data: Path, folder: Path, **changes: object) -> dict[str, object]:
    common = {"backend": code()[0], "dataset_path": str(data), "model_info_path": str(data / "model.json"),
              "output_dir": str(folder / "out"), "min_duration_ms": 150, "instances": 1, "threads": 1}  # fmt: skip
    return request(**{**common, **changes})


@pytest.mark.parametrize("scenario", ["SingleStream", "MultiStream", "Offline", "Server"])
def test_the_pages_backend_runs_in_every_scenario(data, source, tmp_path, scenario):
    ended = run_harness(tmp_path, ask(data, tmp_path, scenario=scenario), source=source)
    assert ended.code == 0, ended.stderr
    assert "result.json" in {path.name for path in ended.folder.iterdir()}


def test_the_pages_backend_reads_the_digits_as_the_model_was_fitted(data, source, tmp_path):
    content = ask(data, tmp_path, mode="accuracy", min_duration_ms=None)
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 0, ended.stderr
    assert f'"onnx": "{onnx.__version__}"' in (ended.folder / "result.json").read_text()
    scored = run_harness(tmp_path, content, "score", source=source)
    assert scored.code == 0, scored.stderr
    reference = json.loads((data / "model.json").read_text())["reference"]["acc"]
    accuracy = json.loads((scored.folder / "accuracy.json").read_text())
    assert [(row["name"], row["value"]) for row in accuracy["metrics"]] == [("acc", pytest.approx(reference, abs=1e-3))]
    assert accuracy["passed"] is True


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [({"device": "cuda"}, 2, "allowed: cpu"), ({"precision": "fp16"}, None, "fp32")],
)
def test_what_the_page_says_it_cannot_do_is_refused_with_what_it_can(data, source, tmp_path, changes, code, said):
    ended = run_harness(tmp_path, ask(data, tmp_path, **changes), source=source)
    assert ended.code != 0 and (code is None or ended.code == code)
    assert said in ended.stderr


def test_a_file_that_is_no_model_ends_with_the_pages_error(data, source, tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"nothing")
    content = ask(data, tmp_path, model_info_path=None, model_path=str(tmp_path / "x.onnx"))
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 1
    assert "onnx cannot open" in ended.stderr


def test_the_page_names_every_member_of_a_backend_file():
    for member in ("devices", "precisions", "framework", "batch_size", "open_backend", "instance", "versions", "close"):
        assert member in PAGE, member
    assert code()[0] not in registry.known_names("backends"), "the page's example must not exist already"
