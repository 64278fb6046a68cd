"""docs/howto/add-model.md: its files, word by word, make a model that runs and scores."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness_support import copy_harness, need, request, run_harness

need("numpy", "mlperf_loadgen", "onnx", "onnxruntime")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-model.md"
COUNT = 40


def block(heading: str, language: str) -> str:
    """Return the first code block of `language` below a heading that holds the given words."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = [part for part in section if heading in part.splitlines()[0]]
    found = re.search(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    copy_harness(source)
    folder = source / "harness" / "benchmarks" / "squares"
    folder.mkdir()
    for name in ("dataset.py", "record.py", "model.py"):
        (folder / name).write_text(block(f"benchmarks/squares/{name}", "python"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "make_squares.py").write_text(block("Try it", "python"))
    subprocess.run([sys.executable, "make_squares.py"], cwd=data, check=True)
    (data / "model.json").write_text(block("model.json", "json"))
    return tmp_path


@pytest.mark.parametrize("scenario", ["SingleStream", "MultiStream", "Offline", "Server"])
def test_the_model_of_the_page_runs_and_scores(place: Path, scenario: str) -> None:
    content = request(
        model="squares",
        backend="onnxruntime",
        scenario=scenario,
        mode="accuracy",
        model_info_path=str(place / "data" / "model.json"),
        dataset_path=str(place / "data"),
        output_dir=str(place / "out"),
    )
    ended = run_harness(place, content, source=place / "source")
    assert ended.code == 0, ended.stderr
    scored = run_harness(place, content, "score", source=place / "source")
    assert scored.code == 0, scored.stderr
    assert json.loads((place / "out" / "accuracy.json").read_text())["passed"] is True
    assert (place / "out" / "accuracy.txt").read_text() == f"accuracy=100.000%, good={COUNT}, total={COUNT}\n"


def test_the_run_json_of_the_page_is_a_whole_request(place: Path) -> None:
    """Relative paths count from the file's folder, where the page's files are."""
    content = json.loads(block("Try it", "json"))
    ended = run_harness(place / "data", content, source=place / "source")
    assert ended.code == 0, ended.stderr
    scored = run_harness(place / "data", content, "score", source=place / "source")
    assert scored.code == 0, scored.stderr
    assert json.loads((place / "data" / "out" / "accuracy.json").read_text())["passed"] is True


def test_a_store_that_is_not_there_is_told(place: Path) -> None:
    content = request(
        model="squares",
        backend="null",
        model_info_path=None,
        dataset_path=str(place / "data"),
        output_dir=str(place / "out"),
        preprocessed_path=str(place / "nowhere"),
    )
    ended = run_harness(place, content, source=place / "source")
    assert ended.code == 1
    assert "not a complete store" in ended.stderr
