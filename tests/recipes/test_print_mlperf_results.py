"""print-mlperf-results: the two banners with their files, the newer tree, ratios to published results, CSV."""

import csv
import io
import json
import re
from functools import partial
from pathlib import Path

import pytest
from recipe_loader import exported, load_module, load_recipe, recipe_meta
from results_builder import RECORDED, accuracy_run, recorded_run, v07_run

from crowdperf.logs.run_facts import Score

recipe = load_recipe("print-mlperf-results")
META = recipe_meta("print-mlperf-results")


@pytest.fixture
def call(preprocessed):
    """Prints a folder; the answer has what was printed as `text`."""

    return partial(preprocessed, recipe, META)


def logs(inside: Path, *parts: str) -> Path:
    return inside.joinpath("build", "logs", *parts)


def test_an_empty_input_is_the_usual_folder(inside, call):
    v07_run(logs(inside, "2020.09.01-10.00.00", "T4x1_TRT", "resnet50", "Offline"), "Offline", 6035.57)
    assert call(form="banners", input="")["return"] == 0


def test_the_banners_and_their_files_are_nvidias(inside, call):
    v07_run(logs(inside, "2020.09.01-10.00.00", "T4x1_TRT", "resnet50", "Offline"), "Offline", 6035.57)
    v07_run(
        logs(inside, "2020.09.01-10.00.00", "T4x1_TRT", "bert-99.9", "SingleStream"), "SingleStream", 999, valid=False
    )
    accuracy_run(logs(inside, "2020.09.01-11.00.00", "T4x1_TRT", "ssd-mobilenet", "Offline"), "mAP=22.9%")
    answer = call(form="banners")
    assert answer["return"] == 0, answer
    assert answer["text"] == (
        "\n======================= Perf harness results: =======================\n"
        "\n"
        "T4x1_TRT-high_accuracy-SingleStream:\n"
        "    bert-99.9: 90th percentile latency (ns) : 999 and Result is : INVALID\n"
        "\n"
        "T4x1_TRT-default-Offline:\n"
        "    resnet50: Samples per second: 6035.57 and Result is : VALID\n"
        "    ssd-mobilenet: No performance results in AccuracyOnly mode.\n"
        "\n"
        "\n======================= Accuracy results: =======================\n"
        "\n"
        "T4x1_TRT-high_accuracy-SingleStream:\n"
        "    bert-99.9: No accuracy results in PerformanceOnly mode.\n"
        "\n"
        "T4x1_TRT-default-Offline:\n"
        "    resnet50: No accuracy results in PerformanceOnly mode.\n"
        "    ssd-mobilenet: mAP=22.9%\n"
        "\n"
    )
    summary = json.loads(logs(inside, "perf_harness_summary.json").read_text())
    assert summary["T4x1_TRT-default-Offline"]["resnet50"] == "Samples per second: 6035.57 and Result is : VALID"
    assert json.loads(logs(inside, "accuracy_summary.json").read_text())["T4x1_TRT-default-Offline"]["ssd-mobilenet"]


def test_todays_runs_are_printed_with_every_scenarios_own_line(inside, call):
    for scenario, recording in RECORDED.items():
        recorded_run(logs(inside, "s", "resnet50", scenario, "performance", "run_1"), recording)
    text = call(form="banners")["text"]
    for line in (
        "resnet50: 90.0th percentile latency (ns) : 2813 and Result is : VALID",
        "resnet50: Samples per second: 1.61221e+06 and Result is : VALID",
        "resnet50: Completed samples per second    : 5159.22 and Result is : VALID",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("model", "backend", "version"),
    [
        ("resnet50", "onnxruntime", "default"),
        ("resnet50", "triton", "triton"),
        ("bert-99.9", "triton", "high_accuracy_triton"),
        ("resnet50", "neuron_simulated", "triton"),
        ("resnet50", "openvino", "openvino"),
        ("resnet50", "a later one", "default"),
    ],
)
def test_a_configuration_has_the_name_that_make_takes(inside, call, model: str, backend: str, version: str) -> None:
    run = logs(inside, "s", model, "Offline", "performance", "run_1")
    recorded_run(run, "valid-offline")
    result = {"run": {"backend": {"value": backend, "origin": "request"}}}
    (run / "result.json").write_text(json.dumps(result))
    assert f"\ns-{version}-Offline:\n" in call(form="banners")["text"]


def test_the_tree_says_why_a_run_is_invalid_and_how_server_stands(inside, call):
    recorded_run(logs(inside, "s", "resnet50", "Server", "performance", "run_1"), "valid-server")
    recorded_run(logs(inside, "s", "resnet50", "Offline", "performance", "run_1"), "valid-offline")
    run = logs(inside, "s", "bert-99", "Server", "performance", "run_1")
    recorded_run(run, "invalid-server-too-late", min_duration_ms=2000)
    text = call(form="tree")["text"]
    assert "======================== Result summaries: ========================" in text
    assert "performance: result_completed_samples_per_sec: 5159.22, Result is VALID, 10-min runtime" in text
    assert re.search(r"p99 latency: [\d.]+ ms, [\d.]+ of the 15 ms allowed", text)
    assert f"server/offline: {5159.22 / 1612210:.3f}" in text
    assert "invalid: performance constraints not satisfied" in text
    assert "label: test run, not a valid MLPerf result" in text
    assert "\ntest run, not a valid MLPerf result: s-default-Server bert-99\n" in call(form="banners")["text"]
    assert "published: none (not compared: test run" in text


