"""calibrate-ml-model, quantize-ml-model, generate-engine: their hooks; ONNX files are read without the package onnx."""

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import RECIPES, load_recipe, recipe_meta

from crowdperf.data.errors import DataError
from crowdperf.data.onnx_graph import operators_in

calibrate = load_recipe("calibrate-ml-model")
quantize = load_recipe("quantize-ml-model")
engine = load_recipe("generate-engine")
request = load_recipe("get-mlperf-model-request")


def field(number: int, content: bytes) -> bytes:
    """A protobuf field of bytes; lengths above 127 take two bytes."""
    length = len(content)
    size = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return bytes([number << 3 | 2]) + size + content


def onnx_file(path: Path, *types: str) -> Path:
    """An ONNX file with these operators and a weight, whose bytes look like an operator."""
    nodes = b"".join(field(1, field(1, b"in") + field(4, name.encode())) for name in types)
    weight = field(5, field(9, field(1, field(4, b"Conv")) * 20))
    path.write_bytes(bytes([8, 9]) + field(2, b"test") + field(7, weight + nodes + field(2, b"graph")))
    return path


def model_json(folder: Path, *types: str, **changes: Any) -> Path:
    file = onnx_file(folder / "net.onnx", *types)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    info = {"format": 1, "name": "net", "framework": "onnx", "precision": "fp32",
            "files": {"model": {"file": file.name, "sha256": digest}}}  # fmt: skip
    (folder / "model.json").write_text(json.dumps({**info, **changes}))
    return folder / "model.json"


# --- operators of an ONNX file ---


@pytest.mark.parametrize("types", [("Conv", "Relu"), ("MatMul",), ("MatMul", "Add", "MatMul", "LayerNormalization")])
def test_the_operators_of_the_graph_are_read_and_weights_are_not(tmp_path, types):
    assert operators_in(onnx_file(tmp_path / "x.onnx", *types)) == set(types)


def test_a_file_without_operators_is_refused(tmp_path):
    with pytest.raises(DataError, match="its graph has no operators"):
        operators_in(onnx_file(tmp_path / "x.onnx"))


# --- quantize-ml-model ---


@pytest.mark.parametrize(
    ("types", "precision", "method", "needs"),
    [
        (("Conv", "Relu"), "int8", "auto", "yes"),
        (("ConvTranspose",), "int8", "auto", "yes"),
        (("MatMul", "Add"), "int8", "auto", "no"),
        (("MatMul", "Add"), "int8", "static", "yes"),
        (("Conv", "Relu"), "int8", "dynamic", "no"),
        (("Conv", "Relu"), "fp16", "auto", "no"),
    ],
)
def test_a_calibration_is_asked_for_where_ranges_must_be_known(inside, hook_input, types, precision, method, needs):
    info = model_json(inside, *types)
    i = hook_input(
        {"CM_ML_MODEL_INFO_FILE": str(info), "CM_QUANTIZE_PRECISION": precision, "CM_QUANTIZE_METHOD": method}
    )
    assert quantize.preprocess(i) == {"return": 0}
    assert i["env"]["CM_QUANTIZE_NEEDS_CALIBRATION"] == needs
    assert (inside / "arguments.txt").read_text().splitlines() == [
        f"--model_info={info}", f"--output_dir={inside}", f"--precision={precision}", f"--method={method}",
        "--target=cpu",
    ]  # fmt: skip
    assert i["env"]["CM_ML_MODEL_QUANTIZED_FROM_SHA256"] == hashlib.sha256(info.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"framework": "pytorch"}, "a fp32 model for pytorch, but an fp32 ONNX model is needed"),
        ({"precision": "int8"}, "a int8 model for onnx"),
        ({"files": []}, "cannot be used"),
        ({"files": {"model": {"file": "gone.onnx"}}}, "gone.onnx"),
        ({"files": {"model": {"file": "model.json"}}}, "model.json cannot be used as an ONNX file"),
    ],
)
def test_a_model_that_cannot_be_quantised_is_refused_with_a_hint(inside, hook_input, changes, said):
    info = model_json(inside, "Conv", **changes)
    env = {"CM_ML_MODEL_INFO_FILE": str(info), "CM_QUANTIZE_PRECISION": "int8", "CM_QUANTIZE_METHOD": "auto"}
    answer = quantize.preprocess(hook_input(env))
    assert answer["return"] == 1
    assert said in answer["error"]
    assert "hint: " in answer["error"]


