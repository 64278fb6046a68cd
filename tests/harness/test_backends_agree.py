"""PyTorch, onnxruntime and OpenVINO give the same answers on every architecture, seen through the seam that a run uses;
and an answer does not depend on the batch it came in, nor on the instance.

Tolerance: all compute in float32, but add in another order. The worst difference was 6.3e-6 of the tensor's greatest
magnitude (ssd_mobilenet, tiny, measured 2026-11-21; OpenVINO 2026.4.1: 7.2e-6, unet3d_brats, 2026-11-23); 1e-4 leaves
room for other processors' kernels.
"""

from dataclasses import replace
from pathlib import Path

import harness_support
import numpy as np
import openvino
import pytest

from crowdperf import benchmarks
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.runner.registry import load_backend
from crowdperf.models import make_model
from crowdperf.models.engines import build
from crowdperf.models.engines.task import Task
from crowdperf.models.make_model import ModelRequest
from crowdperf.rules.benchmarks import RECORDS

harness_support.need("safetensors", "onnx", "onnxruntime")

BENCHMARKS = Path(benchmarks.__file__).parent
ARCHITECTURES = sorted(path.parent.name for path in BENCHMARKS.glob("*/network.py"))
LARGE = {"rgat", "stable_diffusion_xl", "whisper", "yolo"}
"""Networks whose many layers take seconds to export: with --full."""
RELATIVE_TOLERANCE = 1e-4
SWAPPED_SHARE = 0.01
FRAMEWORKS = {"onnx": "onnxruntime", "pytorch": "pytorch", "openvino": "openvino"}
"""The backend of each; OpenVINO's blobs are compiled from the ONNX files."""
OTHERS = ("pytorch", "openvino")


class Networks:
    """The networks of one architecture, tiny configuration, opened by all backends."""

    def __init__(self, name: str, folder: Path) -> None:
        self.order = ModelRequest(architecture=name, config="tiny", framework="onnx", output_dir=folder)
        self.specs = make_model.network_specs(self.order)
        modules = make_model.build_modules(self.order)
        self.opened = {}
        for framework in FRAMEWORKS:
            facts = self.made(framework, modules)
            for spec in self.specs:
                request = self.request(spec, facts.files[spec.name].path)
                self.opened[framework, spec.name] = load_backend(FRAMEWORKS[framework]).open_backend(request)

    def made(self, framework: str, modules) -> ModelFacts:
        """The files of a framework, each in a folder of its own."""
        folder = self.order.output_dir / framework
        if framework == "openvino":
            name, source = RECORDS[self.order.architecture].names[0], self.order.output_dir / "onnx" / "model.json"
            task = Task(model=name, model_info=source, output_dir=folder, library="openvino")
            return read_model_facts(None, build.build(task))
        folder.mkdir()
        order = replace(self.order, framework=framework, output_dir=folder)
        return read_model_facts(None, make_model.write_model(modules, order))

    def request(self, spec, path: Path) -> BackendRequest:
        return BackendRequest(
            network=spec, path=path, architecture=self.order.architecture, config=self.order.values, precision="fp32",
            device="cpu", gpus=(), instances=2, threads=1, cores=(), is_spinning=False, largest_batch=4,
        )  # fmt: skip

    def inputs(self, spec, count: int) -> dict[str, np.ndarray]:
        tensors = make_model.example_inputs(self.order, spec, count)
        return {tensor.name: value.numpy() for tensor, value in zip(spec.inputs, tensors, strict=True)}

    def answers(self, framework: str, spec, inputs: dict[str, np.ndarray], number: int = 0) -> dict[str, np.ndarray]:
        found = self.opened[framework, spec.name].instance(number)(inputs)
        return {name: as_array(value) for name, value in found.items()}


def test_the_architectures_are_found():
    assert {"bert", "gptj", "resnet50", "rnnt"} < set(ARCHITECTURES)


def as_array(value) -> np.ndarray:
    """A copy of an answer: the next call may overwrite it."""
    if isinstance(value, openvino.Tensor):
        return value.data.copy()
    return np.array(value if isinstance(value, np.ndarray) else value.numpy())


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.full] if name in LARGE else []) for name in ARCHITECTURES],
)
def networks(request, tmp_path_factory) -> Networks:
    return Networks(request.param, tmp_path_factory.mktemp(request.param))


def assert_near(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """A network that chooses (whole numbers among its outputs: indices) may choose nearly equal values in another
    order: then a hundredth of the elements may differ."""
    assert found.keys() == expected.keys()
    chooses = any(value.dtype.kind != "f" for value in expected.values())
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        assert np.isfinite(value).all(), f"{name} is not finite"
        is_float = value.dtype.kind == "f"
        limit = RELATIVE_TOLERANCE * float(np.abs(value).max() or 1.0) if is_float else 0
        is_off = np.abs(found[name] - value) > limit
        assert is_off.mean() <= (SWAPPED_SHARE if chooses else 0.0), f"{name}: {int(is_off.sum())} elements differ"


@pytest.mark.parametrize("framework", OTHERS)
def test_all_backends_give_the_same_answers_of_the_declared_form(networks, framework):
    for spec in networks.specs:
        inputs = networks.inputs(spec, 3)
        expected = networks.answers("onnx", spec, inputs)
        assert_near(networks.answers(framework, spec, inputs), expected)
        for tensor in spec.outputs:
            assert expected[tensor.name].dtype == tensor.dtype
            assert expected[tensor.name].ndim == 1 + len(tensor.shape)


def test_activations_are_alive_with_random_weights(networks):
    for spec in networks.specs:
        floats = [value for value in networks.answers("onnx", spec, networks.inputs(spec, 3)).values()
                  if value.dtype.kind == "f"]  # fmt: skip
        if floats:
            assert max(float(np.abs(value).max()) for value in floats) > 1e-6
            assert max(float(np.abs(value).max()) for value in floats) < 1e6


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_answer_depends_neither_on_its_batch_nor_on_the_instance(networks, framework):
    for spec in networks.specs:
        inputs = networks.inputs(spec, 3)
        together = networks.answers(framework, spec, inputs, 1)
        alone = [
            networks.answers(framework, spec, {name: value[row : row + 1] for name, value in inputs.items()}, 0)
            for row in range(len(next(iter(inputs.values()))))  # an architecture may give fewer examples
        ]
        assert_near({name: np.concatenate([row[name] for row in alone]) for name in together}, together)
