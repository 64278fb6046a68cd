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
TEMPLATE = PAGE.parents[2] / "automation" / "script" / "templates" / "benchmark"
BENCHMARK = TEMPLATE / "repo" / "src" / "crowdperf" / "benchmarks" / "@NAME@"
FILES = ("dataset.py", "record.py", "model.py")


def rendered(path: Path) -> str:
    """Return a file of `cm add script crowdperf:get-squares --template=benchmark`."""
    text = path.with_name(f"{path.name}.template").read_text()
    return text.replace("@NAME@", "squares").replace("@TAG_TEXT@", "get,squares")


def block(heading: str, language: str) -> str:
    """Return the first code block of `language` below a heading that holds the given words."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = [part for part in section if heading in part.splitlines()[0]]
    found = re.search(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the harness and the page's model in it, and the model's data."""
    tmp_path = tmp_path_factory.mktemp("squares")
    source = tmp_path / "source"
    copy_harness(source)
    folder = source / "crowdperf" / "benchmarks" / "squares"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(rendered(BENCHMARK / name))
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "make_files.py").write_text(rendered(TEMPLATE / "make_files.py"))
    subprocess.run([sys.executable, tmp_path / "make_files.py"], cwd=data, check=True)
    return tmp_path


def test_the_page_shows_what_the_template_writes(place: Path) -> None:
    for name in FILES:
        assert block(f"benchmarks/squares/{name}", "python") == rendered(BENCHMARK / name)
    assert json.loads(block("model.json", "json")) == json.loads((place / "data" / "model.json").read_text())


ALWAYS = ("MultiStream", "Server")
"""Scenarios that run each time; test_the_run_json_of_the_page_is_a_whole_request runs Offline."""


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, marks=() if scenario in ALWAYS else pytest.mark.full)
        for scenario in ("SingleStream", "MultiStream", "Offline", "Server")
    ],
)
def test_the_model_of_the_page_runs_and_scores(place: Path, tmp_path: Path, scenario: str) -> None:
    content = request(
        model="squares",
        backend="onnxruntime",
        scenario=scenario,
        mode="accuracy",
        instances=1,
        threads=1,
        model_info_path=str(place / "data" / "model.json"),
        dataset_path=str(place / "data"),
        output_dir=str(tmp_path / "out"),
    )
    ended = run_harness(tmp_path, content, source=place / "source")
    assert ended.code == 0, ended.stderr
    scored = run_harness(tmp_path, content, "score", source=place / "source")
    assert scored.code == 0, scored.stderr
    assert json.loads((tmp_path / "out" / "accuracy.json").read_text())["passed"] is True
    assert (tmp_path / "out" / "accuracy.txt").read_text() == f"accuracy=100.000%, good={COUNT}, total={COUNT}\n"


def test_the_run_json_of_the_page_is_a_whole_request(place: Path) -> None:
    """Relative paths count from the file's folder, where the page's files are."""
    content = json.loads(block("Try it", "json"))
    ended = run_harness(place / "data", content, source=place / "source")
    assert ended.code == 0, ended.stderr
    scored = run_harness(place / "data", content, "score", source=place / "source")
    assert scored.code == 0, scored.stderr
    assert json.loads((place / "data" / "out" / "accuracy.json").read_text())["passed"] is True


def test_a_store_that_is_not_there_is_told(place: Path, tmp_path: Path) -> None:
    content = request(
        model="squares",
        backend="null",
        model_info_path=None,
        dataset_path=str(place / "data"),
        output_dir=str(tmp_path / "out"),
        preprocessed_path=str(tmp_path / "nowhere"),
    )
    ended = run_harness(tmp_path, content, source=place / "source")
    assert ended.code == 1
    assert "not a complete store" in ended.stderr
