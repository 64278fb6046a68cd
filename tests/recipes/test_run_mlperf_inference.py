"""run-mlperf-inference: the runs that inputs lead to, the verdict, the table, a whole call with made-up runs."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta

from crowdperf.logs import found_runs
from crowdperf.logs.run_log import LATE_REASON, SHORT_REASON
from crowdperf.rules.app_names import APP_RECIPE, app_names
from crowdperf.rules.backends import default_backend
from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS
from crowdperf.rules.names import METRIC_OF_SCENARIO, SYNTHETIC_LABEL, TEST_RUN_LABEL, TOKEN_METRIC, Mode
from crowdperf.rules.record import ALL_SCENARIOS

recipe = load_recipe("run-mlperf-inference")
matrix = load_module("run-mlperf-inference", "matrix")
outcome = load_module("run-mlperf-inference", "outcome")
page = load_module("run-mlperf-inference", "page")
remaining = load_module("run-mlperf-inference", "remaining")
session = load_module("run-mlperf-inference", "session")
table = load_module("run-mlperf-inference", "table")

META = recipe_meta("run-mlperf-inference")
KNOWN = app_names(recipe_meta(APP_RECIPE))
PERFORMANCE_TAGS = "app,mlperf,inference,_digits,_onnxruntime,_cpu,_{},_performance"


def config(**changes: str) -> Any:
    values = input_values("run-mlperf-inference", {"CM_TMP_CURRENT_PATH": "/user", **changes})
    assert values.problems() == []
    return matrix.parse_config(values, KNOWN)


def problems(**changes: str) -> tuple[str, ...]:
    with pytest.raises(matrix.RequestError) as caught:
        config(**changes)
    return caught.value.problems


def result(
    *, is_valid: bool = True, label: str = TEST_RUN_LABEL, value: float | None = 12.5, is_synthetic: bool = False
) -> dict[str, Any]:
    """The parts of a result.json that this recipe reads."""
    metric = None if value is None else {"name": "throughput (of all)", "value": value, "unit": "samples/s"}
    return {
        "valid": is_valid, "invalid_reasons": [] if is_valid else ["too slow"], "errors": 0, "metric": metric,
        "label": label, "is_synthetic": {"model": is_synthetic, "dataset": False}, "duration_s": 2.0,
        "query_count": 7, "latency": None, "run": {"model": {"value": "digits"}},
        "started_utc": "2026-11-21T01:02:03+00:00", "versions": {"python": "3.11.7"}, "loadgen_version": "6.0.17",
        "seeds": {"qsl": 1}, "model_sha256": "ab", "command": ["python3", "-m", "crowdperf.harness", "run.json"],
    }  # fmt: skip


def metric(name: str, value: float, target: float | None, upper_limit: float | None = None) -> dict[str, Any]:
    passed = None if target is None else value >= target and (upper_limit is None or value <= upper_limit)
    return {
        "name": name, "value": value, "reference": target, "target": target, "upper_limit": upper_limit,
        "passed": passed,
    }  # fmt: skip


def score(percent: float = 99.332, target: float = 98.339) -> dict[str, Any]:
    return {"metrics": [metric("acc", percent, target)], "passed": percent >= target}


def test_an_onnx_file_without_a_benchmark_is_a_network_of_the_user() -> None:
    own = {"CM_MLPERF_OWN_MODEL_PATH": "m.onnx"}
    found = config(**own)
    assert (found.model, found.modes) == ("own-onnx", (Mode.PERFORMANCE,))
    assert [spec.inputs["model_path"] for spec in matrix.matrix(found)] == ["/user/m.onnx"] * 4
    given = config(**own, CM_MLPERF_OWN_INPUTS_PATH="in.npz", CM_MLPERF_OWN_EXPECTED_PATH="out.npz")
    assert given.modes == tuple(Mode)
    assert given.options["expected"] == "/user/out.npz"
    assert config(**own, CM_MLPERF_MODEL="resnet50").model == "resnet50"


@pytest.mark.parametrize(
    ("given", "model", "backend"),
    [
        ({"CM_MLPERF_MODEL": "BERT", "CM_MLPERF_RUN_CONFIG_VER": "high_accuracy"}, "bert-99.9", "onnxruntime"),
        ({"CM_MLPERF_MODEL": "bert-99.9", "CM_MLPERF_RUN_CONFIG_VER": "default"}, "bert-99.9", "onnxruntime"),
        ({"CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_RUN_CONFIG_VER": "triton"}, "resnet50", "triton"),
        ({"CM_MLPERF_MODEL": "bert", "CM_MLPERF_RUN_CONFIG_VER": "high_accuracy_triton"}, "bert-99.9", "triton"),
    ],
)
def test_nvidias_names_of_configurations_mean_a_level_and_a_server(given: Any, model: str, backend: str) -> None:
    found = config(**given)
    assert (found.model, found.backend) == (model, backend)


def test_other_words_of_nvidias_harness() -> None:
    assert config(CM_MLPERF_RUN_FAST="yes").execution_mode.value == "fast"
    assert [mode.value for mode in config(CM_MLPERF_LOADGEN_MODE="AccuracyOnly").modes] == ["accuracy"]
    one_level = {"CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_RUN_CONFIG_VER": "high_accuracy"}
    assert problems(**one_level)[0] == "--config_ver=high_accuracy: resnet50 has one accuracy level"


class FakeCM:
    """Answers cm.access as the recipes below would; `answers` replaces the answer of a query that holds the key."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.answers = answers
        self.calls: list[dict[str, Any]] = []

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "record":
            return {"return": 0}
        self.calls.append(request)
        for part, answer in self.answers.items():
            if part in request["tags"]:
                return answer
        if request["tags"] == "process,mlperf,accuracy":
            return {"return": 0, "new_state": {"mlperf_accuracy": score()}}
        is_accuracy = request["tags"].endswith("_accuracy")
        Path(request["output_dir"]).mkdir(parents=True)
        return {"return": 0, "new_state": {"mlperf_run": result(value=None if is_accuracy else 12.5)}}


@pytest.fixture
def call(tmp_path, hook_input):
    """Calls the hook with made-up runs; gives its answer, the state and the folder of the call."""

    def run(cm: FakeCM, inputs: dict[str, Any] | None = None, **env: str) -> tuple[dict, dict, list[Path]]:
        folder = RECIPES / "run-mlperf-inference"
        i = hook_input(
            {
                **env, "CM_TMP_CURRENT_PATH": str(tmp_path), "CM_HOST_OS_TYPE": "linux",
                "CM_TMP_CURRENT_SCRIPT_PATH": str(folder),
            },
            input=inputs or {}, meta=META, automation=SimpleNamespace(cmind=cm),
        )  # fmt: skip
        answer = recipe.preprocess(i)
        return answer, i["state"], sorted(tmp_path.glob("results/*"))

    return run


# --- the matrix ---