def test_without_a_model_the_hint_says_how_one_is_given(inside, hook_input):
    assert "--model_info=model.json" in quantize.preprocess(hook_input())["error"]
    assert "--model_info=model.json" in engine.preprocess(hook_input())["error"]
    gone = quantize.preprocess(hook_input({"CM_ML_MODEL_INFO_FILE": "/gone/model.json"}))
    assert "there is no /gone/model.json" in gone["error"]
    answer = calibrate.preprocess(hook_input({"CM_MLPERF_MODEL": "resnet50"}))
    assert "--model_info=model.json" in answer["error"]
    assert "--dataset=FOLDER" in answer["error"]
    assert "missing: --model=NAME" not in answer["error"]


# --- calibrate-ml-model ---


def test_values_become_arguments_one_in_each_line_whatever_they_hold(inside, hook_input):
    info = model_json(inside, "Conv")
    env = {
        "CM_MLPERF_MODEL": "resnet50", "CM_ML_MODEL_INFO_FILE": str(info), "CM_DATASET_PATH": "/data/$(touch x) y",
        "CM_CALIBRATION_METHOD": "entropy", "CM_CALIBRATION_SAMPLE_COUNT": "8",
    }  # fmt: skip
    i = hook_input(env)
    assert calibrate.preprocess(i) == {"return": 0}
    assert (inside / "arguments.txt").read_text().splitlines() == [
        "--model=resnet50", f"--model_info={info}", "--dataset=/data/$(touch x) y", "--method=entropy", "--count=8",
        f"--output={inside / 'calibration.json'}",
    ]  # fmt: skip


def test_the_calibration_is_exported_and_declared(inside, hook_input):
    made_with = {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "ab", "is_official": True}
    provenance = {"sample_ids": [1, 2, 3], "calibration": made_with}
    content = {"format": 2, "method": "minmax", "networks": {}, "provenance": provenance}
    (inside / "calibration.json").write_text(json.dumps(content))
    i = hook_input({"CM_ML_MODEL_CALIBRATION_MODEL_FILE": "/m/model.json"})
    assert calibrate.postprocess(i) == {"return": 0, "files": ["calibration.json"]}
    assert i["env"]["CM_ML_MODEL_CALIBRATION_FILE"] == str(inside / "calibration.json")
    assert i["env"]["CM_ML_MODEL_CALIBRATION_SAMPLES"] == "3"
    assert i["env"]["CM_ML_MODEL_CALIBRATION_LIST"] == made_with["name"]
    assert i["env"]["CM_ML_MODEL_CALIBRATION_IS_OFFICIAL"] == "yes"
    (inside / "calibration.json").write_text("{}")
    assert calibrate.postprocess(hook_input())["return"] == 1


# --- generate-engine ---


def test_the_engines_sizes_are_words_of_their_own(inside, hook_input):
    info = model_json(inside, "MatMul")
    env = {
        "CM_MLPERF_MODEL": "bert-99", "CM_ML_MODEL_INFO_FILE": str(info), "CM_ENGINE_LIBRARY": "tensorrt",
        "CM_ENGINE_LARGEST_BATCH": "4", "CM_ENGINE_SIZES": "tokens=1:384:384, boxes=1:2:3",
    }  # fmt: skip
    assert engine.preprocess(hook_input(env)) == {"return": 0}
    assert (inside / "arguments.txt").read_text().splitlines() == [
        "--largest_batch=4", "--library=tensorrt", "--model=bert-99", f"--model_info={info}", f"--output_dir={inside}",
        "--sizes", "tokens=1:384:384", "boxes=1:2:3",
    ]  # fmt: skip


def test_the_names_of_a_call_by_name_come_before_those_of_the_recipe_above(inside, hook_input):
    env = {
        "CM_MLPERF_MODEL": "ResNet", "CM_MODEL_REQUEST_MODEL": "resnet50", "CM_MLPERF_MODEL_PRECISION": "bfloat16",
        "CM_MODEL_REQUEST_PRECISION": "bf16", "CM_ML_MODEL_INFO_FILE": str(model_json(inside, "Conv")),
        "CM_DATASET_PATH": str(inside), "CM_ENGINE_LIBRARY": "openvino",
    }  # fmt: skip
    assert engine.preprocess(hook_input(env)) == {"return": 0}
    words = (inside / "arguments.txt").read_text().splitlines()
    assert words[:3] == ["--library=openvino", "--model=resnet50", "--precision=bf16"]
    assert calibrate.preprocess(hook_input(env)) == {"return": 0}
    assert (inside / "arguments.txt").read_text().splitlines()[0] == "--model=resnet50"


