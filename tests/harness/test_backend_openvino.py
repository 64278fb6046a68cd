"""Blobs of OpenVINO: compiled and described, imported and refused; instances, threads and states of the backend."""

import importlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from backend_toys import backend_request, toy_on_path

from crowdperf.harness.backends.openvino import backend, library
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.runner import registry
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models import make_model as makemodel
from crowdperf.models import quantize
from crowdperf.models.engines import build
from crowdperf.models.engines.task import Task
from crowdperf.models.make_model import ModelRequest
from crowdperf.rules.backends import BACKENDS

HAS_BF16 = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@pytest.fixture(scope="module")
def model_info(tmp_path_factory):
    with toy_on_path(tmp_path_factory.mktemp("toy")), pytest.MonkeyPatch.context() as patch:
        # The registry lists the files of the harness's own folder.
        patch.setattr(
            registry, "load_model", lambda name: importlib.import_module(f"crowdperf.benchmarks.{name}.model")
        )
        folder = tmp_path_factory.mktemp("model")
        made = makemodel.make_model(
            ModelRequest(architecture="toy", config="tiny", framework="onnx", output_dir=folder)
        )
        (folder / "vocab.json").write_text("{}")
        (folder / "entry.json").write_text("{}")  # of the cache, where the model lies in an entry
        yield made


def built(model_info: Path, folder: Path, **changes):
    task = Task(model="toy", model_info=model_info, output_dir=folder, library="openvino", **changes)
    return read_model_facts(None, build.build(task))


@pytest.fixture(scope="module")
def facts(model_info, tmp_path_factory):
    return built(model_info, tmp_path_factory.mktemp("blobs"))


def opened(facts, network: str, **changes):
    request = backend_request(network, facts.files[network].path, **{"engine": facts.engine, **changes})
    return backend.open_backend(request)