def test_a_published_result_of_the_same_system_gives_a_ratio_and_any_other_none(inside, call):
    for system in ("T4x1_TRT", "T4x3_TRT"):
        recorded_run(logs(inside, system, "resnet50", "Offline", "performance", "run_1"), "valid-offline")
    text = call(form="tree")["text"]
    assert f"published: {1612210 / 6035.6:.3f} times as fast as 6,035.6 samples/s" in text
    assert "closed/NVIDIA/results/T4x1_TRT/resnet50/Offline" in text
    assert text.count("published: none (no published result of this system is known here)") == 1


def test_an_accuracy_target_is_printed_with_its_verdict(inside, call):
    run = accuracy_run(logs(inside, "s", "resnet50", "Offline", "accuracy"))
    metric = {"name": "acc", "value": 75.92, "target": 75.695, "upper_limit": None, "passed": True}
    (run / "accuracy.json").write_text(json.dumps({"metrics": [metric]}))
    text = call()["text"]
    assert "accuracy=75.920%, good=37960, total=50000 (Threshold = 75.695, acc PASSED)" in text
    assert "accuracy: [PASSED] acc: 75.920 (Threshold=75.695)" in text


def test_a_line_with_several_scores_is_printed_once(inside, call):
    summaries = load_module("print-mlperf-results", "summaries")
    line = "{'rouge1': 42.5, 'rouge2': 19.9}"
    score = partial(Score, upper_limit=None, is_passed=True, line=line, evidence=None)
    scores = (score(name="ROUGE1", value=42.5, target=42.1), score(name="ROUGE2", value=19.9, target=19.7))
    text = summaries._scores_text(scores)
    assert text == f"{line} (Threshold = 42.100, ROUGE1 PASSED, Threshold = 19.700, ROUGE2 PASSED)"


def test_an_accuracy_run_without_log_or_score_says_so(inside, call):
    run = accuracy_run(logs(inside, "s", "resnet50", "Offline", "accuracy"))
    (run / "accuracy.txt").unlink()
    assert "not scored yet" in call(form="banners")["text"]
    (run / "mlperf_log_accuracy.json").unlink()
    assert "Cannot find accuracy JSON file." in call(form="banners")["text"]


def test_csv_is_all_that_is_printed_and_it_is_left_as_a_file(inside, call):
    recorded_run(logs(inside, "s", "resnet50", "Offline", "performance", "run_1"), "valid-offline")
    answer = call("csv")
    (row,) = csv.DictReader(io.StringIO(answer["text"]))
    assert (row["system"], row["benchmark"], row["scenario"], row["value"]) == ("s", "resnet50", "Offline", "1612210.0")
    assert logs(inside, "results_summary.csv").read_text() == answer["text"]


def test_a_submission_tree_gets_no_stray_files(inside, call):
    submitter = inside / "tree" / "open" / "Me"
    recorded_run(submitter / "results" / "s" / "resnet50" / "Offline" / "performance" / "run_1", "valid-offline")
    (submitter / "systems").mkdir()
    before = sorted(inside.rglob("*"))
    assert "stray files" in call(input="tree")["text"]
    assert sorted(inside.rglob("*")) == before
    assert call(input="tree", output="out")["return"] == 0
    assert sorted(path.name for path in (inside / "out").iterdir()) == [
        "accuracy_summary.json", "perf_harness_summary.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"input": "x"}, "x does not exist"),
        ({"input": "."}, "no LoadGen run"),
    ],
)
def test_wrong_inputs_are_told(inside, call, inputs, expected):
    answer = call(**inputs)
    assert answer["return"] == 1
    assert expected in answer["error"]
    assert "hint:" in answer["error"]


def test_a_wrong_call_is_answered_with_a_folder_that_is_there(inside, call):
    assert "--input=FOLDER" in call()["error"]
    (inside / "results").mkdir()
    assert "--tags=print,mlperf,results --input=results" in call()["error"]
    assert "--input=FOLDER" in call(input="results")["error"]  # it holds no run: not named again


def test_the_files_that_are_written_are_named(inside, call):
    v07_run(logs(inside, "1", "T4x1_TRT", "resnet50", "Offline"), "Offline", 1)
    folder = logs(inside)
    told = f"written to {folder} (--output=FOLDER: elsewhere): perf_harness_summary.json, accuracy_summary.json\n"
    assert call()["said"] == told


def test_of_several_runs_the_figure_and_its_ratio_are_of_the_same_one(inside, call):
    for number, figure in ((1, 12_071.14), (2, 6035.57)):
        v07_run(logs(inside, "T4x1_TRT", "resnet50", "Offline", "performance", f"run_{number}"), "Offline", figure)
    text = call()["text"]
    assert "Samples per second: 6035.57" in text
    assert "published: 1.000 times as fast as 6,035.6 samples/s" in text


def test_of_several_runs_the_ratio_is_to_the_hardware_of_the_figures_run(inside, call):
    for day, name, figure in (("1", "NVIDIA A100-SXM4-40GB", 36_864), ("2", "Tesla T4", 6035.57)):
        run = v07_run(logs(inside, day, "a_box", "resnet50", "Offline"), "Offline", figure)
        settings = {"device": {"value": "cuda"}, "gpus": {"value": [0]}}
        (run / "result.json").write_text(json.dumps({"run": settings, "machine": {"gpus": [{"name": name}]}}))
    text = call()["text"]
    assert "Samples per second: 6035.57" in text
    assert "published: 1.000 times as fast as 6,035.6 samples/s" in text


def test_planning_changes_nothing_and_only_named_keys_leave_the_recipe(inside, call, hook_input):
    assert recipe.plan(hook_input({})) == {"return": 0}
    v07_run(logs(inside, "1", "T4x1_TRT", "resnet50", "Offline"), "Offline", 1)
    assert sorted(exported("print-mlperf-results", call()["env"])) == [
        "CM_MLPERF_ACCURACY_SUMMARY_FILE",
        "CM_MLPERF_PERF_HARNESS_SUMMARY_FILE",
    ]
