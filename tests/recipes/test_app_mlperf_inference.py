"""app-mlperf-inference: from env to run.json, every problem named, run.sh's exit code, result.json to state."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from recipe_loader import RECIPES, load_module, load_recipe, recipe_meta

load_recipe("get-mlperf-results-lib").preprocess(
    {"env": {"CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "get-mlperf-results-lib")}}
)
recipe = load_recipe("app-mlperf-inference")
run_request = load_module("app-mlperf-inference", "run_request")

META = recipe_meta("app-mlperf-inference")
HARNESS = RECIPES / "app-mlperf-inference" / "harness"
GOOD = {
    "CM_MLPERF_MODEL": "digits",
    "CM_MLPERF_BACKEND": "onnxruntime",
    "CM_MLPERF_DEVICE": "cpu",
    "CM_MLPERF_LOADGEN_SCENARIO": "Offline",
    "CM_MLPERF_LOADGEN_MODE": "performance",
    "CM_MLPERF_RUN_STYLE": "test",
    "CM_ML_MODEL_FILE_WITH_PATH": "/m/digits.onnx",
    "CM_ML_MODEL_INFO_FILE": "/m/model.json",
    "CM_DATASET_PATH": "/d",
}
KNOWN = run_request.known_names(META["variations"])


def build(folder: Path = Path("/user"), **changes: object) -> dict:
    return run_request.build_request({**GOOD, **changes}, KNOWN, folder)


def test_plain_env_gives_every_key_with_none_where_the_harness_decides():
    assert build() == {
        "format": 1, "model": "digits", "backend": "onnxruntime", "device": "cpu", "scenario": "Offline",
        "mode": "performance", "execution_mode": "test", "model_path": "/m/digits.onnx",
        "model_info_path": "/m/model.json", "dataset_path": "/d", "output_dir": None, "user_conf": None,
        "batch_size": None, "threads": None, "min_duration_ms": None, "min_query_count": None,
        "performance_sample_count": None, "target_qps": None, "target_latency_ms": None,
    }  # fmt: skip


def test_given_values_arrive_as_numbers_and_absolute_paths():
    request = build(
        CM_MLPERF_LOADGEN_MAX_BATCHSIZE="32", CM_NUM_THREADS=2, CM_MLPERF_LOADGEN_TARGET_QPS="1e4",
        CM_MLPERF_LOADGEN_TARGET_LATENCY="0.5", CM_MLPERF_OUTPUT_DIR="out", CM_MLPERF_USER_CONF="/x/user.conf",
        CM_MLPERF_LOADGEN_MIN_DURATION_MS="500",
    )  # fmt: skip
    assert (request["batch_size"], request["threads"], request["min_duration_ms"]) == (32, 2, 500)
    assert (request["target_qps"], request["target_latency_ms"]) == (10000.0, 0.5)
    assert (request["output_dir"], request["user_conf"]) == ("/user/out", "/x/user.conf")


@pytest.mark.parametrize("text", ["single-stream", "SINGLESTREAM", "Single_Stream"])
def test_a_scenario_may_be_spelt_in_any_case(text):
    assert build(CM_MLPERF_LOADGEN_SCENARIO=text)["scenario"] == "SingleStream"


def test_all_wrong_values_are_named_at_once_with_the_known_ones():
    wrong = {key: "nonsense" for key in GOOD if not key.startswith(("CM_ML_MODEL", "CM_DATASET"))}
    with pytest.raises(run_request.RequestError) as caught:
        build(**wrong, CM_NUM_THREADS="0", CM_MLPERF_LOADGEN_TARGET_QPS="nan")
    assert len(caught.value.problems) == 8
    text = str(caught.value)
    for known in (
        "digits",
        "null, onnxruntime",
        "cpu",
        "SingleStream, MultiStream, Offline, Server",
        "test, fast, valid",
    ):
        assert known in text
    assert "a whole number from 1" in text
    assert "a number above 0" in text


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten", "٣", "1e3"])
def test_whole_numbers_only(text):
    assert run_request.whole_number(text) is None


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "fast"])
def test_finite_numbers_above_0_only(text):
    assert run_request.positive_number(text) is None


def test_variations_and_files_of_the_harness_name_the_same_models_and_backends():
    def files(kind: str) -> tuple[str, ...]:
        return tuple(sorted({path.stem for path in (HARNESS / kind).glob("*.py")} - {"__init__", "base"}))

    assert files("models") == KNOWN.models
    assert files("backends") == KNOWN.backends


def test_every_group_has_exactly_one_default():
    groups: dict[str, list[str]] = {}
    for name, block in META["variations"].items():
        groups.setdefault(block["group"], []).extend([name] if "default" in block else [])
    assert groups == {
        "mode": ["performance"], "device": ["cpu"], "model": ["digits"], "scenario": ["offline"],
        "backend": ["onnxruntime"],
    }  # fmt: skip


def test_every_input_is_described():
    assert set(META["input_mapping"]) == set(META["input_description"])


def test_preprocess_writes_run_json_and_removes_an_old_result(inside, hook_input):
    out = inside / "run 1"
    out.mkdir()
    (out / "result.json").write_text("{}")
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside), "CM_MLPERF_OUTPUT_DIR": "run 1"}, meta=META)
    assert recipe.preprocess(i) == {"return": 0}
    written = json.loads((out / "run.json").read_text())
    assert written == build(inside, CM_MLPERF_OUTPUT_DIR="run 1")
    assert i["env"]["CM_MLPERF_RUN_JSON"] == str(out / "run.json")
    assert not (out / "result.json").exists()


def test_without_an_output_folder_the_run_goes_below_results(inside, hook_input):
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside)}, meta=META)
    assert recipe.preprocess(i) == {"return": 0}
    folder = Path(i["env"]["CM_MLPERF_OUTPUT_DIR"])
    run_id, *rest = folder.relative_to(inside / "results").parts
    assert run_id.endswith("Z-digits-onnxruntime-cpu")
    assert rest == ["digits", "Offline", "performance", "run_1"]
    assert (folder / "run.json").is_file()


def test_preprocess_answers_a_wrong_value_with_code_1_and_writes_nothing(inside, hook_input):
    i = hook_input({**GOOD, "CM_TMP_CURRENT_PATH": str(inside), "CM_MLPERF_LOADGEN_SCENARIO": "foo"}, meta=META)
    answer = recipe.preprocess(i)
    assert answer["return"] == 1
    assert "unknown scenario 'foo'" in answer["error"]
    assert "hint: cm run script" in answer["error"]
    assert list(inside.iterdir()) == []


def test_postprocess_reads_the_result_into_env_and_state(inside, hook_input):
    result = {"valid": False, "label": "test run", "metric": {"value": 5.0, "unit": "ms"}, "errors": 0}
    (inside / "result.json").write_text(json.dumps(result))
    i = hook_input({"CM_MLPERF_OUTPUT_DIR": str(inside)})
    assert recipe.postprocess(i) == {"return": 0}
    assert i["state"]["mlperf_run"] == {"output_dir": str(inside), **result}
    assert i["env"]["CM_MLPERF_RUN_VALID"] == "no"
    assert i["env"]["CM_MLPERF_RUN_METRIC"] == "5.0 ms"


def test_postprocess_without_a_result_is_an_error(inside, hook_input):
    answer = recipe.postprocess(hook_input({"CM_MLPERF_OUTPUT_DIR": str(inside)}))
    assert answer["return"] == 1
    assert str(inside / "result.json") in answer["error"]


@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_run_sh_hands_on_the_exit_code_and_keeps_the_output(tmp_path, fake_tool, exit_code):
    out = tmp_path / "the run"
    out.mkdir()
    text = f'echo "$@"; echo "path=$PYTHONPATH"; pwd; echo story >&2; exit {exit_code}'
    folder = RECIPES / "app-mlperf-inference"
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": "/lib of results",
        "CM_PYTHON_BIN_WITH_PATH": str(fake_tool("python3", text)),
        "CM_TMP_CURRENT_SCRIPT_PATH": str(folder),
        "CM_MLPERF_OUTPUT_DIR": str(out),
        "CM_MLPERF_RUN_JSON": str(out / "run.json"),
        "CM_MLPERF_RUN_CONSOLE_FILE": str(out / "console.txt"),
    }
    done = subprocess.run(["bash", "-c", f". '{folder}/run.sh'"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == exit_code
    expected = [f"-m harness {out}/run.json", f"path={folder}:/lib of results", str(out), "story"]
    assert done.stdout.splitlines() == expected
    assert (out / "console.txt").read_text().splitlines() == expected
