"""process-mlperf-accuracy: only a finished accuracy run is scored, and the score reaches env and state."""

import json
import subprocess
from pathlib import Path

import pytest
from recipe_loader import RECIPES, exported, load_recipe

recipe = load_recipe("process-mlperf-accuracy")
FOLDER = RECIPES / "process-mlperf-accuracy"


def make_run(folder: Path, mode: str = "accuracy", with_log: bool = True) -> None:
    (folder / "run.json").write_text(json.dumps({"mode": mode}))
    if with_log:
        (folder / "mlperf_log_accuracy.json").write_text("[]")


def env_for(folder: Path, result_dir: str) -> dict[str, str]:
    return {
        "CM_TMP_CURRENT_PATH": str(folder),
        "CM_TMP_CURRENT_SCRIPT_PATH": str(FOLDER),
        "CM_MLPERF_ACCURACY_RESULTS_DIR": result_dir,
    }


def test_preprocess_finds_the_run_and_the_harness_and_removes_an_old_score(inside, hook_input):
    run = inside / "accuracy"
    run.mkdir()
    make_run(run)
    (run / "accuracy.json").write_text("{}")
    i = hook_input(env_for(inside, "accuracy"))
    assert recipe.preprocess(i) == {"return": 0}
    assert i["env"]["CM_MLPERF_ACCURACY_RUN_JSON"] == str(run / "run.json")
    assert not (run / "accuracy.json").exists()


def test_the_performance_runs_of_test01_and_test07_are_scored_on_the_responses_that_they_logged(inside, hook_input):
    make_run(inside, "performance")
    for test, expected in (("TEST04", 1), ("TEST01", 0), ("TEST07", 0), ("TEST09", 1)):
        (inside / "run.json").write_text(json.dumps({"mode": "performance", "compliance_test": test}))
        assert recipe.preprocess(hook_input(env_for(inside, ".")))["return"] == expected


def test_preprocess_asks_for_the_folder(hook_input):
    answer = recipe.preprocess(hook_input({"CM_TMP_CURRENT_SCRIPT_PATH": str(FOLDER)}))
    assert answer["return"] == 1
    assert "--result_dir" in answer["error"]


@pytest.mark.parametrize(
    ("mode", "with_log", "expected"),
    [("performance", True, "contains a performance run"), ("accuracy", False, "the run did not finish")],
)
def test_preprocess_refuses_what_cannot_be_scored(inside, hook_input, mode, with_log, expected):
    make_run(inside, mode, with_log)
    answer = recipe.preprocess(hook_input(env_for(inside, ".")))
    assert answer["return"] == 1
    assert expected in answer["error"]


@pytest.mark.parametrize("content", [None, "not json", "[]", "{}"])
def test_preprocess_refuses_a_folder_without_a_usable_run_json(inside, hook_input, content):
    if content is not None:
        (inside / "run.json").write_text(content)
    answer = recipe.preprocess(hook_input(env_for(inside, ".")))
    assert answer["return"] == 1
    assert ("it has no run.json" if content is None else "run.json cannot be used") in answer["error"]


@pytest.mark.parametrize(("passed", "word"), [(True, "yes"), (False, "no"), (None, "")])
def test_postprocess_exports_the_score(inside, hook_input, passed, word):
    metrics = [{"name": "ROUGE1", "value": 43.5}, {"name": "GEN_LEN", "value": 4000}]
    accuracy = {"metrics": metrics, "passed": passed}
    (inside / "accuracy.json").write_text(json.dumps(accuracy))
    i = hook_input({"CM_MLPERF_ACCURACY_RESULTS_DIR": str(inside)})
    assert recipe.postprocess(i) == {"return": 0}
    assert i["state"] == {"mlperf_accuracy": accuracy}
    left = exported("process-mlperf-accuracy", i["env"])
    assert left["CM_MLPERF_ACCURACY_METRICS"] == "ROUGE1=43.5,GEN_LEN=4000"
    assert left["CM_MLPERF_ACCURACY_PASSED"] == word


def test_postprocess_without_a_score_is_an_error(inside, hook_input):
    answer = recipe.postprocess(hook_input({"CM_MLPERF_ACCURACY_RESULTS_DIR": str(inside)}))
    assert answer["return"] == 1
    assert "accuracy.json" in answer["error"]


@pytest.mark.parametrize("exit_code", [0, 2])
def test_run_sh_calls_the_harness_and_hands_on_its_exit_code(tmp_path, fake_tool, exit_code):
    env = {
        "PATH": "/usr/bin:/bin",
        "CM_PYTHON_BIN_WITH_PATH": str(fake_tool("python3", f'echo "$@ $PYTHONPATH in $PWD"; exit {exit_code}')),
        "CM_MLPERF_ACCURACY_RESULTS_DIR": str(tmp_path),
        "CM_MLPERF_ACCURACY_RUN_JSON": "/a run/run.json",
    }
    done = subprocess.run(["bash", "-c", f". '{FOLDER}/run.sh'"], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (exit_code, f"-m crowdperf.harness score /a run/run.json  in {tmp_path}\n")