def test_by_default_every_scenario_runs_in_both_modes_performance_first():
    specs = matrix.matrix(config())
    assert [(spec.scenario, spec.mode) for spec in specs] == [(s, m) for s in ALL_SCENARIOS for m in Mode]
    assert {(spec.model, spec.backend, spec.device) for spec in specs} == {("digits", "onnxruntime", "cpu")}
    assert config().results_folder == Path("/user/results")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("offline", ["Offline"]),
        ("SERVER, single-stream", ["SingleStream", "Server"]),
        ("Offline,Offline", ["Offline"]),
        ("All", ["SingleStream", "MultiStream", "Offline", "Server"]),
        ("multistream,all", ["SingleStream", "MultiStream", "Offline", "Server"]),
    ],
)
def test_scenarios_are_a_list_in_any_case_and_order(text, expected):
    assert [scenario.value for scenario in config(CM_MLPERF_LOADGEN_SCENARIO=text).scenarios] == expected


def test_a_run_becomes_the_query_and_inputs_of_the_app_recipe():
    (spec,) = matrix.matrix(
        config(
            CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="performance", CM_NUM_THREADS="2",
            CM_MLPERF_LOADGEN_TARGET_QPS="1000",
        )
    )  # fmt: skip
    assert spec.tags == PERFORMANCE_TAGS.format("offline")
    assert spec.inputs == {"execution_mode": "test", "threads": "2", "target_qps": "1000.0"}


def test_targets_go_to_the_scenarios_that_have_them_and_the_scenarios_own_wins():
    specs = matrix.matrix(
        config(
            CM_MLPERF_LOADGEN_MODE="performance", CM_MLPERF_LOADGEN_TARGET_QPS="10",
            CM_MLPERF_LOADGEN_SERVER_TARGET_QPS="20", CM_MLPERF_LOADGEN_TARGET_LATENCY="3",
            CM_MLPERF_LOADGEN_MULTISTREAM_TARGET_LATENCY="4",
        )
    )  # fmt: skip
    assert {spec.scenario.value: (spec.target_qps, spec.target_latency_ms) for spec in specs} == {
        "SingleStream": (None, 3.0), "MultiStream": (None, 4.0), "Offline": (10.0, None), "Server": (20.0, None),
    }  # fmt: skip


def test_all_bad_inputs_are_named_in_one_error():
    found = problems(
        CM_MLPERF_MODEL="resnet50,bert", CM_MLPERF_GPUS="0", CM_MLPERF_LOADGEN_SCENARIO="Interactive",
        CM_MLPERF_LOADGEN_MODE="FindPeakPerformance", CM_MLPERF_RUN_ID="a/b",
        CM_MLPERF_LOADGEN_TARGET_ORIGIN="Sever: x", CM_MLPERF_SIMULATE="neuron",
    )  # fmt: skip
    names = ["model", "simulate", "scenario", "mode", "gpus", "run_id", "target_origin"]
    assert [problem.partition(":")[0] for problem in found] == [f"--{name}" for name in names]
    assert "unknown scenario 'Sever' (did you mean Server?)" in found[-1]
    assert "give --find=yes" in found[3]


def test_the_list_of_runs_tells_how_long_they_take_at_least():
    specs = matrix.matrix(config(CM_MLPERF_RUN_STYLE="valid"))
    lines = matrix.describe(specs).splitlines()
    assert lines[0] == "8 LoadGen runs, at least 2400 s of measuring in all:"
    assert lines[1] == "  1. digits onnxruntime cpu SingleStream performance: at least 600 s"
    assert len(lines) == 9
    accuracy = [spec for spec in specs if spec.mode is Mode.ACCURACY]
    assert matrix.describe(tuple(accuracy)).splitlines()[0] == "4 LoadGen runs:", "how long they take is not known"


def test_a_search_is_announced_as_one_without_a_duration():
    specs = matrix.matrix(config(CM_MLPERF_RUN_FIND="yes", CM_MLPERF_LOADGEN_SCENARIO="Offline,Server"))
    assert matrix.describe(specs).splitlines() == [
        "2 searches for a target:", "  1. digits onnxruntime cpu Offline", "  2. digits onnxruntime cpu Server"
    ]  # fmt: skip
    assert remaining.left_text(specs, []) == ""
    search = remaining.Took(specs[0], 48.0)
    assert remaining.took_text([search], 4.0, 48.0) == "1 search took 48 s"
    run = remaining.Took(matrix.matrix(config(CM_MLPERF_LOADGEN_SCENARIO="Offline"))[0], 700.0)
    assert remaining.took_text([search, run], 604.0, 748.0).startswith("2 runs took 12 min, 10 min of it measuring (")


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({"CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS": "3"}, "at least 221 s (662 queries, 3 a second)"),
        ({"CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS": "1"}, "at least 300 s (662 queries, 1 a second)"),  # fewer, then
        (
            {"CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS": "1", "CM_MLPERF_RUN_STYLE": "valid"},
            "at least 662 s (662 queries, 1 a second)",
        ),
        (
            {"CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS": "10", "CM_MLPERF_INFERENCE_MIN_QUERY_COUNT": "100"},
            "at least 10 s (100 queries, 10 a second)",
        ),
        ({"CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS": "1000"}, "at least 2 s (662 queries, 1,000 a second)"),
        ({}, "at least 2 s"),
    ],
)
def test_the_list_of_runs_counts_the_queries_that_early_stopping_needs(env, line):
    asked = {"CM_MLPERF_MODEL": "llama3.1-8b", "CM_MLPERF_LOADGEN_SCENARIO": "Interactive", **env}
    (spec,) = matrix.matrix(config(CM_MLPERF_LOADGEN_MODE="performance", CM_MLPERF_BACKEND="torch_llm", **asked))
    assert matrix.describe((spec,)).splitlines()[1].endswith(f"Interactive performance: {line}")


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({"CM_MLPERF_LOADGEN_SINGLESTREAM_TARGET_LATENCY": "2100"}, "at least 210 s (100 queries of 2,100 ms)"),
        ({"CM_MLPERF_LOADGEN_SINGLESTREAM_TARGET_LATENCY": "5000"}, "at least 300 s (100 queries of 5,000 ms)"),
        ({"CM_MLPERF_LOADGEN_SINGLESTREAM_TARGET_LATENCY": "1"}, "at least 2 s (100 queries of 1 ms)"),
        ({}, "at least 2 s"),
    ],
)
def test_the_list_of_runs_counts_the_queries_of_single_stream(env, line):
    asked = {"CM_MLPERF_MODEL": "smollm2", "CM_MLPERF_LOADGEN_SCENARIO": "SingleStream", **env}
    (spec,) = matrix.matrix(config(CM_MLPERF_LOADGEN_MODE="performance", CM_MLPERF_BACKEND="torch_llm", **asked))
    assert matrix.describe((spec,)).splitlines()[1].endswith(f"SingleStream performance: {line}")


def test_a_benchmark_runs_the_scenarios_that_it_has():
    both = config(CM_MLPERF_MODEL="3d-unet-99.9", CM_MLPERF_LOADGEN_SCENARIO="all")
    assert [scenario.value for scenario in both.scenarios] == ["SingleStream", "Offline"]
    (problem,) = problems(CM_MLPERF_MODEL="bert-99", CM_MLPERF_LOADGEN_SCENARIO="offline,multistream")
    assert problem == "--scenario: bert-99 has no MultiStream, only SingleStream, Offline, Server"


