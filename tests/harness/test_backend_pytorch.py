"""The pytorch backend: answers as the module does, on any instance, in fp32 and bf16; refuses what it cannot do."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import harness_support
import numpy as np
import pytest
import torch
from backend_toys import backend_request, toy_on_path

from crowdperf.harness.backends.pytorch import backend
from crowdperf.harness.base import torch_cuda
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.harness.runner import components
from crowdperf.harness.watch import processor
from crowdperf.models import make_model as makemodel
from crowdperf.models.make_model import ModelRequest

harness_support.need("safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    with toy_on_path(tmp_path_factory.mktemp("toy")):
        makemodel.make_model(ModelRequest(architecture="toy", config="tiny", framework="pytorch", output_dir=made))
        yield made


def images(count: int) -> dict[str, np.ndarray]:
    return {"image": np.random.default_rng(0).normal(20, 60, (count, 3, 16, 16)).astype(np.float32)}


def expected(folder, inputs) -> np.ndarray:
    module = backend.build_module(backend_request("image", folder / "toy-image.safetensors"))
    with torch.inference_mode():
        return module(torch.from_numpy(inputs["image"]))[0].numpy()


@pytest.mark.parametrize(("instances", "threads"), [(1, 1), (2, 1), (1, 2)])
def test_every_instance_answers_as_the_module_does(folder, instances, threads):
    request = backend_request("image", folder / "toy-image.safetensors", instances=instances, threads=threads)
    opened = backend.open_backend(request)
    with ThreadPoolExecutor(instances) as pool:
        jobs = [pool.submit(opened.instance(number), images(6)) for number in range(instances)]
        for job in jobs:
            np.testing.assert_allclose(job.result()["logits"], expected(folder, images(6)), atol=1e-5)
    assert opened.versions() == {"torch": torch.__version__, "torch graph": "fused"}
    opened.close()


def test_outputs_are_contiguous_arrays_of_the_declared_type_also_in_bf16(folder):
    request = backend_request("image", folder / "toy-image.safetensors", precision="bf16")
    logits = backend.open_backend(request).instance(0)(images(4))["logits"]
    assert (logits.dtype, logits.flags.c_contiguous) == (np.float32, True)
    reference = expected(folder, images(4))
    assert 0 < np.abs(logits - reference).max() < 0.05 * np.abs(reference).max()


def test_states_stay_tensors_and_go_back_in(folder):
    call = backend.open_backend(backend_request("text", folder / "toy-text.safetensors")).instance(0)
    ids = np.arange(6, dtype=np.int64).reshape(2, 3)
    first = call({"ids": ids, "state": np.zeros((2, 12), np.float32)})
    assert isinstance(first["new_state"], torch.Tensor)
    second = call({"ids": ids, "state": first["new_state"]})
    as_array = call({"ids": ids, "state": first["new_state"].numpy()})
    np.testing.assert_array_equal(second["scores"], as_array["scores"])


def test_a_trace_that_does_not_hold_for_another_batch_is_not_used():
    class PerBatch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 2, 1)

        def forward(self, x):
            return (self.conv(x) * x.shape[0] if x.shape[0] > 2 else self.conv(x),)

    spec = TensorSpec(name="x", dtype="float32", shape=(1, 4, 4))
    network = NetworkSpec(name="n", inputs=(spec,), outputs=(TensorSpec(name="y", dtype="float32", shape=(2, 4, 4)),))
    module = PerBatch().eval().requires_grad_(False)
    assert backend.fused(module, network) is module
    plain = torch.nn.Conv2d(1, 2, 1).eval().requires_grad_(False)
    assert backend.fused(plain, network) is not plain


def test_read_only_samples_are_taken_without_a_word(folder, recwarn):
    inputs = images(2)
    inputs["image"].flags.writeable = False
    backend.open_backend(backend_request("image", folder / "toy-image.safetensors")).instance(0)(inputs)
    assert not list(recwarn)


def test_bf16_without_amx_is_told(folder, monkeypatch, capsys):
    monkeypatch.setattr(backend, "has_bf16_matmul", lambda: False)
    backend.open_backend(backend_request("image", folder / "toy-image.safetensors", precision="bf16"))
    assert "no AMX, so bf16 is slower than fp32" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"precision": "fp16"}, "does not support fp16 on the CPU"),
        ({"config": {}}, "no config to build the network with"),
        ({"config": {"width": 16}}, "does not match benchmarks/toy/network.py"),
        ({"architecture": "nosuch"}, "unknown architecture 'nosuch'; allowed: "),
    ],
)
def test_what_it_cannot_do_is_refused_with_what_it_can(folder, changes, said):
    request = backend_request("image", folder / "toy-image.safetensors", **changes)
    with pytest.raises(HarnessError) as caught:
        backend.open_backend(request)
    assert said in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no weights"])
def test_damaged_weights_are_refused(folder, tmp_path, content):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(HarnessError, match="cannot read the weights"):
        backend.open_backend(backend_request("image", path))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_an_error_and_no_fallback(folder):
    request = backend_request("image", folder / "toy-image.safetensors", device="cuda", gpus=(0, 2))
    with pytest.raises(HarnessError, match=r"sees 0 GPUs; requested: 0, 2"):
        backend.open_backend(request)


@pytest.mark.parametrize(
    ("largest", "count", "sizes", "padded"),
    [(1, 1, (1,), 1), (8, 5, (1, 2, 4, 8), 8), (12, 9, (1, 2, 4, 8, 12), 12), (12, 13, (1, 2, 4, 8, 12), 13)],
)
def test_a_batch_is_padded_to_the_next_captured_size(largest, count, sizes, padded):
    assert torch_cuda.graph_sizes(largest) == sizes
    assert torch_cuda.padded_size(count, sizes) == padded


def test_fixed_shapes_are_captured_but_for_networks_that_only_make_states():
    fixed = TensorSpec(name="x", dtype="float32", shape=(3,))
    free = TensorSpec(name="x", dtype="float32", shape=("tokens",))
    state = TensorSpec(name="x", dtype="float32", shape=(3,), is_state=True)
    for given, made, can in (
        (fixed, fixed, True),
        (free, fixed, False),
        (state, fixed, True),  # the last of a loop
        (state, state, True),  # a step of a loop
        (fixed, state, False),  # what comes before it
    ):
        assert torch_cuda.is_capturable(NetworkSpec(name="n", inputs=(given,), outputs=(made,))) is can


def test_the_processors_features_are_read():
    assert processor.flags_in("processor: 0\nflags\t\t: fpu avx512_vnni\nflags : x") == {"fpu", "avx512_vnni"}
    assert processor.flags_in("") == frozenset()


def test_weights_that_are_read_to_a_device_are_those_that_are_copied(folder):
    request = backend_request("image", folder / "toy-image.safetensors")
    there = backend.build_module(request, torch.device("cpu"))
    for (name, one), (_, other) in zip(
        there.state_dict().items(), backend.build_module(request).state_dict().items(), strict=True
    ):
        assert torch.equal(one, other), name
    assert torch.nn.Linear(2, 2).weight.device.type == "cpu"  # modules elsewhere have memory again


def test_a_network_that_overflows_in_fp16_computes_in_fp32():
    from crowdperf.benchmarks.stable_diffusion_xl.model import _FULL, _networks

    networks = {one.name: one for one in _networks(_FULL)}
    found = {name: [one.precision_in(asked) for asked in ("fp32", "fp16", "bf16")] for name, one in networks.items()}
    assert found["image"] == ["fp32", "fp32", "bf16"]
    assert found["texts"] == found["step"] == ["fp32", "fp16", "bf16"]


def test_a_run_opens_each_network_in_the_type_that_it_can_compute_in(folder):
    from crowdperf.benchmarks.stable_diffusion_xl.model import _FULL, _networks

    parts = SimpleNamespace(
        model=SimpleNamespace(networks=_networks(_FULL)),
        facts=SimpleNamespace(files={}),
        backend=SimpleNamespace(open_backend=lambda asked: (asked.network.name, asked.precision)),
        config=SimpleNamespace(precision="fp16"),
    )
    opened = dict(components._open_backends(parts, backend_request("image", None)))
    assert opened == {"texts": "fp16", "step": "fp16", "image": "fp32"}, "the decoder overflows: black pictures"
