"""Engines: built with TensorRT-RTX where it is installed; what the tensorrt backend refuses; profiles and sizes."""

import importlib
import importlib.util
import json
from types import SimpleNamespace

import onnx
import pytest
import torch
from backend_toys import backend_request, toy_on_path

from crowdperf.harness.backends.tensorrt import backend
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.runner import registry
from crowdperf.models import make_model as makemodel
from crowdperf.models import quantize
from crowdperf.models.engines import build, with_tensorrt
from crowdperf.models.engines.task import Task, parse_sizes
from crowdperf.models.make_model import ModelRequest

HAS_RTX = importlib.util.find_spec("tensorrt_rtx") is not None
HAS_TENSORRT = importlib.util.find_spec("tensorrt") is not None
SIZES = {"tokens": (1, 8, 32)}


@pytest.fixture(scope="module")
def model_info(tmp_path_factory):
    with toy_on_path(tmp_path_factory.mktemp("toy")), pytest.MonkeyPatch.context() as patch:
        # The registry lists the files of the harness's own folder.
        patch.setattr(
            registry, "load_model", lambda name: importlib.import_module(f"crowdperf.benchmarks.{name}.model")
        )
        folder = tmp_path_factory.mktemp("model")
        yield makemodel.make_model(ModelRequest(architecture="toy", config="tiny", framework="onnx", output_dir=folder))


def task(model_info, folder, **changes) -> Task:
    values = {"model": "toy", "model_info": model_info, "output_dir": folder, "library": "tensorrt_rtx"}
    return Task(**{**values, "largest_batch": 4, "sizes": SIZES, **changes})


def test_profiles_reach_from_one_sample_to_the_largest_batch_and_through_the_bounds_of_named_sizes(model_info):
    image, text = (backend_request(name, None).network for name in ("image", "text"))
    assert with_tensorrt.profile_shapes(image, 4, {}) == {"image": [[1, 3, 16, 16], [4, 3, 16, 16], [4, 3, 16, 16]]}
    assert with_tensorrt.profile_shapes(text, 2, SIZES) == {
        "ids": [[1, 1], [2, 8], [2, 32]],
        "state": [[1, 12], [2, 12], [2, 12]],
    }
    assert with_tensorrt.profile_shapes(text, 1, SIZES)["ids"] == [[1, 1], [1, 8], [1, 32]]
    with pytest.raises(HarnessError, match="network text has sizes without bounds: tokens"):
        with_tensorrt.profile_shapes(text, 2, {})


def test_single_samples_have_a_profile_of_their_own_behind_that_of_the_largest_batch():
    """The tensorrt backend takes the second for batch 1."""
    assert with_tensorrt.profile_batches(128) == [128, 1]
    assert with_tensorrt.profile_batches(1) == [1]


@pytest.mark.parametrize("text", ["tokens", "tokens=1:2", "tokens=3:2:1", "tokens=0:1:2", "=1:2:3", "tokens=a:b:c"])
def test_bounds_that_make_no_sense_are_refused(text):
    with pytest.raises(HarnessError, match="NAME=SMALLEST:TUNED_FOR:LARGEST"):
        parse_sizes([text])


def test_bounds_are_read():
    assert parse_sizes(["tokens=1:64:384", "boxes=2:2:2"]) == {"tokens": (1, 64, 384), "boxes": (2, 2, 2)}


@pytest.mark.skipif(not HAS_RTX, reason="tensorrt_rtx is not installed")
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_engines_are_built_without_a_gpu_and_described(model_info, tmp_path, monkeypatch, precision):
    info, profiles = model_info, []
    monkeypatch.setattr(
        with_tensorrt, "_timing_cache", lambda config, _: profiles.append(config.num_optimization_profiles)
    )
    if precision == "fp16":
        info = quantize.quantize(quantize.Task(model_info=model_info, output_dir=tmp_path / "fp16", precision="fp16"))
    made_of = {"precision": "tf32"} if precision == "tf32" else {}
    facts = read_model_facts(None, build.build(task(info, tmp_path / "out", **made_of)))
    assert (facts.framework, facts.precision, facts.is_synthetic) == ("tensorrt", precision, True)
    assert all(file.path.name.endswith(".rtx.engine") and file.path.stat().st_size > 0 for file in facts.files.values())
    content = json.loads((tmp_path / "out" / "model.json").read_text())
    assert content["engine"]["library"] == "tensorrt_rtx"
    assert content["engine"]["sizes"] == {"tokens": [1, 8, 32]}
    assert content["engine"]["profile_batches"] == [4, 1]
    assert profiles == [2, 2]  # of each of the two networks