def test_a_name_without_level_and_the_communitys_precisions_are_understood():
    asked = config(CM_MLPERF_MODEL="bert", CM_MLPERF_MODEL_PRECISION="bfloat16", CM_MLPERF_SOURCE="tiny")
    assert (asked.model, asked.precision, asked.source) == ("bert-99", "bf16", "tiny")
    spec = matrix.matrix(asked)[0]
    assert spec.tags == "app,mlperf,inference,_bert-99,_onnxruntime,_cpu,_bf16,_tiny,_singlestream,_performance"


def test_options_reach_every_run_and_the_batch_timeout_those_that_have_one():
    asked = config(
        CM_MLPERF_LOADGEN_BATCH_TIMEOUT_US="200", CM_MLPERF_INSTANCES="2", CM_MLPERF_USER_CONF="my.conf",
        CM_MLPERF_LOADGEN_MIN_DURATION_MS="500", CM_MLPERF_GPUS="0, 2", CM_MLPERF_DEVICE="cuda",
    )  # fmt: skip
    specs = {spec.scenario.value: spec for spec in matrix.matrix(asked) if spec.mode is Mode.PERFORMANCE}
    assert specs["Server"].inputs == {
        "execution_mode": "test", "batch_timeout_us": "200", "instances": "2", "min_duration_ms": "500",
        "gpus": "0,2", "user_conf": "/user/my.conf",
    }  # fmt: skip
    assert "batch_timeout_us" not in specs["Offline"].inputs
    assert specs["Offline"].min_duration_s == 0.5


def test_own_copies_go_to_each_run_with_absolute_paths():
    copies = {"CM_MLPERF_OWN_DATASET_PATH": "data", "CM_MLPERF_OWN_MODEL_PATH": "/m.onnx"}
    specs = matrix.matrix(config(CM_MLPERF_MODEL="resnet50", **copies))
    assert {(spec.inputs["dataset_path"], spec.inputs["model_path"]) for spec in specs} == {("/user/data", "/m.onnx")}


SPELLINGS = {
    "bert_99": "bert-99", "BERT-99.9": "bert-99.9", "Bert_99.9": "bert-99.9", "bert": "bert-99",
    "BERT Large": "bert-99",
    "Resnet_50": "resnet50", "ResNet-50": "resnet50", "resnet": "resnet50", "RESNET50": "resnet50",
    "3d_unet": "3d-unet-99", "3D-UNet": "3d-unet-99", "3dunet": "3d-unet-99", "3D_UNET_99.9": "3d-unet-99.9",
    "GPT-J-99.9": "gptj-99.9", "gpt_j": "gptj-99", "GPTJ_99": "gptj-99", "Retina-Net": "retinanet",
    "SSD_Small": "ssd-mobilenet", "ssd_large": "ssd-resnet34", "SSD_MobileNet": "ssd-mobilenet",
    "RNN_T": "rnnt", "R_GAT": "rgat", "DLRM_v2": "dlrm-v2-99", "dlrm-V2_99.9": "dlrm-v2-99.9",
    "Stable_Diffusion_XL": "stable-diffusion-xl", "SDXL": "stable-diffusion-xl", "whisper_large_v3": "whisper",
    "YOLO_11": "yolo-99", "yolo_95": "yolo-95", "Llama3.1_8B": "llama3.1-8b", "llama3_1_8b": "llama3.1-8b",
    "Llama2_70B": "llama2-70b-99.9", "DeepSeek_R1": "deepseek-r1", "gpt_oss_120b": "gpt-oss-120b",
    "ResNet50": "resnet50", "BERT": "bert-99", "Unet": "3d-unet-99", "3D-UNET": "3d-unet-99", "RNN-T": "rnnt",
    "ssd-large": "ssd-resnet34", "ssd-small": "ssd-mobilenet", "SSD-ResNet34": "ssd-resnet34",
    "SSD-MobileNet": "ssd-mobilenet", "DLRM": "dlrm-99", "GPT-J": "gptj-99",
}  # fmt: skip
"""Benchmarks as people and the documents of NVIDIA and MLCommons write them: what they are here."""


@pytest.mark.parametrize(("spelling", "model"), list(SPELLINGS.items()))
def test_a_spelling_that_the_check_of_choices_takes_is_the_same_benchmark_behind_it(spelling, model):
    assert config(CM_MLPERF_MODEL=spelling).model == model


def test_every_spelling_of_a_record_is_a_name_here():
    spellings = {spelling: record.name for record in RECORDS.values() for spelling in record.spellings}
    for spelling, name in spellings.items():
        assert config(CM_MLPERF_MODEL=spelling).model.startswith(name), spelling


def test_every_benchmark_has_a_scorer_that_the_recipe_knows():
    known = recipe_meta("process-mlperf-accuracy")["variations"]
    assert {row.record.dataset for row in BENCHMARKS.values()} == set(known)
    (spec,) = matrix.matrix(
        config(CM_MLPERF_MODEL="bert-99", CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="accuracy")
    )
    assert session.accuracy_inputs(spec, Path("/x"))["tags"] == "process,mlperf,accuracy,_squad"


def test_every_input_is_described():
    assert set(META["input_mapping"]) == set(META["input_description"])


# --- verdict and table ---


def finished(scenario: str, mode: str, content: dict, accuracy: dict | None = None) -> Any:
    (spec,) = matrix.matrix(config(CM_MLPERF_LOADGEN_SCENARIO=scenario, CM_MLPERF_LOADGEN_MODE=mode))
    return outcome.FinishedRun(spec=spec, folder=f"digits/{scenario}/{mode}", result=content, accuracy=accuracy)


@pytest.mark.parametrize(
    ("is_performance_valid", "is_accuracy_valid", "percent", "expected"),
    [
        (True, True, 99.0, []),
        (False, True, 99.0, ["Offline performance is INVALID: too slow"]),
        (True, False, 99.0, ["Offline accuracy is INVALID: too slow"]),
        (True, True, 98.338, ["Offline accuracy acc 98.338 misses the target 98.339"]),
    ],
)
def test_a_scenario_passes_when_both_runs_are_valid_and_the_accuracy_is_met(
    is_performance_valid, is_accuracy_valid, percent, expected
):
    runs = [
        finished("Offline", "performance", result(is_valid=is_performance_valid)),
        finished("Offline", "accuracy", result(is_valid=is_accuracy_valid, value=None), score(percent)),
    ]
    (found,) = outcome.by_scenario(runs)
    assert list(found.problems) == expected
    record = outcome.results_record(config(), "id", runs)
    assert record["passed"] == (expected == [])
    assert bool(record["reasons"]) == (record["verdict"] == "INVALID")
    assert record["scenarios"][0]["problems"] == expected


def test_one_short_run_labels_the_whole_call():
    runs = [
        finished("Offline", "performance", result(label="full-length run")),
        finished("Server", "performance", result()),
    ]
    assert outcome.label_of(runs) == TEST_RUN_LABEL
    assert outcome.label_of(runs[:1]) == "full-length run"
    other = "not measured by the rules (target_latency_percentile), not an MLPerf result"
    departed = [*runs, finished("Offline", "performance", result(label=f"{TEST_RUN_LABEL}; {other}"))]
    assert outcome.label_of(departed) == f"{TEST_RUN_LABEL}; {other}"


