"""docs/howto/add-model.md: its files, word by word, make a model that runs and scores."""

import json
import re
from pathlib import Path

import pytest
from harness_support import copy_harness, need, request, run_harness

need("numpy", "mlperf_loadgen", "onnx", "onnxruntime")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-model.md"
COUNT = 40


def block(heading: str, language: str) -> str:
    """Return the first code block of `language` below a heading that holds the given words."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = [part for part in section if heading in part.splitlines()[0]]
    found = re.search(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    return found[1]


def write_network(path: Path) -> None:
    """Write scores = (half - mean, mean - half) of the pixels."""
    weights = np.stack([-np.ones(64), np.ones(64)], axis=1).astype(np.float32) / 64
    nodes = [helper.make_node("Gemm", ["pixels", "weights", "bias"], ["scores"])]
    graph = helper.make_graph(
        nodes,
        "squares",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 2])],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([0.5, -0.5], np.float32), "bias"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


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
    labels = np.arange(COUNT, dtype=np.uint8) % 2
    rng = np.random.default_rng(4)
    images = rng.integers(0, 100, (COUNT, 8, 8)) + 140 * labels[:, None, None]
    np.save(data / "squares.npy", images.astype(np.uint8))
    np.save(data / "labels.npy", labels)
    write_network(tmp_path / "squares.onnx")
    (tmp_path / "model.json").write_text(block("model.json", "json"))
    return tmp_path


@pytest.mark.parametrize("scenario", ["SingleStream", "MultiStream", "Offline", "Server"])
def test_the_model_of_the_page_runs_and_scores(place: Path, scenario: str) -> None:
    content = request(
        model="squares",
        backend="onnxruntime",
        scenario=scenario,
        mode="accuracy",
        model_info_path=str(place / "model.json"),
        dataset_path=str(place / "data"),
        output_dir=str(place / "out"),
    )
    ended = run_harness(place, content, source=place / "source")
    assert ended.code == 0, ended.stderr
    scored = run_harness(place, content, "score", source=place / "source")
    assert scored.code == 0, scored.stderr
    assert json.loads((place / "out" / "accuracy.json").read_text())["passed"] is True
    assert (place / "out" / "accuracy.txt").read_text() == f"accuracy=100.000%, good={COUNT}, total={COUNT}\n"


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