def images(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {"image": np.random.default_rng(seed).normal(20, 60, (count, 3, 16, 16)).astype(np.float32)}


def bare(model_info: Path, network: str, output: str, inputs) -> np.ndarray:
    return onnxruntime.InferenceSession(model_info.parent / f"toy-{network}.onnx").run([output], inputs)[0]


# --- what is built ---


def test_blobs_are_described_with_what_they_are_bound_to_and_files_beside_come_along(facts):
    assert (facts.framework, facts.precision, facts.is_synthetic) == ("openvino", "fp32", True)
    assert all(file.path.suffix == ".blob" and file.sha256 == file_sha256(file.path) for file in facts.files.values())
    assert facts.engine["built_for"]["openvino"] == openvino.get_version()
    assert facts.engine["library"] == "openvino"
    assert json.loads((facts.folder / "model.json").read_text())["beside"] == ["vocab.json"]
    assert (facts.folder / "vocab.json").read_text() == "{}"
    assert not (facts.folder / "entry.json").exists()


def test_a_precision_that_files_cannot_have_is_refused_before_anything_is_compiled(model_info, tmp_path):
    with pytest.raises(HarnessError, match="the model's files are fp32, but int8 was requested") as caught:
        built(model_info, tmp_path, precision="int8")
    assert "quantize,ml-model,_int8" in caught.value.hint
    with pytest.raises(HarnessError, match="OpenVINO does not support fp16 on the CPU; supported: fp32, bf16, int8"):
        built(model_info, tmp_path, precision="fp16")
    assert not list(tmp_path.iterdir())


def test_dynamic_int8_is_refused_because_openvino_computes_it_in_fp32(model_info, tmp_path):
    task = quantize.Task(model_info=model_info, output_dir=tmp_path / "int8", precision="int8", method="dynamic")
    with pytest.raises(HarnessError, match="OpenVINO runs no layer of this network in 8 bits") as caught:
        built(quantize.quantize(task), tmp_path / "blobs")
    assert "_int8,_static" in caught.value.hint


def test_static_int8_runs_in_8_bits(model_info, tmp_path):
    source = onnx.load(read_model_facts(None, model_info).files["image"].path)
    ranges = {name: (-300.0, 300.0) for node in source.graph.node for name in node.output} | {"image": (-300.0, 300.0)}
    path = tmp_path / "int8.onnx"
    quantize._write_static(quantize.without_weight_copies(source), ranges, "cpu", path)
    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": openvino.Type.f32})
    assert library.eight_bit_layers(compiled) > 0
    library.require_precision(compiled, "int8")


# --- what is imported ---


@pytest.mark.parametrize(("instances", "threads"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_every_instance_answers_as_onnxruntime_does_and_at_the_same_time_as_others(
    facts, model_info, instances, threads
):
    found = opened(facts, "image", instances=instances, threads=threads)
    calls = [found.instance(number) for number in range(instances)]
    batches = [images(5, seed) for seed in range(4 * instances)]
    with ThreadPoolExecutor(instances) as pool:
        for start in range(0, len(batches), instances):
            turn = batches[start : start + instances]
            jobs = [pool.submit(call, batch) for call, batch in zip(calls, turn, strict=True)]
            for batch, job in zip(turn, jobs, strict=True):
                expected = bare(model_info, "image", "logits", batch)
                np.testing.assert_allclose(job.result()["logits"], expected, rtol=1e-4, atol=1e-4)
    found.close()


def test_outputs_stay_until_the_instances_next_call_and_read_only_inputs_are_taken(facts, model_info):
    found = opened(facts, "image", instances=2)
    first, second = found.instance(0), found.instance(1)
    batch = images(2)
    batch["image"].setflags(write=False)
    answer = first(batch)["logits"]
    second(images(2, 1))
    np.testing.assert_allclose(answer, bare(model_info, "image", "logits", batch), rtol=1e-4, atol=1e-4)


def test_states_stay_openvinos_own_and_go_back_in_for_as_long_as_a_sequence_is(facts, model_info):
    call = opened(facts, "text").instance(0)
    ids = np.arange(6, dtype=np.int64).reshape(2, 3)
    state, expected = np.zeros((2, 12), np.float32), np.zeros((2, 12), np.float32)
    for _ in range(5):
        answer = call({"ids": ids, "state": state})
        assert isinstance(answer["scores"], np.ndarray)
        assert isinstance(answer["new_state"], openvino.Tensor)
        scores = bare(model_info, "text", "scores", {"ids": ids, "state": expected})
        np.testing.assert_allclose(answer["scores"], scores, rtol=1e-4, atol=1e-4)
        expected = bare(model_info, "text", "new_state", {"ids": ids, "state": expected})
        state = answer["new_state"]
        np.testing.assert_allclose(state.data, expected, rtol=1e-4, atol=1e-4)


def test_streams_threads_and_precision_are_those_of_the_request(facts):
    request = backend_request("image", facts.files["image"].path, instances=2, threads=2, cores=((0, 1), (2, 3)))
    assert backend.settings(request, physical=8) == {
        "INFERENCE_PRECISION_HINT": openvino.Type.f32, "NUM_STREAMS": 2, "INFERENCE_NUM_THREADS": 4,
        "ENABLE_CPU_PINNING": True, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    }  # fmt: skip
    assert backend.settings(request, physical=2)["ENABLE_HYPER_THREADING"] is True
    compiled = opened(facts, "image", instances=2)._compiled
    assert compiled.get_property("NUM_STREAMS") == 2
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == openvino.Type.f32
    assert compiled.get_property("ENABLE_CPU_PINNING") is False


def test_the_versions_say_that_the_blob_was_imported(facts):
    versions = opened(facts, "image").versions()
    assert versions["openvino"] == openvino.get_version()
    assert versions["openvino blob image"].startswith("imported in 0.")
    assert versions["openvino blob image"].endswith("not compiled in the run")


@pytest.mark.skipif(not HAS_BF16, reason="this CPU has no bf16")
def test_bf16_is_computed_in_bf16_and_only_where_it_was_asked_for(model_info, tmp_path):
    found = built(model_info, tmp_path, precision="bf16")
    assert found.precision == "bf16"
    call = opened(found, "image", precision="bf16")
    assert call._compiled.get_property("INFERENCE_PRECISION_HINT") == openvino.Type.bf16
    answer, expected = call.instance(0)(images(4))["logits"], bare(model_info, "image", "logits", images(4))
    assert 0 < np.abs(answer - expected).max() < 0.05 * np.abs(expected).max()


# --- what is refused ---


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"openvino": "2025.1.0-1"}, "the blob was built by OpenVINO 2025.1.0-1, but "),
        ({"instruction_sets": ["avx2"]}, r"other instruction sets \(only "),
    ],
)
def test_a_blob_of_another_version_or_processor_is_refused_with_the_command_that_makes_it_again(facts, change, said):
    engine = {**facts.engine, "built_for": {**facts.engine["built_for"], **change}}
    with pytest.raises(HarnessError, match=said) as caught:
        opened(facts, "image", engine=engine)
    assert "generate,engine,_openvino" in caught.value.hint


def test_an_engine_that_says_nothing_of_where_it_is_from_is_refused(facts):
    with pytest.raises(HarnessError, match="does not record what its blob was built with"):
        opened(facts, "image", engine={"library": "openvino"})


@pytest.mark.parametrize("content", [b"", b"no blob at all", b"cut", None])
def test_a_damaged_or_missing_blob_is_refused(facts, tmp_path, content):
    path = tmp_path / "x.blob"
    whole = facts.files["image"].path.read_bytes()
    if content is not None:
        path.write_bytes(whole[: len(whole) // 2] if content == b"cut" else content)
    with pytest.raises(HarnessError, match=r"cannot (import|read) "):
        backend.open_backend(backend_request("image", path))


def test_a_blob_of_another_network_is_refused_with_the_names_it_has(facts):
    with pytest.raises(HarnessError, match="has no input image, only: ids, state"):
        backend.open_backend(backend_request("image", facts.files["text"].path))


def test_other_precisions_are_refused(facts):
    with pytest.raises(HarnessError, match="OpenVINO does not support fp16"):
        opened(facts, "image", precision="fp16")
    with pytest.raises(HarnessError, match="runs no layer of this network in 8 bits"):
        opened(facts, "image", precision="int8")
    assert (BACKENDS["openvino"].devices, BACKENDS["openvino"].engine) == (("cpu",), "openvino")