@pytest.mark.parametrize(("origin", "is_noted"), [("warm-up estimate", True), ("user", False)])
def test_a_server_rate_that_the_harness_chose_is_noted_beside_the_table(origin, is_noted):
    row = {"scenario": {"value": "Server"}, "target_qps": {"value": 5.0, "origin": origin}}
    notes = outcome.notes_on(config(), [finished("Server", "performance", {**result(), "run": row})])
    assert any("--find" in note for note in notes) is is_noted


def test_the_table_is_aligned_and_says_label_reason_and_dash_for_what_was_not_run():
    runs = [
        finished("SingleStream", "performance", result(is_valid=False, value=0.0449)),
        finished("Offline", "performance", result(value=177966.4)),
        finished("Offline", "accuracy", result(value=None), score()),
    ]
    results = outcome.results_record(config(CM_MLPERF_MODEL="resnet50"), "id", runs, notes=["a note"])
    text = table.render("digits", results)
    assert text == (
        "digits\n"
        "test run, not a valid MLPerf result\n"
        "\n"
        "Scenario      Metric        Value  Unit       LoadGen  Accuracy   Score  Target  Pass\n"
        "SingleStream  throughput   0.0449  samples/s  INVALID  -              -       -  NO\n"
        "Offline       throughput  177,966  samples/s  VALID    acc       99.332  98.339  yes\n"
        "\n"
        "Not passed:\n"
        "  SingleStream performance is INVALID: too slow\n"
        "\n"
        "Short runs, each made once: two of them can differ by half. To compare, add --repeats=6.\n"
        "a note\n"
    )


def test_a_performance_run_alone_has_not_passed_an_accuracy():
    assert [row[-1] for row in table_rows(finished("Offline", "performance", result()))] == ["-"]
    assert [row[-1] for row in table_rows(finished("Offline", "performance", result(is_valid=False)))] == ["NO"]


def table_rows(run):
    scenarios = outcome.results_record(config(CM_MLPERF_MODEL="resnet50"), "id", [run])["scenarios"]
    return list(table.narrow(table.result_rows(scenarios)))


def test_a_run_without_a_figure_is_shown_with_dashes():
    run = finished("Server", "performance", result(is_valid=False, value=None))
    assert table_rows(run) == [("Server", "-", "-", "-", "INVALID", "-", "-", "-", "NO")]


def test_each_accuracy_metric_has_a_row_and_each_missed_one_a_reason():
    metrics = [metric("ROUGE1", 42.9, 42.56), metric("GEN_LEN", 5_000_000, 3_615_190, 4_418_566), metric("X", 1, None)]
    content = {"metrics": metrics, "passed": False}
    run = finished("Offline", "accuracy", result(value=None), content)
    (found,) = outcome.by_scenario([run])
    assert table_rows(run) == [
        ("Offline", "-", "-", "-", "-", "ROUGE1", "42.900", "42.560", "NO"),
        ("", "", "", "", "", "GEN_LEN", "5,000,000", "3,615,190 to", ""),
        ("", "", "", "", "", "", "", "4,418,566", ""),
        ("", "", "", "", "", "X", "1.000", "-", ""),
    ]
    assert found.problems == ("Offline accuracy GEN_LEN 5,000,000 misses the target 3,615,190 to 4,418,566",)


def test_synthetic_input_is_said_in_the_label_and_the_notes():
    label = f"{SYNTHETIC_LABEL}; {TEST_RUN_LABEL}"
    runs = [
        finished("Offline", "performance", result(label="full-length run")),
        finished("Server", "performance", result(label=label, is_synthetic=True)),
    ]
    record = outcome.results_record(config(), "id", runs)
    assert record["label"] == label
    assert record["is_synthetic"] == {"model": True, "dataset": False, "backend": False}
    assert record["notes"][0].startswith("weights are synthetic")
    assert outcome.label_of(runs[:1]) == "full-length run"
    assert SYNTHETIC_LABEL in table.render("t", record)


def test_an_own_model_and_incomplete_data_are_said_in_label_files_table_and_page():
    said = ["own model (not the published file)", "50 of 50,000 samples"]
    facts = {"model": "own", "dataset": "given", "sample_count": 50, "benchmark_sample_count": 50_000}
    row = {**result(label="; ".join([*said, TEST_RUN_LABEL])), "provenance": facts}
    runs = [finished("Offline", "performance", row), finished("Server", "performance", result())]
    record = outcome.results_record(config(CM_MLPERF_MODEL="resnet50"), "id", runs)
    assert (record["provenance"], record["label"]) == (facts, "; ".join([*said, TEST_RUN_LABEL]))
    assert said[0] in table.render("t", record)
    assert outcome.results_record(config(), "id", runs[1:])["provenance"] is None
    assert any("--renew rebuilds it" in note for note in record["notes"])
    given = outcome.notes_on(config(CM_MLPERF_MODEL="resnet50", CM_MLPERF_OWN_MODEL_PATH="/m.onnx"), runs)
    assert not any("--renew" in note for note in given)


COMMIT = "0123456789ab" * 3 + "0123"
CROWDPERF = {"text": "0.1.0+g0123456789ab", "version": "0.1.0", "commit": COMMIT, "is_modified": False}


def remarks(command: str) -> outcome.Remarks:
    return outcome.Remarks(command, (), (), [], CROWDPERF)


def test_summary_page_and_files_say_which_crowdperf_made_them():
    runs = [finished("Offline", "performance", result())]
    record = outcome.results_record(config(), "id", runs, made_by="crowdperf 0.1.0+g0123456789ab")
    environment = outcome.environment_record(runs, {}, remarks("cm run"))
    assert environment["crowdperf"] == CROWDPERF
    assert "Made by crowdperf 0.1.0+g0123456789ab" in table.render("t", record)
    assert "0.1.0+g0123456789ab" in page.render("t", record, environment, {})


