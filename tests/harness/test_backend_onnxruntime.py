"""The onnxruntime backend: instances and threads give the same answers, states pass through, no silent fallback."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import harness_support
import numpy as np
import onnxruntime
import pytest
from backend_toys import backend_request, toy_on_path
from fake_nvml import FakeCudaDriver, Gpu

from crowdperf.harness.backends.onnxruntime import backend
from crowdperf.harness.backends.onnxruntime_tensorrt import backend as onnxruntime_tensorrt
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.harness.watch import nvml
from crowdperf.models import make_model as makemodel
from crowdperf.models.make_model import ModelRequest

harness_support.need("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    with toy_on_path(tmp_path_factory.mktemp("toy")):
        makemodel.make_model(ModelRequest(architecture="toy", config="tiny", framework="onnx", output_dir=made))
        yield made


def images(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {"image": np.random.default_rng(seed).normal(20, 60, (count, 3, 16, 16)).astype(np.float32)}


def bare(folder: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    return onnxruntime.InferenceSession(folder / "toy-image.onnx").run(["logits"], inputs)[0]


def answers(call, batches: list[dict[str, np.ndarray]]) -> list[np.ndarray]:
    return [call(batch)["logits"].copy() for batch in batches]  # the next call may fill the array again


@pytest.mark.parametrize(("instances", "threads"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_every_instance_answers_as_a_bare_session_does_and_at_the_same_time_as_others(folder, instances, threads):
    request = backend_request("image", folder / "toy-image.onnx", instances=instances, threads=threads)
    opened = backend.open_backend(request)
    calls = [opened.instance(number) for number in range(instances)]
    batches = [images(5, seed) for seed in range(8)]
    with ThreadPoolExecutor(instances) as pool:
        jobs = [pool.submit(answers, call, batches) for call in calls]
        for job in jobs:
            for batch, answer in zip(batches, job.result(), strict=True):
                np.testing.assert_array_equal(answer, bare(folder, batch))
    opened.close()


def test_a_call_of_fixed_sizes_reads_arrays_that_were_filled_again_and_answers_in_arrays_of_its_own(folder):
    call = backend.open_backend(backend_request("image", folder / "toy-image.onnx")).instance(0)
    reused, strided = images(4), np.asfortranarray(images(4)["image"])
    held = []
    for seed in range(4):
        reused["image"][...] = strided[...] = images(4, seed)["image"]
        for inputs in (reused, images(3, seed), {"image": strided}, {"image": strided}, reused, reused):
            held.append(call(inputs)["logits"])
            np.testing.assert_array_equal(held[-1], bare(folder, inputs))
    assert len({id(array) for array in held}) == 4  # the first answer for each number of samples, then one array for it
    held += [call(images(count))["logits"] for count in (6, 2, 4, 6, 2, 4)]
    assert all(np.shares_memory(held[-1], later) for later in held[-3:])  # however many sizes there are
    np.testing.assert_array_equal(held[-1], bare(folder, images(4)))


def test_a_call_whose_answers_fit_its_inputs_never_fills_an_array_that_it_reads():
    same = TensorSpec(name="a", dtype="float32", shape=(4, 8))
    spec = NetworkSpec(name="step", inputs=(same,), outputs=(replace(same, name="b"),))
    assert not backend._can_be_bound(spec)
    assert backend._can_be_bound(replace(spec, outputs=(replace(same, name="b", shape=(4, 9)),)))
    assert not backend._can_be_bound(replace(spec, outputs=(replace(same, name="b", shape=(4, "tokens")),)))


def test_one_session_serves_all_instances_of_one_thread_and_each_of_more_threads_has_its_own(folder):
    path = folder / "toy-image.onnx"
    assert len(backend.open_backend(backend_request("image", path, instances=4))._sessions) == 1
    assert len(backend.open_backend(backend_request("image", path, instances=2, threads=2))._sessions) == 2


def test_the_pools_threads_are_put_on_the_instances_cores_but_for_the_callers():
    options = backend.session_options(3, True, (4, 5, 9))
    assert options.get_session_config_entry("session.intra_op_thread_affinities") == "6;10"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "1"
    assert backend.session_options(1).get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_states_stay_the_runtimes_own_and_go_back_in(folder):
    call = backend.open_backend(backend_request("text", folder / "toy-text.onnx")).instance(0)
    ids = np.arange(6, dtype=np.int64).reshape(2, 3)
    first = call({"ids": ids, "state": np.zeros((2, 12), np.float32)})
    assert isinstance(first["scores"], np.ndarray)
    assert not isinstance(first["new_state"], np.ndarray)
    second = call({"ids": ids, "state": first["new_state"]})
    session = onnxruntime.InferenceSession(folder / "toy-text.onnx")
    expected = session.run(["scores"], {"ids": ids, "state": first["new_state"].numpy()})[0]
    np.testing.assert_array_equal(second["scores"], expected)
    assert not np.allclose(second["scores"], first["scores"])


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "cannot open"), (b"no model at all", "cannot open"), (None, "cannot open")]
)
def test_a_damaged_or_missing_file_is_refused(folder, tmp_path, content, said):
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HarnessError, match=said):
        backend.open_backend(backend_request("image", path))


def test_a_truncated_file_is_refused(folder, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes((folder / "toy-image.onnx").read_bytes()[:-500])
    with pytest.raises(HarnessError, match="cannot open"):
        backend.open_backend(backend_request("image", path))


def test_a_file_of_another_network_is_refused_with_the_names_it_has(folder):
    with pytest.raises(HarnessError, match="has no input image, only: ids, state"):
        backend.open_backend(backend_request("image", folder / "toy-text.onnx"))


def test_on_gpus_an_instance_keeps_its_call_and_sessions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def call(session, network, device):
        made.append((session, device))
        return lambda inputs: device

    monkeypatch.setattr(backend, "_gpu_call", call)
    opened = backend.OnnxRuntimeBackend(["first", "second"], NetworkSpec(name="n", inputs=(), outputs=()), (0, 3))
    calls = [opened.instance(number) for number in range(3)]
    assert [opened.instance(number) for number in range(3)] == calls
    assert made == [("first", ("cuda", 0)), ("second", ("cuda", 3)), ("first", ("cuda", 0))]


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="this build has CUDA")
def test_cuda_is_refused_where_the_build_has_none(folder):
    path = folder / "toy-image.onnx"
    with pytest.raises(HarnessError, match="needs onnxruntime's CUDAExecutionProvider, but this build only has: "):
        backend.open_backend(backend_request("image", path, device="cuda"))
    with pytest.raises(HarnessError, match="needs onnxruntime's TensorrtExecutionProvider"):
        onnxruntime_tensorrt.open_backend(backend_request("image", path, device="cuda"))


@pytest.mark.parametrize(("device", "loads"), [("cuda", ["preload ''", "session"]), ("cpu", ["session"])])
def test_the_cuda_libraries_of_pips_packages_are_loaded_before_the_first_session(folder, monkeypatch, device, loads):
    done = []
    real = onnxruntime.InferenceSession

    def session(path, options, providers):
        done.append("session")
        return real(path, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda directory: done.append(f"preload {directory!r}"))
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    monkeypatch.setattr(backend, "require_provider", lambda found, wanted: None)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [f"{device.upper()}ExecutionProvider"])
    backend.open_backend(backend_request("image", folder / "toy-image.onnx", device=device))
    assert done == loads


def test_a_session_that_fell_back_is_an_error():
    # What onnxruntime-gpu 1.31.1 answered without CUDA libraries (feasibility run of 2026-11-20).
    with pytest.raises(HarnessError, match="fell back to CPUExecutionProvider instead of CUDAExecutionProvider"):
        backend.require_provider(["CPUExecutionProvider"], "CUDAExecutionProvider")
    backend.require_provider(["CUDAExecutionProvider", "CPUExecutionProvider"], "CUDAExecutionProvider")


def test_the_tensorrt_provider_gets_profiles_precision_and_caches(folder, tmp_path):
    request = backend_request("image", folder / "toy-image.onnx", device="cuda", precision="int8", largest_batch=8)
    options = onnxruntime_tensorrt.provider_options(request, 3, tmp_path)
    assert options["device_id"] == "3"
    assert (options["trt_int8_enable"], options["trt_fp16_enable"]) == ("1", "0")
    assert options["trt_profile_min_shapes"] == "image:1x3x16x16"
    assert options["trt_profile_max_shapes"] == "image:8x3x16x16"
    assert options["trt_engine_cache_path"] == str(tmp_path)
    text = backend_request("text", folder / "toy-text.onnx", device="cuda")
    assert "trt_profile_min_shapes" not in onnxruntime_tensorrt.provider_options(text, 0, None)


def test_engines_that_the_tensorrt_provider_keeps_are_of_one_precision_gpu_and_version(folder, tmp_path, monkeypatch):
    """A file and its engines by onnxruntime's names are the same in fp32 and tf32: a run in fp32 took TF32's engine."""
    module = onnxruntime_tensorrt
    monkeypatch.setattr(nvml, "cuda_driver", lambda: FakeCudaDriver([Gpu(0), Gpu(1, compute_capability=(8, 9))], {}))
    monkeypatch.setattr(module.metadata, "version", lambda name: {"tensorrt": "10.9.0.34"}[name])
    request = {name: backend_request("image", None, device="cuda", precision=name) for name in ("fp32", "tf32")}
    wanted = [("fp32", 0, "fp32-sm9.0-tensorrt10.9.0.34"), ("tf32", 0, "tf32-sm9.0-tensorrt10.9.0.34"),
              ("fp32", 1, "fp32-sm8.9-tensorrt10.9.0.34")]  # fmt: skip
    for precision, gpu, name in wanted:
        assert module.cache_folder(request[precision], tmp_path, gpu) == tmp_path / "tensorrt-cache" / name
    assert module.cache_folder(request["fp32"], tmp_path, 2) is None  # no such GPU
    assert module.cache_folder(request["fp32"], tmp_path / "gone", 0) is None


@pytest.mark.parametrize(
    ("precision", "use_tf32", "override"), [("fp32", "0", "0"), ("fp16", "0", "0"), ("tf32", "1", None)]
)
@pytest.mark.parametrize("before", ["1", "0", None])
def test_fp32_is_no_tf32_on_any_provider(folder, monkeypatch, precision, use_tf32, override, before):
    """onnxruntime's CUDA provider takes TF32 where nothing is said, TensorRT's takes it without an option."""
    if before is None:
        monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    else:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", before)
    opened = []
    for module in (backend, onnxruntime_tensorrt):
        monkeypatch.setattr(module, "open_sessions", lambda request, choices: opened.append(choices))
    request = backend_request(
        "image", folder / "toy-image.onnx", device="cuda", gpus=(0, 2), precision=precision
    )  # fmt: skip
    for module in (backend, onnxruntime_tensorrt):
        module.open_backend(request)
        assert os.environ.get("NVIDIA_TF32_OVERRIDE") == override
    cuda = [options for choices in opened for choice in choices for name, options in choice if name.startswith("CUDA")]
    assert cuda == [{"device_id": number, "use_tf32": use_tf32} for number in ("0", "2", "0", "2")]


def test_a_file_whose_tensors_have_other_types_than_the_benchmark_is_refused(folder):
    request = backend_request("image", folder / "toy-image.onnx")
    outputs = (replace(request.network.outputs[0], dtype="float16"),)
    with pytest.raises(HarnessError, match="outputs of other types than the benchmark: logits is float32, not float16"):
        backend.open_backend(replace(request, network=replace(request.network, outputs=outputs)))


def test_a_call_on_a_gpu_has_one_binding_and_gives_states_back(folder):
    """On the processor, which onnxruntime's bindings can stand on as well."""
    session = onnxruntime.InferenceSession(folder / "toy-image.onnx")
    call = backend._gpu_call(session, backend_request("image", None).network, ("cpu", 0))
    for seed, count in enumerate((4, 4, 2, 4)):
        np.testing.assert_array_equal(call(images(count, seed))["logits"], bare(folder, images(count, seed)))
    text = onnxruntime.InferenceSession(folder / "toy-text.onnx")
    call = backend._gpu_call(text, backend_request("text", None).network, ("cpu", 0))
    ids = np.arange(6, dtype=np.int64).reshape(2, 3)
    first = call({"ids": ids, "state": np.zeros((2, 12), np.float32)})
    kept = first["new_state"].numpy().copy()
    call({"ids": ids[:, :2], "state": first["new_state"]})
    np.testing.assert_array_equal(first["new_state"].numpy(), kept)


@pytest.mark.parametrize("chosen", [None, "0"], ids=["by default", "where the user wants telemetry"])
def test_onnxruntime_reports_nothing_and_leaves_no_device_id(tmp_path: Path, chosen: str | None) -> None:
    keys = ("ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "GITHUB_ACTIONS")
    environment = {key: value for key, value in os.environ.items() if key not in keys}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "no_proxy": "*"}
    environment |= {"HTTPS_PROXY": "http://127.0.0.1:9"} | ({"ORT_DISABLE_TELEMETRY": chosen} if chosen else {})
    code = "import crowdperf.harness.backends.onnxruntime.backend"
    subprocess.run([sys.executable, "-c", code], cwd=harness_support.SOURCE, env=environment, check=True)
    assert [path.name for path in tmp_path.rglob("deviceid")] == (["deviceid"] if chosen else [])
