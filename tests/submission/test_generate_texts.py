"""What a tree tells in words: commands without the submitter's folders, weights and how they were quantised."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from generate_support import SUT  # noqa: F401 - puts the package on the path

from crowdperf.logs.tree import ScenarioPlace
from crowdperf.rules.names import Mode, Scenario
from crowdperf.submission import measurements, readme_texts
from crowdperf.submission.call_summary import result_table
from crowdperf.submission.run_discovery import FoundRun, sut_of

DIGEST = "ab" * 32


def run_of(folder: Path, *, info: dict[str, Any] | None = None, **settings: Any) -> FoundRun:
    """A run with these settings, and a model.json where one is given."""
    if info is not None:
        (folder / "model.json").write_text(json.dumps(info), encoding="utf-8")
        settings["model_info_path"] = str(folder / "model.json")
    rows = {name: {"value": value, "origin": "user"} for name, value in {"model": "resnet50", **settings}.items()}
    return FoundRun(
        place=ScenarioPlace(system="box", model="resnet50", scenario="Offline"), scenario=Scenario.OFFLINE,
        mode=Mode.PERFORMANCE, test="", number=1, folder=folder, session=folder, log=None,
        result={"run": rows, "model_sha256": {"model": DIGEST}, "is_synthetic": {"model": False, "dataset": False}},
    )  # fmt: skip


QUANTISED = {
    "precision": "int8",
    "files": {"model": {"file": "resnet50_v1.int8.onnx", "sha256": DIGEST}},
    "quantisation": {
        "methods": {"model": "static"},
        "reduce_range": True,
        "calibration": {
            "sha256": "cd" * 32,
            "method": "entropy",
            "provenance": {"sample_ids": ["a", "b", "c"], "dataset": {"count": 500, "is_synthetic": False}},
        },
    },
}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cm run script --tags=a,b --results_dir=/home/jo/r --model=x", "cm run script --tags=a,b --model=x"),
        ("cm run script --results-dir=r --user_conf=/x/y/my.conf", "cm run script"),
        ("cm run script --adr.dataset.path=/data/jo/imagenet", "cm run script --adr.dataset.path=imagenet"),
        ("cm run script --env.X='~/a b/c'", "cm run script '--env.X=a b/c'"),
        ("cm run script --url=https://example.org/a/b", "cm run script --url=https://example.org/a/b"),
    ],
)
def test_a_command_is_shown_without_folders(command: str, expected: str) -> None:
    assert readme_texts.without_paths(command) == expected


def test_a_run_is_repeated_by_its_session_s_command(tmp_path: Path) -> None:
    environment = {"command": "cm run script --tags=run,mlperf,inference --results_dir=/r --model=resnet50"}
    command = readme_texts.repeat_command(run_of(tmp_path), environment, {})
    assert command == "cm run script --tags=run,mlperf,inference --model=resnet50"


def test_without_one_it_is_repeated_by_its_settings(tmp_path: Path) -> None:
    run = run_of(tmp_path, backend="onnxruntime", scenario="Offline", execution_mode="valid", threads=4)
    session = {"settings": {"source": "tiny", "options": {"threads": "4"}, "passed_on": {"adr": {"x": {"tags": "_y"}}}}}
    words = "--mode=performance --model=resnet50 --backend=onnxruntime --scenario=Offline --execution_mode=valid"
    start = f"cm run script --tags=run,mlperf,inference {words}"
    assert readme_texts.repeat_command(run, {}, session) == f"{start} --source=tiny --threads=4 --adr.x.tags=_y"
    assert readme_texts.repeat_command(run, {}, {}) == f"{start} --threads=4"
    shape = run_of(tmp_path, backend="onnxruntime", scenario="Offline", execution_mode="valid", instances=2, threads=4)
    assert readme_texts.repeat_command(shape, {}, {}) == f"{start} --instances=2 --threads=8", (
        "the input counts all threads"
    )


@pytest.mark.parametrize(
    ("precision", "backend", "words"),
    [
        ("fp32", "onnxruntime", "none"),
        ("fp16", "pytorch", "cast to fp16"),
        ("fp16", "tensorrt", "cast to fp16; built into a TensorRT engine"),
        ("tf32", "pytorch", "fp32 weights, multiplied in TF32"),
    ],
)
def test_what_was_done_to_the_weights_is_told(tmp_path: Path, precision: str, backend: str, words: str) -> None:
    run = run_of(tmp_path, precision=precision, backend=backend, model_path="/x/resnet50_v1.onnx")
    weights = measurements.weights_of(run)
    assert (weights.transformation, weights.files) == (words, ("resnet50_v1.onnx",))
    assert weights.precision == ("fp32" if precision == "tf32" else precision)


def test_our_quantisation_is_told_with_the_weights_that_it_started_from(tmp_path: Path) -> None:
    weights = measurements.weights_of(run_of(tmp_path, info=QUANTISED, precision="int8", backend="onnxruntime"))
    assert weights.files == ("resnet50_v1.onnx",)
    assert weights.transformation == (
        "int8 by crowdperf's quantize-ml-model (static); weights to 7 bits, because the CPU has no VNNI"
    )
    text = readme_texts.calibration_text({"resnet50": weights})
    assert "method entropy, one range for each tensor, from 3 samples of a data set of 500" in text
    assert "Samples: a, b, c" in text
    assert "cd" * 32 in text


def test_the_list_of_samples_is_told_beside_the_quantisation(tmp_path: Path) -> None:
    run = run_of(tmp_path, info=QUANTISED, precision="int8", backend="onnxruntime")
    listed = {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "ef" * 32, "is_official": True}
    weights = measurements.weights_of(replace(run, result={**run.result, "calibration": listed}))
    text = readme_texts.calibration_text({"resnet50": weights})
    words = f"List of samples: {listed['name']} (sha256 {'ef' * 32}), an official list of mlcommons/inference."
    assert words in text
    own = replace(weights, calibration_list={**listed, "name": "64 samples", "is_official": False})
    assert "64 samples (sha256 " + "ef" * 32 + "), a choice of the submitter." in readme_texts.calibration_text(
        {"x": own}
    )


def test_a_quantisation_that_nobody_can_tell_any_more_is_refused(tmp_path: Path) -> None:
    with pytest.raises(measurements.UnknownWeights, match="their origin is unknown"):
        measurements.weights_of(run_of(tmp_path, precision="int8", model_info_path="/gone/model.json"))


def test_a_model_json_of_other_weights_is_not_believed(tmp_path: Path) -> None:
    other = {**QUANTISED, "files": {"model": {"file": "x.onnx", "sha256": "00" * 32}}}
    with pytest.raises(measurements.UnknownWeights):
        measurements.weights_of(run_of(tmp_path, info=other, precision="int8"))


@pytest.mark.parametrize(
    ("model", "types"), [("resnet50", "fp32"), ("bert-99", "int64"), ("dlrm-v2-99.9", "fp32, int64"), ("mine", "fp32")]
)
def test_the_input_type_is_the_records_and_fp32_without_one(model: str, types: str) -> None:
    assert measurements._input_type(model) == types


def test_the_accuracy_of_a_result_is_that_of_its_own_scenario_and_of_no_test(tmp_path: Path) -> None:
    log = SimpleNamespace(published=None, is_valid=True)
    timed = replace(run_of(tmp_path), log=log)

    def scored(value: float, **changed: Any) -> FoundRun:
        accuracy = {"metrics": [{"name": "acc", "value": value}]}
        return replace(timed, mode=Mode.ACCURACY, log=None, accuracy=accuracy, **changed)

    others = scored(1.0, test="TEST01"), scored(2.0, place=replace(timed.place, scenario="Server"))
    (line,) = result_table([timed, *others, scored(76.5)])[3:-1]
    assert "| acc 76.5 | VALID " in line


def test_sections_of_other_models_stay_in_the_calibration_text(tmp_path: Path) -> None:
    weights = measurements.weights_of(run_of(tmp_path, precision="fp32", model_path="m.onnx"))
    first = readme_texts.calibration_text({"bert-99": weights})
    both = readme_texts.calibration_text({"resnet50": weights}, first)
    assert both.index("## bert-99") < both.index("## resnet50")
    assert readme_texts.calibration_text({"resnet50": weights}, both) == both


@pytest.mark.parametrize(
    ("record", "hw_name", "expected"),
    [
        ({"sut": "named-by-record"}, "", "named-by-record"),
        ({"sut": "named-by-record"}, "my-box", "my-box-crowdperf-cpu-onnxruntime-v1.31.1-default_config"),
        ({}, "", "Example_CPU_3x2-crowdperf-cpu-onnxruntime-v1.31.1-default_config"),
        ({"hw_name": "box", "run_config": "fast"}, "", "box-crowdperf-cpu-onnxruntime-v1.31.1-fast"),
    ],
)
def test_a_system_is_named_by_hardware_and_software_and_never_by_the_host(
    record: dict[str, str], hw_name: str, expected: str
) -> None:
    result = {
        "run": {"backend": {"value": "onnxruntime"}, "device": {"value": "cpu"}},
        "versions": {"onnxruntime": "1.31.1"},
        "machine": {"processor": "Example(R) CPU 3", "core_count": 128, "socket_count": 2},
    }
    assert sut_of(record, result, hw_name, "20261121T010203Z-x").name == expected


def test_the_readme_of_a_result_says_how_to_get_crowdperf_and_each_command_once():
    made = readme_texts.made_by(
        {"crowdperf": {"text": "crowdperf 1.2 (abc1234)", "commit": "abc1234", "is_modified": False}}
    )
    once = readme_texts.repetition({"performance": "cm run x", "accuracy": "cm run x"}, made)
    assert "    cm pull repo crowdperf --url=ADDRESS_OF_CROWDPERF --checkout=abc1234" in once
    assert "    pip install cmind" in once and "The runs were made by crowdperf 1.2 (abc1234)." in once
    assert once.count("    cm run x") == 1 and "The performance and the accuracy run:" in once
    twice = readme_texts.repetition({"performance": "cm run x", "accuracy": "cm run y"}, readme_texts.made_by({}))
    assert [line for line in twice if line.startswith("    cm run")] == ["    cm run x", "    cm run y"]
    assert "    cm pull repo crowdperf --url=ADDRESS_OF_CROWDPERF" in twice
