"""crowdperf.standins.fitted_models: what is in the repository is what the fit makes, and needs no torch."""

import gzip
import json

import pytest
from harness_support import need
from made_sets import make_set
from recipe_programs import run_python

onnx, _, _ = need("onnx", "onnxruntime", "cv2")
from crowdperf.harness.base.errors import HarnessError  # noqa: E402
from crowdperf.standins import fitted_models  # noqa: E402

SETS = {"bert": ("squad", {"kind": "tiny", "count": 48}), "resnet50": ("imagenet", {"count": 32, "sizes": "small"})}
LEAST = {"bert": ("F1", 90.0), "resnet50": ("acc", 75.0)}
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from crowdperf.standins.fitted_models import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(params=sorted(fitted_models.BENCHMARKS))
def made(request, tmp_path):
    """A network of the repository, and its synthetic data set."""
    name, options = SETS[request.param]
    make_set(name, tmp_path / "dataset", **options)
    return request.param, tmp_path / "dataset"


def test_a_model_is_written_without_torch_and_its_score_is_measured(made, tmp_path):
    architecture, dataset = made
    words = [f"--architecture={architecture}", f"--dataset_dir={dataset}", f"--output_dir={tmp_path}"]
    done = run_python("-c", WITHOUT_TORCH, *words)
    assert done.returncode == 0, done.stderr
    info = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    metric, least = LEAST[architecture]
    assert info["reference"][metric] >= least
    assert (info["is_synthetic"], info["config_name"], info["precision"]) == (True, "tiny", "fp32")
    assert "torch" in info["versions_of_fit"] and "torch" not in info["versions"]


def test_the_fit_makes_what_the_repository_has(made, tmp_path):
    """Processors round differently, and a descent makes more of that than a regression: weights are compared where the
    fit leaves them random, and else the score."""
    need("torch")
    architecture, dataset = made
    words = [f"--dataset_dir={dataset}", f"--output_dir={tmp_path}"]
    done = run_python("-m", f"crowdperf.standins.fits.{architecture}", *words)
    assert done.returncode == 0, done.stderr
    kept, info = fitted_models.read_kept(architecture)
    found = onnx.load(str(tmp_path / f"{architecture}.onnx"))
    assert [node.op_type for node in found.graph.node] == [node.op_type for node in kept.graph.node]
    weights, wanted = (
        {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in one.graph.initializer} for one in (found, kept)
    )
    assert {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in wanted.items()
    }
    again = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert {**again, **dict.fromkeys(("files", "versions", "reference"))} == {
        **info,
        **dict.fromkeys(("files", "versions", "reference")),
    }
    metric, _ = LEAST[architecture]
    assert again["reference"][metric] == pytest.approx(info["reference"][metric], abs=10)
    if architecture == "resnet50":
        for name, value in weights.items():
            assert value == pytest.approx(wanted[name].astype(value.dtype), rel=0.01, abs=0.01), name


@pytest.mark.parametrize("content", [b"", gzip.compress(b"another network"), None])
def test_a_damaged_file_is_refused(tmp_path, monkeypatch, content):
    path = tmp_path / "bert.onnx.gz"
    (tmp_path / "bert.json").write_bytes((fitted_models.PLACE / "bert.json").read_bytes())
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(fitted_models, "PLACE", tmp_path)
    with pytest.raises(HarnessError, match=str(path)) as error:
        fitted_models.read_kept("bert")
    assert "src/crowdperf/standins/fitted" in error.value.with_hint


def test_what_a_fit_wrote_is_kept_with_its_digest(tmp_path, monkeypatch):
    graph, info = fitted_models.read_kept("bert")
    fitted = tmp_path / "fitted"
    fitted.mkdir()
    (fitted / "bert.onnx").write_bytes(
        fitted_models.with_weights(graph, fitted_models.np.float16, fitted_models.np.float32)
    )
    (fitted / "model.json").write_text(json.dumps(info), encoding="utf-8")
    monkeypatch.setattr(fitted_models, "PLACE", tmp_path)
    assert fitted_models.main(["--architecture=bert", f"--keep={fitted}"]) == 0
    assert fitted_models.read_kept("bert")[1] == info