@pytest.mark.skipif(not HAS_RTX, reason="tensorrt_rtx is not installed")
def test_int8_between_fp16_layers_is_built(model_info, tmp_path):
    source = read_model_facts(None, model_info).files["image"].path
    graph = onnx.load(str(source)).graph
    names = ["image", *(name for node in graph.node for name in node.output)]
    path = tmp_path / "image.onnx"
    quantize._write_static(onnx.load(str(source)), dict.fromkeys(names, (-4.0, 4.0)), "tensorrt_fp16", path)
    types = {value.data_type for value in onnx.load(str(path)).graph.initializer}
    assert {onnx.TensorProto.INT8, onnx.TensorProto.FLOAT16} <= types and onnx.TensorProto.FLOAT not in types
    network = backend_request("image", None).network
    assert with_tensorrt.build_network(task(model_info, tmp_path), network, path, "int8")


@pytest.mark.skipif(not HAS_RTX, reason="tensorrt_rtx is not installed")
def test_a_gpu_that_the_library_cannot_name_is_refused_with_those_it_can(model_info, tmp_path):
    with pytest.raises(HarnessError, match=r"cannot build for SM90, only for: .*SM89") as caught:
        build.build(task(model_info, tmp_path, compute_capability="SM90"))
    assert "on a machine with that GPU" in caught.value.hint


@pytest.mark.skipif(not HAS_RTX, reason="tensorrt_rtx is not installed")
def test_a_damaged_onnx_file_is_refused_and_no_engine_is_left(model_info, tmp_path, capsys):
    network = backend_request("image", None).network
    (tmp_path / "x.onnx").write_bytes(b"no model")
    with pytest.raises(HarnessError, match="cannot read"):
        with_tensorrt.build_network(task(model_info, tmp_path), network, tmp_path / "x.onnx", "fp32")
    assert not list(tmp_path.glob("*.engine"))


@pytest.mark.skipif(HAS_TENSORRT, reason="tensorrt is installed")
def test_a_missing_library_is_an_error_with_the_command_that_gets_it(model_info, tmp_path):
    with pytest.raises(HarnessError, match="tensorrt cannot be loaded") as caught:
        build.build(task(model_info, tmp_path, library="tensorrt"))
    assert "get,generic-python-lib,_tensorrt " in caught.value.hint


@pytest.mark.skipif(not HAS_RTX or torch.cuda.is_available(), reason="needs tensorrt_rtx and no GPU")
def test_without_a_gpu_the_backend_refuses_and_does_not_fall_back(model_info, tmp_path):
    facts = read_model_facts(None, build.build(task(model_info, tmp_path)))
    request = backend_request("image", facts.files["image"].path, device="cuda", gpus=(1,))
    with pytest.raises(HarnessError, match=r"sees 0 GPUs; requested: 1"):
        backend.open_backend(request)


class FakeConfig:
    def __init__(self) -> None:
        self.set, self.cleared = [], []
        self.set_flag, self.clear_flag = self.set.append, self.cleared.append


@pytest.mark.parametrize(("precision", "is_set"), [("fp32", False), ("tf32", True), ("fp16", False), ("int8", False)])
def test_an_engine_may_multiply_in_tf32_only_where_that_is_its_precision(precision, is_set, tmp_path):
    config, library = FakeConfig(), SimpleNamespace(BuilderFlag=SimpleNamespace(TF32="TF32"))
    with_tensorrt._configure(library, config, task(tmp_path, tmp_path), precision)
    assert (config.set, config.cleared) == ((["TF32"], []) if is_set else ([], ["TF32"]))


@pytest.mark.parametrize(
    ("version", "flags", "wanted"),
    [("10.16.1", {"STRONGLY_TYPED": 1}, 2), ("11.4.0", {"STRONGLY_TYPED": 1}, 2), ("11.9.0", {}, 0)],
)
def test_networks_are_strongly_typed_with_and_without_the_flag(version, flags, wanted):
    library = SimpleNamespace(
        __name__="tensorrt", __version__=version, NetworkDefinitionCreationFlag=SimpleNamespace(**flags)
    )
    assert with_tensorrt._typed(library) == wanted


def test_a_tensorrt_that_would_choose_the_precision_itself_is_refused():
    library = SimpleNamespace(
        __name__="tensorrt", __version__="8.6.1", NetworkDefinitionCreationFlag=SimpleNamespace(EXPLICIT_BATCH=0)
    )
    with pytest.raises(HarnessError, match=r"tensorrt 8\.6\.1 has no strongly typed networks"):
        with_tensorrt._typed(library)