def built_engines(folder: Path, **engine_facts: object) -> None:
    blob = folder / "net.blob"
    blob.write_bytes(b"blob")
    digest = hashlib.sha256(b"blob").hexdigest()
    model_json(folder, "Conv", framework="openvino", engine=engine_facts, files={"model": {"file": blob.name,
               "sha256": digest}})  # fmt: skip


def test_engines_are_bound_to_the_library_and_to_the_processor_they_were_built_for(inside, hook_input):
    built_engines(inside, library="openvino", built_for={"instruction_sets": ["avx2", "fma"]})
    library = inside / "openvino-2026.4.1.dist-info"
    library.write_text("")
    source = inside / "source.json"
    source.write_text("{}")
    i = hook_input({
        "CM_ENGINE_LIBRARY": "openvino", "CM_PYTHONLIB_OPENVINO_METADATA_PATH": str(library),
        "CM_ML_MODEL_ENGINE_FROM": str(source),
    })  # fmt: skip
    assert engine.postprocess(i)["return"] == 0
    assert i["env"]["CM_ML_MODEL_ENGINE_INSTRUCTION_SETS"] == "avx2 fma"
    assert i["env"]["CM_ML_MODEL_ENGINE_LIBRARY_FILE"] == str(library)


def test_engines_are_built_again_for_another_library_or_processor(tmp_path):
    source, library = tmp_path / "model.json", tmp_path / "openvino-2026.4.1.dist-info"
    source.write_text("{}")
    library.write_text("")
    env = {
        "PATH": "/usr/bin:/bin", "CM_ML_MODEL_ENGINE_FROM": str(source),
        "CM_ML_MODEL_ENGINE_FROM_SHA256": hashlib.sha256(b"{}").hexdigest(),
        "CM_ML_MODEL_ENGINE_LIBRARY_FILE": str(library),
    }  # fmt: skip

    def said(**changes: str) -> tuple[int, str]:
        command = ["bash", RECIPES / "generate-engine" / "validate_cache.sh"]
        done = subprocess.run(command, env={**env, **changes}, capture_output=True, text=True)
        return done.returncode, done.stdout

    assert said() == (0, "")
    assert said(CM_ML_MODEL_ENGINE_INSTRUCTION_SETS=" ".join(here())) == (0, "")
    code, text = said(CM_ML_MODEL_ENGINE_INSTRUCTION_SETS="avx9000")
    assert code == 1 and "another" not in text and "other instruction sets" in text
    library.unlink()
    code, text = said()
    assert code == 1 and "another version of the library" in text