def measured(scenario: str, *, load: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """A performance run's result.json with its settings as the harness records them: a number, or one with origin."""
    rows = {name: value if isinstance(value, dict) else {"value": value, "origin": "warm-up estimate"}
            for name, value in {"instances": 2, "threads": 1, "device": "cpu", "scenario": scenario, **settings}.items()
            }  # fmt: skip
    machine = {"processor": "Xeon", "core_count": 2, "gpus": []}
    return {**result(), "run": rows, "load": load or {}, "machine": machine, "issue_shape": "batches of 64"}


def test_the_settings_that_the_harness_chose_stand_below_the_table_once_for_equal_ones():
    given = {"value": 500.0, "origin": "user"}
    runs = [
        finished("SingleStream", "performance", measured("SingleStream", instances=1, batch_size=1)),
        finished("MultiStream", "performance", measured("MultiStream", instances=1, batch_size=1)),
        finished("Offline", "performance", measured("Offline", batch_size=64, target_qps=90_000)),
        finished(
            "Server", "performance", measured("Server", batch_size=8, target_qps=given, threads=given | {"value": 2})
        ),
    ]
    results = outcome.results_record(config(), "id", runs)
    text = table.render("digits", results)
    assert (
        "Settings (chosen by the harness unless marked as given):\n"
        "  SingleStream, MultiStream  1 instance of 1 thread\n"
        "  Offline                    2 instances of 1 thread, batch of 64\n"
        "  Server                     2 instances of 2 threads (4 threads given in total), batch of 8, 500 "
        "queries/s sent"
        " (given)\n"
    ) in text
    html = page.render("t", results, outcome.environment_record(runs, {}, remarks("cm run")), {})
    assert "2 instances of 1 thread, batch of 64" in html
    assert "Run id; 2026-11-21 01:02 UTC; Xeon, 2 CPUs" in html


def test_a_disturbed_run_is_said_below_the_table_on_the_page_and_in_the_record():
    busy = {"mean_machine_cpu_percent": 99.8, "mean_process_cpu_percent": 85.6}
    runs = [
        finished("Offline", "performance", measured("Offline", load=busy)),
        finished("Server", "performance", measured("Server", load={**busy, "mean_process_cpu_percent": 21.0})),
    ]
    results = outcome.results_record(config(), "id", runs)
    line = "other programs used 57 % of the CPU during Offline, 89 % during Server: do not compare these results"
    assert results["disturbances"] == [line]
    assert results["scenarios"][0]["performance"]["disturbances"] == ["other programs used 57 % of the CPU"]
    text = table.render("digits", results)
    assert line in text.replace("\n  ", " ")
    assert line in page.render("t", results, outcome.environment_record(runs, {}, remarks("cm run")), {})
    assert table.warnings_of(results)[1] in text


def test_the_table_fits_100_columns_with_the_longest_metric_of_each_scenario():
    rows = []
    for scenario in ALL_SCENARIOS:
        found = METRIC_OF_SCENARIO[scenario]
        content = result(value=123_456.0)
        content["metric"] = {"name": found.name, "value": 123_456.0, "unit": found.unit}
        content["valid"] = False
        rows.append(finished(scenario.value, "performance", content))
        rows.append(finished(scenario.value, "accuracy", result(value=None), score()))
    tokens = result(value=None) | {"metric": {"name": TOKEN_METRIC.name, "value": 1234.5, "unit": TOKEN_METRIC.unit}}
    lengths = {"metrics": [metric("GEN_LEN", 4_016_878, 3_615_190, 4_418_566)], "passed": True}
    gptj = [
        finished("Offline", "performance", tokens), finished("Offline", "accuracy", result(value=None), lengths),
        finished("SingleStream", "performance", result(value=123.4)),
    ]  # fmt: skip
    for runs in (rows, gptj):
        results = outcome.results_record(config(), "id", runs)
        assert max(map(len, table.render("t" * 60, results).splitlines())) <= 100


def test_answers_made_token_by_token_have_lines_of_their_own():
    lengths = {"min": 2, "mean": 9.5, "max": 128, "percentiles": {"50": 8, "90": 16, "99": 128}, "bar_width": 10,
               "histogram": [{"from": 0, "count": 70}]}  # fmt: skip
    tally = {"issued": 70, "completed": 70, "lengths": lengths, "finish_reasons": {"length": 1, "stop": 69}}
    spread = {"p50": 1234.5, "p90": 12_345.6, "p99": 123_456.7}
    text = {"tokens_per_second": 1_234_567.0, "ttft_ms": spread, "tpot_ms": spread, "tally": tally, "limits": None}
    rows = [finished("Server", "performance", result() | {"text": text}), finished("Offline", "performance", result())]
    results = outcome.results_record(config(), "id", rows)
    lines = table.render("t", results).splitlines()
    heading = next(line for line in lines if line.startswith("Answers"))
    assert heading.split("  ")[0] == "Answers" and heading.split()[1:] == ["Metric", "mean", "p50", "p90", "p99"]
    assert lines[lines.index(heading) + 1].split() == [
        "Server", "tokens", "per", "second", "1,234,567"
    ]  # fmt: skip
    assert any("70 answers of 2 to 128 tokens" in line for line in lines)
    assert max(map(len, lines)) <= 100
    shown = page.render("t", results, outcome.environment_record(rows, {}, remarks("cm run")), {})
    assert "<h2>Answers</h2>" in shown and "ended by length 1, stop 69" in shown


def test_a_long_title_is_wrapped_too():
    rows = [finished("Offline", "performance", result())]
    results = outcome.results_record(config(), "id", rows)
    assert max(map(len, table.render("t" * 60, results).splitlines())) <= 100


# --- the page ---

LOAD = {
    "format": 1, "interval_s": 0.5, "gpus": [{"index": 0, "name": "<GPU>"}],
    "columns": ["time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent", "gpu0_percent", "gpu0_bytes",
                "gpu0_w"],
    "rows": [[0.5, 1 << 20, 50.0, 25.0, 90, 1 << 20, 300.0], [1.0, 3 << 20, 150.0, None, None, None, None]],
}  # fmt: skip


def page_of(label: str = TEST_RUN_LABEL, loads: dict[str, Any] | None = None, title: str = "t") -> str:
    latency = {f"{name}_ns": 1_000_000 for name in ("p50", "p90", "p99", "p99_9", "max", "min", "mean")}
    runs = [
        finished("SingleStream", "performance", {**result(label=label), "latency": latency}),
        finished("Offline", "accuracy", result(value=None, label=label), score()),
    ]
    environment = outcome.environment_record(runs, {"CM_HOST_OS_TYPE": "<linux>"}, remarks("cm run <script>"))
    return page.render(title, outcome.results_record(config(), "id", runs), environment, loads or {})


def test_the_page_shows_figures_latencies_plots_and_the_machine():
    text = page_of(loads={"digits/SingleStream/performance": LOAD})
    for part in ("throughput", "12.5", "VALID", "99.332", "98.339", TEST_RUN_LABEL, "python", "3.11.7", "OS_TYPE"):
        assert part in text
    assert text.count('role="img"') == 2, "the latencies, for a page and for a phone; two points of load are no plot"
    assert "SingleStream: memory of the process about 2 MiB; CPU, the process about 100 % of one core" in text
    assert "Offline: " not in text, "an accuracy run's load is left out"


def test_a_card_of_each_scenario_has_result_verdict_scores_label_and_links_to_its_logs():
    text = page_of()
    first, second = re.findall(r'<li class="card">(.*?)</li>', text, re.DOTALL)
    assert '<p class="figure">12.5 <span class="unit">samples/s</span></p>' in first
    assert '<span class="tag good">VALID</span>' in first and 'href="digits/SingleStream/performance/"' in first
    assert '<span class="tag warn">test run</span>' in first and "no accuracy run" in first
    assert "acc 99.332 (target 98.339)" in second and 'href="digits/Offline/accuracy/"' in second
    assert "no performance run" in second


def test_the_latency_chart_has_the_limit_of_server_and_leaves_offline_out():
    latency = {f"{name}_ns": 1_000_000 for name in ("p50", "p90", "p99", "p99_9", "max")}
    limit = {"target_latency_ms": {"value": 200.0, "origin": "rule"}}
    rows = [
        {"scenario": name, "performance": {"latency": latency, "run": limit, "text": None}, "accuracy": None}
        for name in ("SingleStream", "Offline", "Server")
    ]
    text = page.latencies(rows)
    assert text.count("limit of Server 200 ms") == 2 and "limit of SingleStream" not in text
    assert "SingleStream p50 1, p90 1, p99 1, p99.9 1, max 1; Server p50" in text
    assert text.count("<tr>") == 1 + 5 and "Single<wbr>Stream" in text and ">Offline</th>" in text
    given = {**rows[2], "performance": {**rows[2]["performance"], "run": {"target_latency_ms": {"value": 9.0}}}}
    assert "limit of" not in page.latencies([given]), "one that the caller chose is not the rules'"


def test_the_page_has_commands_to_copy_that_repeat_compare_and_share():
    commands = re.findall(r'<pre class="copy"[^>]*>([^<]+)</pre>', page_of())
    assert commands == [
        "cm run &lt;script&gt;",
        "cm diff script id OTHER_RESULT",
        "cm run script --tags=share,mlperf,result --result=id --dry_run",
    ]


def test_the_page_calls_the_machine_of_a_client_one():
    asked = {"machine": {"processor": "Client CPU", "core_count": 2}, "run": {"backend": {"value": "endpoint"}}}
    runs = [finished("Offline", "performance", {**result(), **asked})]
    environment = outcome.environment_record(runs, {"CM_HOST_OS_TYPE": "linux"}, remarks("cm run"))
    text = page.render("t", outcome.results_record(config(), "id", runs), environment, {})
    assert "measured: a server behind an endpoint, whose machine is not known; client: Client CPU, 2 CPUs" in text
    assert "facts of the client, not of the server" in text


def test_the_page_escapes_everything_and_loads_and_runs_nothing():
    text = page_of(label="<script>alert(1)</script>", loads={"digits/SingleStream/performance": LOAD}, title='<b>&"')
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert "&lt;GPU&gt;" in text
    assert "cm run &lt;script&gt;" in text
    assert "default-src 'none'" in text
    assert not any(word in text for word in ("http://", "https://", "src=", "@import", "url("))


# --- a whole call ---


def test_a_call_makes_each_run_scores_accuracy_and_writes_the_records(call, capsys):
    cm = FakeCM()
    answer, state, (folder,) = call(cm, CM_MLPERF_LOADGEN_SCENARIO="offline")
    assert answer == {"return": 0}
    queries = [request["tags"] for request in cm.calls]
    base = "app,mlperf,inference,_digits,_onnxruntime,_cpu,_offline,_"
    assert queries == [base + "performance", base + "accuracy", "process,mlperf,accuracy"]
    assert cm.calls[0]["output_dir"] == str(folder / "digits/Offline/performance/run_1")
    assert cm.calls[2]["result_dir"] == cm.calls[1]["output_dir"] == str(folder / "digits/Offline/accuracy")
    assert all(request["quiet"] for request in cm.calls)
    results = json.loads((folder / "results.json").read_text())
    assert state["mlperf_results"] == results
    assert results["passed"] is True
    assert results["label"] == TEST_RUN_LABEL
    assert results["scenarios"][0]["performance"]["folder"] == "digits/Offline/performance/run_1"
    summary = (folder / "summary.txt").read_text()
    printed = capsys.readouterr().out
    assert summary in printed
    assert TEST_RUN_LABEL in summary
    assert "digits is not an MLPerf benchmark." in summary
    html = (folder / "results.html").read_text()
    assert html.count(TEST_RUN_LABEL) >= 2 and html.count(">test run</span>") >= 1
    assert "no load was recorded" in html
    assert printed.index("2 LoadGen runs, at least 2 s") < printed.index("Run 1 of 2")


def test_environment_json_holds_what_the_runs_said_the_host_and_every_recipe(call):
    inputs = {
        "scenario": "offline", "check": False, "resume": "all", "quiet": True, "adr": {},
        "env": {"CM_HF_TOKEN": "hunter2", "CM_A": "1"},
    }  # fmt: skip
    _, _, (folder,) = call(FakeCM(), inputs, CM_MLPERF_LOADGEN_SCENARIO="offline")
    environment = json.loads((folder / "environment.json").read_text())
    repeat = "--check- --env.CM_A=1 --scenario=offline"
    assert environment["command"] == f"cm run script --tags=run,mlperf,inference {repeat}"
    assert environment["host"] == {"CM_HOST_OS_TYPE": "linux"}
    assert [run["versions"] for run in environment["runs"]] == [{"python": "3.11.7"}] * 2
    digests = {recipe["alias"]: recipe["sha256"] for recipe in environment["recipes"]}
    assert len(digests["app-mlperf-inference"]) == 64
    assert set(digests) == {path.parent.name for path in RECIPES.glob("*/_cm.yaml")}


def test_the_steps_of_a_recipe_are_shown_once(call):
    cm = FakeCM()
    call(cm)
    shown = [request["tags"] for request in cm.calls if not request["silent"]]
    assert shown == [PERFORMANCE_TAGS.format("singlestream"), "process,mlperf,accuracy"]
    assert {request["silent"] for request in cm.calls[3:]} == {"steps"}


def test_a_silent_call_prints_problems_only(call, capsys):
    cm = FakeCM()
    answer, _, (folder,) = call(cm, CM_TMP_SILENT="yes")
    assert (answer, capsys.readouterr().out) == ({"return": 0}, "")
    assert all(request["silent"] is True for request in cm.calls)
    assert "Offline" in (folder / "summary.txt").read_text()
    busy = {"mean_machine_cpu_percent": 99.8, "mean_process_cpu_percent": 85.6}
    state = {"mlperf_run": measured("Offline", load=busy)}
    disturbed = {"CM_MLPERF_LOADGEN_SCENARIO": "offline", "CM_MLPERF_LOADGEN_MODE": "performance"}
    call(FakeCM(_performance={"return": 0, "new_state": state}), CM_TMP_SILENT="yes", **disturbed)
    line = "other programs used 57 % of the CPU during Offline: do not compare these results\n"
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(
    ("done", "left", "text"),
    [
        ([], ["performance", "accuracy"], "at least 60 s left"),
        ([], ["accuracy"], ""),
        ([("performance", 75.0)], ["accuracy", "performance"], "at least 60 s left"),
        ([("performance", 75.0), ("accuracy", 20.0)], ["accuracy"], "about 20 s left"),
        ([("performance", 75.0), ("accuracy", 30.0)], ["performance", "accuracy"], "about 2 min left"),  # 60 + 15 + 30
        ([("performance", 75.0), ("accuracy", 4000.0)], ["performance", "accuracy"], "about 1 h 8 min left"),
    ],
)
def test_what_is_left_of_a_call_comes_from_the_plan_and_from_the_runs_before(done, left, text):
    def spec(mode: str) -> Any:
        (found,) = matrix.matrix(
            config(CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE=mode, CM_MLPERF_RUN_STYLE="fast")
        )
        return found

    took = [remaining.Took(spec(mode), seconds) for mode, seconds in done]
    assert remaining.left_text([spec(mode) for mode in left], took) == text


def test_overrides_of_the_call_reach_every_recipe_and_its_other_inputs_do_not(call):
    cm = FakeCM()
    adr = {"python": {"name": "other"}}
    call(cm, {"adr": adr, "scenario": "offline", "out": "con", "cmd": []}, CM_MLPERF_LOADGEN_SCENARIO="offline")
    assert all(request["adr"] == adr for request in cm.calls)
    assert all(not {"out", "cmd", "scenario"} & set(request) for request in cm.calls)


def test_the_first_failure_ends_the_call_with_its_code_and_reason(call):
    cm = FakeCM(_multistream={"return": 2, "error": "the harness died"})
    answer, state, (folder,) = call(cm)
    assert answer["return"] == 2
    assert "MultiStream performance failed: the harness died" in answer["error"]
    assert str(folder) in answer["error"]
    assert len(cm.calls) == 4
    assert state == {}
    assert not (folder / "results.json").exists()


def test_an_invalid_result_is_written_and_shown_and_fails_the_call(call, capsys):
    cm = FakeCM(_performance={"return": 0, "new_state": {"mlperf_run": result(is_valid=False)}})
    answer, _, (folder,) = call(cm, CM_MLPERF_LOADGEN_SCENARIO="offline")
    assert answer["return"] == 1
    assert "Offline performance is INVALID: too slow" in answer["error"]
    assert "INVALID: too slow" in (folder / "summary.txt").read_text()
    assert "INVALID: too slow" in capsys.readouterr().out
    assert json.loads((folder / "results.json").read_text())["passed"] is False


def server_result(sent: float, *, is_valid: bool, origin: str = "warm-up estimate", is_late: bool = True) -> dict:
    content = measured("Server", target_qps={"value": sent, "origin": origin})
    reasons = [LATE_REASON, "Reduce target QPS to improve latency."] if is_late else ["minimum query count not met"]
    metric = {"name": "completed queries per second", "value": sent * 0.9, "unit": "queries/s"}
    return {**content, "valid": is_valid, "invalid_reasons": [] if is_valid else reasons, "metric": metric}


class ServerRuns(FakeCM):
    """Gives one of these results after the other, and leaves a log of each."""

    def __init__(self, *results: dict[str, Any]) -> None:
        super().__init__()
        self._results = list(results)

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "record":
            return {"return": 0}
        self.calls.append(request)
        folder = Path(request["output_dir"])
        folder.mkdir(parents=True)
        content = self._results.pop(0)
        (folder / "mlperf_log_summary.txt").write_text(str(content["valid"]))
        return {"return": 0, "new_state": {"mlperf_run": {"output_dir": str(folder), **content}}}


SERVER_ONLY = {"CM_MLPERF_LOADGEN_SCENARIO": "server", "CM_MLPERF_LOADGEN_MODE": "performance"}


def test_a_server_run_that_is_late_at_the_harness_own_rate_is_made_once_more_at_half(call, capsys):
    cm = ServerRuns(server_result(2000.0, is_valid=False), server_result(900.0, is_valid=True, origin="user"))
    answer, state, (folder,) = call(cm, **SERVER_ONLY)
    assert answer == {"return": 0}
    assert [request.get("target_qps") for request in cm.calls] == [None, "900.0"]
    assert (folder / "digits/Server/first_attempt/mlperf_log_summary.txt").read_text() == "False"
    second = folder / "digits/Server/performance/run_1"
    assert (second / "mlperf_log_summary.txt").read_text() == "True"
    kept = json.loads((second / "result.json").read_text())
    assert kept["run"]["target_qps"] == {"value": 900.0, "origin": "changed after an INVALID run"}
    assert "output_dir" not in kept
    attempt = state["mlperf_results"]["scenarios"][0]["performance"]["first_attempt"]
    assert attempt["folder"] == "digits/Server/first_attempt"
    assert (attempt["target_qps"], attempt["invalid_reasons"][0]) == (2000.0, LATE_REASON)
    printed = capsys.readouterr().out
    assert f"Server is INVALID ({LATE_REASON}): 2,000 queries/s were sent, a rate chosen by the harness." in printed
    assert "The logs of the first run are in digits/Server/first_attempt" in " ".join(printed.split())
    assert "To find the maximum, add --find=yes" in printed  # still a rate that was chosen here
    assert found_runs.find_runs(folder)[0][0].paths.folder == second


def test_an_offline_run_that_is_too_short_at_the_harness_own_rate_is_made_once_more_at_a_higher_one(call, capsys):
    metric = {"name": "throughput", "value": 9000.0, "unit": "samples/s"}
    first = {**measured("Offline", target_qps=8000.0), "metric": metric, "valid": False, "duration_s": 60.0}
    first["invalid_reasons"] = [SHORT_REASON, "Increase expected QPS so the loadgen pre-generates a larger query."]
    cm = ServerRuns(first, {**measured("Offline", target_qps={"value": 13_500.0, "origin": "user"}), "metric": metric})
    answer, _, _ = call(cm, CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="performance")
    assert answer == {"return": 0}
    assert [request.get("target_qps") for request in cm.calls] == [None, "13500.0"]
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "it was planned for 8,000 samples/s, a rate chosen by the harness. Running it once more with 13,500." in printed
    )
    assert "The logs of the first run are in digits/Offline/first_attempt" in printed
    assert "To find the maximum, add --find=yes" not in printed


