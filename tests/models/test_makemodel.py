"""makemodel: seeded weights that keep activations alive, both frameworks alike, and checkpoints taken over."""

import json
from pathlib import Path

import harness_support
import numpy as np
import onnxruntime
import pytest
import torch
from backend_toys import toy_on_path
from safetensors.torch import load_file

from crowdperf.harness.base.architecture import architecture_of
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models import make_model as makemodel
from crowdperf.models.make_model import ModelRequest

harness_support.need("onnx")


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory):
    with toy_on_path(tmp_path_factory.mktemp("toy")):
        yield


def order(folder: Path, framework: str = "pytorch", **changes) -> ModelRequest:
    return ModelRequest(
        **{"architecture": "toy", "config": "tiny", "framework": framework, "output_dir": folder, **changes}
    )


def test_model_json_describes_the_files_that_lie_beside_it(tmp_path):
    facts = read_model_facts(None, makemodel.make_model(order(tmp_path, "onnx")))
    assert sorted(facts.files) == ["image", "text"]
    assert all(file_sha256(entry.path) == entry.sha256 for entry in facts.files.values())
    assert (facts.framework, facts.is_synthetic, facts.reference) == ("onnx", True, None)
    assert facts.config == {"width": 8}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        makemodel.make_model(order(folder, seed=seed))
    digests = [file_sha256(folder / "toy-image.safetensors") for folder in folders]
    assert digests[0] == digests[1] != digests[2]


def test_both_frameworks_get_the_same_weights(tmp_path):
    makemodel.make_model(order(tmp_path / "onnx", "onnx"))
    makemodel.make_model(order(tmp_path / "pytorch"))
    module = architecture_of("toy").build("image", {"width": 8})
    module.load_state_dict(load_file(tmp_path / "pytorch" / "toy-image.safetensors"))
    image = np.random.default_rng(0).normal(20, 60, (5, 3, 16, 16)).astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "toy-image.onnx")
    (answers,) = session.run(None, {"image": image})
    with torch.inference_mode():
        (expected,) = module(torch.from_numpy(image))
    np.testing.assert_allclose(answers, expected.numpy(), atol=1e-5)