def here() -> list[str]:
    """This processor's instruction sets, by the rule of crowdperf/harness/backends/openvino/library.py."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
    flags = next(
        (line.partition(":")[2].split() for line in text.splitlines() if line.startswith(("flags", "Feat"))), []
    )
    return sorted({flag for flag in flags if re.search("sse4|avx|amx|fma|vnni|asimd|sve|bf16|i8mm", flag)})


# --- calls by name ---


def by_name(**given: str) -> dict[str, str]:
    env = {f"CM_MLPERF_{key.upper()}": value for key, value in given.items()}
    i: dict[str, Any] = {"env": env}
    answer = request.preprocess(i)
    return env if answer["return"] == 0 else answer


@pytest.mark.parametrize(
    ("given", "model", "precision"),
    [
        ({"model": "ResNet50", "source": "tiny"}, "resnet50", "fp32"),
        ({"model": "BERT"}, "bert-99", "fp32"),
        ({"model": "resnet50", "source": "Tiny", "model_precision": "FP16"}, "resnet50", "fp16"),
        ({"model": "bert-99.9", "model_precision": "bfloat16"}, "bert-99.9", "bf16"),
        ({"model": "RNN_T", "model_precision": "int8"}, "rnnt", "int8"),
        ({"model": "resnet50", "config_precision": "int8"}, "resnet50", "int8"),
        ({"model": "resnet50", "config_precision": "int8", "model_precision": "fp32"}, "resnet50", "fp32"),
    ],
)
def test_a_call_by_name_gets_official_names(given, model, precision):
    env = by_name(**given)
    assert (env["CM_MODEL_REQUEST_MODEL"], env["CM_MODEL_REQUEST_PRECISION"]) == (model, precision)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "no model is given"),
        ({"CM_MLPERF_MODEL": "resnet51"}, "unknown benchmark 'resnet51'"),
        ({"CM_MLPERF_MODEL": "digits", "CM_MLPERF_SOURCE": "tiny"}, "digits has one model and one data set"),
        ({"CM_MLPERF_MODEL": "bert,resnet50"}, "--run_args=--benchmarks=bert,resnet50"),
        (
            {"CM_MLPERF_MODEL": "bert", "CM_MLPERF_MODEL_PRECISION": "fp16", "CM_ENGINE_LIBRARY": "openvino"},
            "unknown precision 'fp16' (did you mean bf16?); known: fp32, bf16, int8",
        ),
    ],
)
def test_what_a_call_by_name_cannot_have_is_refused_with_what_there_is(env, said):
    answer = request.preprocess({"env": env})
    assert answer["return"] == 1
    assert said in answer["error"]


def test_every_benchmark_has_one_model_and_one_data_set_to_calibrate_with():
    from crowdperf.rules.benchmarks import RECORDS

    rows = recipe_meta("get-mlperf-model-request")["prehook_deps"]
    for part in ("ml-model", "dataset"):
        found = [row["enable_if_env"]["CM_MODEL_REQUEST_NAME"] for row in rows if part in row["names"]]
        assert found == [[one.name] for one in RECORDS.values() if one.generation is None and not one.recipes.is_own]


# --- the cache ---


@pytest.mark.parametrize(
    ("alias", "file_key", "digest_key"),
    [
        ("calibrate-ml-model", "CM_ML_MODEL_CALIBRATION_MODEL_FILE", "CM_ML_MODEL_CALIBRATION_MODEL_SHA256"),
        ("quantize-ml-model", "CM_ML_MODEL_QUANTIZED_FROM", "CM_ML_MODEL_QUANTIZED_FROM_SHA256"),
        ("generate-engine", "CM_ML_MODEL_ENGINE_FROM", "CM_ML_MODEL_ENGINE_FROM_SHA256"),
    ],
)
def test_an_entry_is_valid_while_the_model_is_the_one_it_was_made_from(tmp_path, alias, file_key, digest_key):
    info = tmp_path / "a model.json"
    info.write_text("{}")
    env = {"PATH": "/usr/bin:/bin", file_key: str(info), digest_key: hashlib.sha256(b"{}").hexdigest()}

    def code() -> int:
        return subprocess.run(["bash", RECIPES / alias / "validate_cache.sh"], env=env, capture_output=True).returncode

    assert code() == 0
    info.write_text('{"changed": 1}')
    assert code() == 1
    info.unlink()
    assert code() == 1


@pytest.mark.parametrize(
    ("tags", "words", "expected"),
    [
        ("generate,engine,_openvino", [], "no model is given"),
        ("generate,engine,_openvino", ["--model=resnet51"], "unknown benchmark 'resnet51'"),
        ("generate,engine,_openvino", ["--benchmarks=bert,resnet50"], "--target=generate_engines"),
        ("generate,engine,_openvino", ["--model=resnet50", "--model_info=none.json"], "none.json does not exist"),
        ("calibrate,ml-model", ["--model=resnet50", "--model_info=."], "--dataset=FOLDER is missing"),
        (
            "calibrate,ml-model",
            ["--model=resnet50", "--model_info=none.json", "--dataset=."],
            "none.json does not exist",
        ),
    ],
)
def test_missing_inputs_are_named_by_plan_and_run_before_anything_is_installed(home, tags, words, expected):
    done = home.run_cm(tags, *words)
    assert done.code == 1 and expected in done.answer["error"]
    assert not home.entries()
    planned = home.cm("plan", "script", f"--tags={tags}", "--quiet", *words)
    assert planned.code == 1 and expected in planned.stdout + planned.stderr


class KnownEnv(dict[str, str]):
    """An env as a plan hook gets it, of which everything is known."""

    def knows(self, key: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("library", "gpu", "machine", "code"),
    [
        ("tensorrt", "no GPU", "", 1),
        ("tensorrt", "", "", 0),
        ("tensorrt", "no GPU", "t4x1", 0),
        ("tensorrt_rtx", "no GPU", "", 0),
    ],
)
def test_tensorrt_is_not_fetched_where_it_could_build_nothing(inside, monkeypatch, library, gpu, machine, code):
    from crowdperf.machine import nvidia

    monkeypatch.setattr(nvidia, "missing_gpu", lambda machine: gpu)
    info = model_json(inside, "Conv")
    env = KnownEnv(
        CM_MLPERF_MODEL="resnet50", CM_MODEL_REQUEST_INFO_FILE=str(info), CM_ENGINE_LIBRARY=library,
        CM_RECORDED_MACHINE=machine,
    )  # fmt: skip
    answer = engine.plan({"env": env})
    assert answer["return"] == code
    assert code == 0 or "TensorRT builds engines on a GPU only, and no GPU" in answer["error"]
