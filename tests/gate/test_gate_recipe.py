"""The recipes check-mlperf-submission and run-mlperf-inference-submission-checker, with the real cm."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import recipe_metas
from recipe_loader import load_recipe
from tree_builder import build

from crowdperf.gate.steps import Step, command_of
from crowdperf.gate.views import Subject
from crowdperf.kit.user_paths import filled

CHECKOUT = Path(__file__).resolve().parents[2]
GATE = "--tags=check,mlperf,submission"
COMMUNITY = "--tags=run,mlperf,inference,submission,checker"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good open tree."""
    root = tmp_path_factory.mktemp("gate") / "my tree"
    build(root, "open")
    return root


@pytest.fixture(scope="module")
def cm(tmp_path_factory: pytest.TempPathFactory):
    """Runs `cm run script` in a home of its own that holds this checkout."""
    home = tmp_path_factory.mktemp("home")
    (home / "repos.json").write_text(json.dumps([str(CHECKOUT)]))
    program = Path(sys.executable).with_name("cm")
    if not program.exists():
        pytest.skip("this Python has no cm")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "CM_REPOS": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        call = [str(program), "run", "script", *words]
        return subprocess.run(call, cwd=home, env=env, capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.mark.parametrize("tags", [GATE, COMMUNITY])
def test_the_command_of_a_refused_call_has_the_folder_that_was_given(tags: str, tree, cm):
    done = cm(tags, f"--submission_dir={tree}")
    assert done.returncode != 0
    hint = next(line for line in done.stderr.splitlines() if line.strip().startswith("hint: cm run script"))
    assert f"--submission_dir={tree}" in shlex.split(hint)


@pytest.mark.parametrize(
    ("env", "command"),
    [
        ({}, "cm x --a=TREE --b=TREES"),
        ({"KEY": " "}, "cm x --a=TREE --b=TREES"),
        ({"KEY": "my tree"}, "cm x --a='my tree' --b=TREES"),
    ],
)
def test_words_in_capitals_are_filled_with_what_was_given(env: dict[str, str], command: str):
    assert filled("cm x --a=TREE --b=TREES", env, {"TREE": "KEY"}) == command


def test_a_good_tree_is_accepted_and_the_verdict_is_in_env_and_state(tree, cm):
    done = cm(GATE, f"--submission_dir={tree}", "--version=v6.1", "--expected_results=3", "--out=json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["new_env"] == {
        "CM_MLPERF_SUBMISSION_IS_ACCEPTED": "yes",
        "CM_MLPERF_SUBMISSION_RESULT_COUNT": "3",
        "CM_MLPERF_SUBMISSION_VERDICT": "accepted",
    }
    assert answer["new_state"]["mlperf_submission_check"]["findings"] == []


def test_the_wrong_round_is_refused_with_the_rule_and_the_command(tree, cm):
    done = cm(GATE, f"--submission_dir={tree}", "--version=v6.0")
    assert done.returncode != 0
    assert "verdict: refused (18 findings)" in done.stdout
    assert "RUN-007" in done.stderr + done.stdout
    assert "hint: cm run script --tags=generate-run-cmds,inference,_performance-only" in done.stdout


def test_the_communitys_recipe_hands_the_call_on(tree, cm):
    done = cm(COMMUNITY, f"--input={tree}", "--src_version=v6.1", "--out=json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["new_env"]["CM_MLPERF_SUBMISSION_VERDICT"] == "accepted"
    assert answer["new_state"]["mlperf_submission_check"]["result_count"] == 3


GATE_HOOKS = load_recipe("check-mlperf-submission")
COMMUNITY_HOOKS = load_recipe("run-mlperf-inference-submission-checker")


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({}, "--submission_dir is missing"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": "x"}, "--version is missing"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": "x", "CM_VERSION": "v9"}, "--version=v9 is not a round; allowed: v"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": "x", "CM_VERSION": "v6.1"}, "is not a readable folder"),
    ],
)
def test_a_call_that_cannot_be_understood_is_an_error_with_a_hint(env, word, tmp_path):
    folder = CHECKOUT / "script" / "check-mlperf-submission"
    base = {"CM_TMP_CURRENT_PATH": str(tmp_path), "CM_TMP_CURRENT_SCRIPT_PATH": str(folder)}
    answer = GATE_HOOKS.preprocess({"env": {**base, **env}, "state": {}})
    assert answer["return"] == 2
    assert word in answer["error"]
    assert "hint:" in answer["error"] and f"--submission_dir={tmp_path}" not in answer["error"]


def test_the_communitys_inputs_that_weaken_the_check_are_refused_by_name():
    env = {
        "CM_MLPERF_INFERENCE_SUBMISSION_DIR": "x",
        "CM_VERSION": "v6.1",
        "CM_MLPERF_SKIP_COMPLIANCE": "yes",
        "CM_MLPERF_SHORT_RUN": "yes",
        "CM_MLPERF_EXTRA_MODEL_MAPPING": "other.json",
    }
    answer = COMMUNITY_HOOKS.plan({"env": env})
    assert answer["return"] == 2
    for word in ("--skip_compliance", "_short-run", "other.json"):
        assert word in answer["error"]


def test_what_the_communitys_recipe_hands_on_is_planned_with_whole_paths(tmp_path):
    env = {
        "CM_TMP_CURRENT_PATH": str(tmp_path),
        "CM_MLPERF_INFERENCE_SUBMISSION_DIR": "tree",
        "CM_MLPERF_SUBMISSION_CHECKER_VERSION": "v6.1",
        "CM_MLPERF_INFERENCE_SOURCE": "inference",
        "CM_MLPERF_SUBMITTER": "Me",
    }
    assert COMMUNITY_HOOKS.plan({"env": env})["runs"] == [
        {
            "tags": "check,mlperf,submission",
            "submission_dir": str(tmp_path / "tree"),
            "version": "v6.1",
            "quiet": True,
            "submitter": "Me",
            "official": str(tmp_path / "inference"),
        }
    ]


OWN_STEPS = [step for step in Step if step is not Step.ENDPOINTS]  # whose command is a program of others


@pytest.mark.parametrize("step", OWN_STEPS, ids=lambda step: step.name)
def test_the_command_of_a_step_names_recipes_variations_and_inputs_that_there_are(step: Step):
    subject = Subject(
        division="closed", submitter="Me", system="box", model="m", benchmark="resnet50", scenario="Offline",
        test="TEST01",
    )  # fmt: skip
    for command in command_of(step, subject, "my tree", "v6.1").split(" && "):
        program, run, script, tags, *inputs = shlex.split(command)
        assert [program, run, script] == ["cm", "run", "script"]
        words = tags.removeprefix("--tags=").split(",")
        plain = {word for word in words if not word.startswith("_")}
        named = [recipe for recipe in recipe_metas() if plain <= set(recipe["tags"])]
        assert len(named) == 1, words
        assert {word[1:] for word in words if word.startswith("_")} <= set(named[0].get("variations", {}))
        given = {word[2:].partition("=")[0] for word in inputs}
        assert given <= {*named[0]["input_mapping"], "version"}