def test_batch_and_named_sizes_of_the_onnx_file_are_free(tmp_path):
    makemodel.make_model(order(tmp_path, "onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "toy-text.onnx")
    for count, tokens in ((1, 1), (4, 23)):
        inputs = {"ids": np.ones((count, tokens), np.int64), "state": np.zeros((count, 12), np.float32)}
        scores, state = session.run(["scores", "new_state"], inputs)
        assert (scores.shape, state.shape) == ((count, tokens, 5), (count, 12))


def test_batch_normalisation_fits_the_inputs_so_that_activations_stay_near_one(tmp_path):
    module = makemodel.build_modules(order(tmp_path))["image"]
    (image,) = architecture_of("toy").example_inputs("image", {}, 8, torch.Generator().manual_seed(9))
    with torch.inference_mode():
        normalised = module.bn2(module.conv2(torch.relu(module.bn1(module.conv1(image)))))
    assert 0.8 < float(normalised.std()) < 1.25
    assert abs(float(normalised.mean())) < 0.1


@pytest.mark.parametrize("prefix", ["", "module.", "image."])
@pytest.mark.parametrize("wrapper", [None, "state_dict"])
def test_a_checkpoint_is_taken_over_and_the_model_is_not_synthetic(tmp_path, prefix, wrapper, capsys):
    state = makemodel.build_modules(order(tmp_path, seed=7))["image"].state_dict()
    saved = {f"{prefix}{name}": value for name, value in state.items()}
    text = makemodel.build_modules(order(tmp_path, seed=7))["text"].state_dict()
    saved |= {f"text.{name}" if prefix != "module." else f"module.{name}": value for name, value in text.items()}
    if prefix != "image.":
        saved = {**saved, f"{prefix}optimizer_step": torch.zeros(1)}
    if prefix == "module.":
        # two networks' names in one flat file: fc of the image network and of the text network differ in shape
        saved = {name: value for name, value in saved.items() if not name.startswith("module.fc")}
        saved |= {f"text.{name}": value for name, value in text.items()}
        saved |= {f"image.{name}": value for name, value in state.items()}
    torch.save({wrapper: saved} if wrapper else saved, tmp_path / "weights.pt")
    makemodel.make_model(order(tmp_path / "out", weights=tmp_path / "weights.pt"))
    written = load_file(tmp_path / "out" / "toy-image.safetensors")
    assert all(torch.equal(written[name], value) for name, value in state.items())
    info = json.loads((tmp_path / "out" / "model.json").read_text())
    assert info["is_synthetic"] is False
    assert info["seed"] is None


def checkpoint(path: Path, state: dict) -> Path:
    torch.save(state, path)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state.pop("conv2.weight"), "are missing conv2.weight of network image"),
        (lambda state: state.update({"fc.bias": torch.zeros(11)}), "fc.bias [11] (not [10])"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path, change, said):
    state = makemodel.build_modules(order(tmp_path))["image"].state_dict()
    change(state)
    path = checkpoint(tmp_path / "weights.pt", dict(state))
    with pytest.raises(HarnessError, match="network image") as caught:
        makemodel.make_model(order(tmp_path / "out", weights=path))
    assert said in str(caught.value)
    assert not (tmp_path / "out" / "model.json").exists()


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    torch.save({"weight": Evil()}, tmp_path / "weights.pt")
    with pytest.raises(HarnessError, match="cannot read the weights"):
        makemodel.make_model(order(tmp_path / "out", weights=tmp_path / "weights.pt"))
    assert not (tmp_path / "owned").exists()


def test_a_truncated_checkpoint_is_refused(tmp_path):
    torch.save({"weight": torch.zeros(10_000)}, tmp_path / "weights.pt")
    data = (tmp_path / "weights.pt").read_bytes()
    for suffix in (".pt", ".safetensors"):
        path = tmp_path / f"short{suffix}"
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(HarnessError, match="cannot read the weights"):
            makemodel.make_model(order(tmp_path / "out", weights=path))


def test_a_model_that_does_not_fit_into_memory_is_refused_with_the_size_before_it_is_built(tmp_path):
    with pytest.raises(HarnessError, match=r"needs about \d+\.\d GiB of memory, but \d+\.\d GiB are free"):
        makemodel.build_modules(order(tmp_path, config={"width": 3_000_000}))


def test_a_fitted_model_brings_its_reference_and_facts(tmp_path):
    ordered = order(tmp_path)
    facts = {"reference": {"acc": 99.5}, "license": "Apache-2.0"}
    info = json.loads(makemodel.write_model(makemodel.build_modules(ordered), ordered, facts).read_text())
    assert info["reference"] == {"acc": 99.5}
    assert info["license"] == "Apache-2.0"
    assert info["is_synthetic"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--architecture", "nosuch"], "unknown architecture 'nosuch'; allowed: "),
        (["--architecture", "toy", "--config", "huge"], "no configuration 'huge'; allowed: full, tiny"),
        (["--architecture", "toy", "--config", "{bad"], "the configuration {bad is not a JSON object"),
    ],
)
def test_the_command_line_says_what_is_allowed(tmp_path, words, said, capsys):
    assert makemodel.main([*words, "--output_dir", str(tmp_path)]) == 1
    assert said in capsys.readouterr().err


def test_the_command_line_makes_a_model(tmp_path, capsys):
    assert makemodel.main(["--architecture", "toy", "--config", "tiny", "--output_dir", str(tmp_path)]) == 0
    assert "toy (tiny, onnx)" in capsys.readouterr().out


def test_weights_beyond_a_protobuf_message_lie_beside_the_onnx_file(tmp_path, monkeypatch):
    from crowdperf.models import model_files

    monkeypatch.setattr(model_files, "_LARGEST_ONNX_BYTES", 10)
    makemodel.make_model(order(tmp_path, "onnx"))
    info = json.loads((tmp_path / "model.json").read_text())
    assert info["files"]["image"]["beside"][0]["file"] == "toy-image.onnx.data"
    onnxruntime.InferenceSession(tmp_path / "toy-image.onnx")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".parts") == []
