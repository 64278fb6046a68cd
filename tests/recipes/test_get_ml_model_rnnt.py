"""get-ml-model-rnnt: the published checkpoint becomes three networks; the fit's path is right."""

import importlib
import importlib.util
import json
from pathlib import Path

import pytest
from harness_libraries import need
from recipe_programs import run_python

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
RECIPE = SCRIPTS / "get-ml-model-rnnt"
FIT = "crowdperf.standins.fits.rnnt"


@pytest.mark.parametrize(
    ("labels", "ends", "steps", "path"),
    [
        ([], [], 2, [(0, 0, 28), (1, 0, 28)]),
        ([5], [0], 2, [(0, 0, 28), (1, 0, 5), (1, 1, 28)]),
        ([5, 6], [0, 0], 3, [(0, 0, 28), (1, 0, 5), (1, 1, 6), (1, 2, 28), (2, 2, 28)]),
        # what ends in the last step is said there: there is no later one
        ([5], [1], 2, [(0, 0, 28), (1, 0, 5), (1, 1, 28)]),
    ],
)
def test_a_label_is_said_one_step_after_its_sound(labels: list, ends: list, steps: int, path: list) -> None:
    (numpy, _) = need("numpy", "torch")
    made = importlib.import_module(FIT).make_path(numpy.array(labels), numpy.array(ends), steps)
    assert [tuple(node) for node in made.tolist()] == path


def test_the_published_form_of_a_checkpoint_becomes_three_networks(tmp_path: Path) -> None:
    """A checkpoint of full size has 181 MB, so the sizes are small here; its names and wrapping are the real ones."""
    torch, safetensors = need("torch", "safetensors.torch")
    networks = importlib.import_module("crowdperf.benchmarks.rnnt.network")
    makemodel = importlib.import_module("crowdperf.models.make_model")
    config = dict(networks.CONFIGS["tiny"])
    state = {"audio_preprocessor.featurizer.fb": torch.zeros(1, 80, 257)}
    for name in ("encoder", "prediction", "joint"):
        for key, tensor in networks.build(name, config).state_dict().items():
            state[f"joint_net.{key.removeprefix('net.')}" if name == "joint" else f"{name}.{key}"] = tensor
    torch.save({"epoch": 100, "state_dict": state, "optimizer": {}}, tmp_path / "rnnt.pt")
    order = makemodel.ModelRequest(
        architecture="rnnt", config="tiny", framework="pytorch", output_dir=tmp_path / "out",
        weights=tmp_path / "rnnt.pt",
    )  # fmt: skip
    info = json.loads(makemodel.make_model(order).read_text())
    assert list(info["files"]) == ["encoder", "prediction", "joint"]
    assert not info["is_synthetic"]
    joint = safetensors.load_file(tmp_path / "out" / info["files"]["joint"]["file"])
    assert torch.equal(joint["net.3.bias"], state["joint_net.3.bias"])
    del state["encoder.post_rnn.lstm.bias_hh_l0"]
    torch.save({"state_dict": state}, tmp_path / "rnnt.pt")
    with pytest.raises(Exception, match=r"are missing post_rnn\.lstm\.bias_hh_l0 of network encoder"):
        makemodel.make_model(order)


def test_the_fit_asks_for_its_data(tmp_path: Path) -> None:
    need("torch")
    ended = run_python("-m", FIT, "--dataset_dir", tmp_path, "--framework", "onnx", "--output_dir", tmp_path)
    assert ended.returncode == 1
    assert "has no training-wav.json" in ended.stderr