def short_run(planned_for: float, answered: float, origin: str = "warm-up estimate") -> dict[str, Any]:
    content = measured("Offline", target_qps={"value": planned_for, "origin": origin})
    metric = {"name": "throughput", "value": answered, "unit": "samples/s"}
    reasons = [SHORT_REASON, "Increase expected QPS so the loadgen pre-generates a larger query."]
    return {**content, "metric": metric, "valid": False, "invalid_reasons": reasons, "duration_s": 60.0}


def test_an_offline_estimate_is_repeated_until_the_run_is_long_enough(call, capsys):
    runs = [short_run(20.0, 40.0), short_run(60.0, 60.0, "user"), short_run(90.0, 100.0, "user")]
    metric = {"name": "throughput", "value": 100.0, "unit": "samples/s"}
    last = {**measured("Offline", target_qps={"value": 150.0, "origin": "user"}), "metric": metric}
    answer, state, (folder,) = call(
        cm := ServerRuns(*runs, last), CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="performance"
    )
    assert answer == {"return": 0}
    assert [request.get("target_qps") for request in cm.calls] == [None, "60.0", "90.0", "150.0"]
    attempt = state["mlperf_results"]["scenarios"][0]["performance"]["first_attempt"]
    assert (attempt["folder"], attempt["target_qps"]) == ("digits/Offline/first_attempt", 20.0)
    assert [one["target_qps"] for one in attempt["between"]] == [60.0, 90.0]
    printed = " ".join(capsys.readouterr().out.split())
    assert "Offline was INVALID with a target of 20, 60, 90, so it was run 3 more times with other targets" in printed
    assert [run.paths.folder.name for run in found_runs.find_runs(folder)[0]] == ["run_1"]


def test_an_offline_estimate_is_not_repeated_for_ever(call):
    runs = [short_run(20.0 * 3**step, 40.0 * 3**step, "user" if step else "warm-up estimate") for step in range(9)]
    cm = ServerRuns(*runs)
    answer, _, _ = call(cm, CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="performance")
    assert answer["return"] == 1
    assert len(cm.calls) == 4


def test_a_second_late_run_is_the_last_and_the_rate_to_give_is_named(call):
    cm = ServerRuns(server_result(2000.0, is_valid=False), server_result(900.0, is_valid=False, origin="user"))
    answer, _, _ = call(cm, **SERVER_ONLY)
    assert answer["return"] == 1
    assert len(cm.calls) == 2
    assert "900 queries/s were sent, try --server_target_qps=405" in answer["error"]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (
            server_result(2000.0, is_valid=False, origin="user"),
            "2,000 queries/s were sent, try --server_target_qps=900",
        ),
        (server_result(2000.0, is_valid=False, is_late=False), "minimum query count not met"),
    ],
)
def test_a_rate_of_the_user_or_another_reason_makes_no_second_run(call, first, words):
    cm = ServerRuns(first)
    answer, _, _ = call(cm, **SERVER_ONLY)
    assert answer["return"] == 1
    assert len(cm.calls) == 1
    assert words in answer["error"]
    assert "Reduce target QPS" not in answer["error"]


def test_a_missed_accuracy_fails_the_call(call):
    cm = FakeCM(process={"return": 0, "new_state": {"mlperf_accuracy": score(10.5)}})
    answer, _, _ = call(cm, CM_MLPERF_LOADGEN_SCENARIO="offline", CM_MLPERF_LOADGEN_MODE="accuracy")
    assert answer["return"] == 1
    assert "misses the target" in answer["error"]


def test_a_bad_input_starts_nothing(call):
    cm = FakeCM()
    answer, _, folders = call(cm, CM_MLPERF_GPUS="0")
    assert answer["return"] == 1
    assert "--gpus: found '0': device cpu has none" in answer["error"]
    assert "hint: cm help script run-mlperf-inference" in answer["error"]
    assert (cm.calls, folders) == ([], [])


def test_two_calls_in_one_second_get_two_folders(tmp_path, monkeypatch):
    class Clock:
        @staticmethod
        def now(zone):
            from datetime import datetime

            return datetime(2026, 11, 21, 1, 2, 3, tzinfo=zone)

    monkeypatch.setattr(recipe, "datetime", Clock)
    wanted = config(CM_MLPERF_RESULTS_DIR=str(tmp_path))
    names = [recipe.new_paths(wanted).folder.name for _ in range(2)]
    assert names == ["20261121T010203Z-digits-onnxruntime-cpu", "20261121T010203Z-digits-onnxruntime-cpu-2"]


def test_a_results_folder_that_cannot_be_made_is_named(call, tmp_path):
    (tmp_path / "file").write_text("")
    answer, _, _ = call(FakeCM(), CM_MLPERF_RESULTS_DIR="file")
    assert answer["return"] == 1
    assert "--results_dir" in answer["error"]


def test_a_results_folder_that_is_not_utf_8_is_refused_before_anything_is_made() -> None:
    for changed in ({"CM_MLPERF_RESULTS_DIR": "/x/lat\udce9"}, {"CM_TMP_CURRENT_PATH": "/lat\udce9"}):
        (line,) = problems(**changed)
        assert line.startswith("--results_dir: found '/") and "lat\\udce9" in line and "valid UTF-8" in line


def test_a_user_conf_that_is_not_there_is_refused_before_anything_is_made(call, tmp_path: Path) -> None:
    cm = FakeCM()
    answer, _, folders = call(cm, CM_MLPERF_USER_CONF="absent.conf")
    assert answer["return"] == 1
    assert f"--user_conf: {tmp_path / 'absent.conf'} is not a file" in answer["error"]
    assert (cm.calls, folders) == ([], [])


def test_inputs_for_engines_that_answer_prompts_go_to_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--max_in_flight: found '4', only for backends that answer prompts: " in problems(
        CM_MLPERF_MAX_IN_FLIGHT="4"
    )[0]  # fmt: skip
    monkeypatch.setattr(matrix, "misfit", lambda *names: "")
    specs = matrix.matrix(config(CM_MLPERF_BACKEND="scripted", CM_MLPERF_MAX_IN_FLIGHT="4"))
    assert {spec.inputs["max_in_flight"] for spec in specs} == {"4"}
    monkeypatch.undo()
    given = {"CM_MLPERF_MODEL": "llama3.1-8b", "CM_MLPERF_LOADGEN_SCENARIO": "Interactive"}
    assert config(**given, CM_MLPERF_ENDPOINT_URL="http://h/v1").backend == "endpoint"
    assert config(**given).backend == default_backend("llama3.1-8b") != "onnxruntime"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://there/v1")
    assert config(**given).backend == default_backend("llama3.1-8b")
    specs = matrix.matrix(config(**given, CM_MLPERF_BACKEND="endpoint"))
    assert {spec.inputs["endpoint"] for spec in specs} == {"http://there/v1"}
    assert problems(**given, CM_MLPERF_RUN_FIND="yes")[0].startswith("--find: of backends that answer prompts")


def test_a_search_makes_performance_runs_only() -> None:
    specs = matrix.matrix(config(CM_MLPERF_RUN_FIND="yes", CM_MLPERF_LOADGEN_SCENARIO="offline,server"))
    assert [(spec.mode.value, spec.options["find"]) for spec in specs] == [("performance", "yes")] * 2
    assert problems(CM_MLPERF_RUN_FIND="yes", CM_MLPERF_LOADGEN_MODE="accuracy") == (
        "--find: accuracy runs have no target to find. Omit --mode",
    )


def test_the_settings_of_an_engine_are_what_it_works_on_at_once_and_the_rate_sent() -> None:
    settings_text = load_module("run-mlperf-inference", "runsettings").settings_text
    run = {"scenario": {"value": "Interactive"}, "instances": None, "batch_size": None,
           "target_qps": {"value": 12.5, "origin": "user"}}  # fmt: skip
    engine = {"max_in_flight": {"value": 2048, "origin": "default"}}
    assert settings_text({"run": run, "text": {"engine": engine}}) == (
        "at most 2,048 in flight, 12.5 queries/s sent (given)"
    )
    run["scenario"] = {"value": "Offline"}
    assert settings_text({"run": run, "text": {"engine": engine}}) == "at most 2,048 in flight"
    assert settings_text({"run": run, "text": {"engine": {"threads": {"value": 2}}}}) == ""


@pytest.mark.parametrize(
    ("scenario", "shape", "batch_size", "text"),
    [
        ("Server", "inline", 32, "2 instances, one query at a time"),
        ("Server", "queued", 1, "2 instances, batch of 1"),  # sent one by one, and joined by Triton's batcher
        ("Offline", "batches of 32 on 2 instances", 32, "2 instances, batch of 32"),
        ("MultiStream", "inline batch", 32, "2 instances"),
    ],
)
def test_the_settings_say_a_batch_where_samples_are_computed_together(
    scenario: str, shape: str, batch_size: int, text: str
) -> None:
    settings_text = load_module("run-mlperf-inference", "runsettings").settings_text
    run = {"scenario": {"value": scenario}, "instances": {"value": 2}, "batch_size": {"value": batch_size}}
    assert settings_text({"run": run, "issue_shape": shape}) == text


def test_the_time_that_runs_took_is_shown_next_to_the_one_announced():
    env = {"CM_MLPERF_LOADGEN_SCENARIO": "offline", "CM_MLPERF_RUN_STYLE": "test"}
    specs = [matrix.matrix(config(**env, CM_MLPERF_LOADGEN_MODE=mode))[0] for mode in ("performance", "accuracy")]
    took = [remaining.Took(spec, 5.0) for spec in specs]
    assert remaining.took_text(took, 2.4, 130.0) == "2 runs took 2 min, 2 s of it measuring (announced: at least 2 s)"
    assert remaining.took_text(took[1:], 1.0, 4.0) == "1 run took 4 s, 1 s of it measuring"
