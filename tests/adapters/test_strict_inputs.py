"""Misspelt inputs on the console: recipes of a repository with ``inputs: strict`` refuse them before anything runs."""

import os
import subprocess

import pytest
from helpers import TemporaryHome, cm_command

MAPPED = {"input_description": {"size": {"desc": "how big"}}, "input_mapping": {"size": "CM_SIZE"}, "cache": True}


@pytest.fixture
def strict(home: TemporaryHome) -> TemporaryHome:
    """A strict repository: get-x, and two recipes that fit make,report."""
    home.write_cmr(inputs="strict")
    home.recipe("get-x", MAPPED, run_sh='test "$CM_SIZE" != bad')
    home.recipe("make-report", {**MAPPED, "deps": [{"tags": "get,x"}]}, run_sh="touch made")
    home.recipe("make-report-too", {**MAPPED, "sort": 5}, run_sh="touch made")
    return home


def test_an_unknown_input_ends_every_action_before_anything_runs(strict: TemporaryHome) -> None:
    for action in ("run", "plan", "explain", "lock"):
        done = strict.cm(action, "script", "--tags=make,report", "--sizes=3", "--quiet")
        assert done.code == 1
        assert "unknown input --sizes for recipe make-report, did you mean --size?" in done.stderr
        assert f"hint: cm {action} script --tags=make,report --quiet --size=3" in done.stderr
        assert "Traceback" not in done.stderr
    assert strict.entries() == []
    assert list(strict.work.iterdir()) == []
    assert not (strict.path / "runs").exists()


def test_a_community_recipe_warns_also_where_several_fit(strict: TemporaryHome) -> None:
    strict.write_cmr()
    done = strict.cm("plan", "script", "--tags=make,report", "--sizes=3", "--quiet")
    assert done.code == 0
    assert done.stderr.count("! unknown input --sizes for recipe make-report, did you mean --size?") == 1
    refused = strict.cm("run", "script", "--tags=make,report", "--sizes=3", "--quiet", "--unknown_inputs=error")
    assert refused.code == 1


def test_inputs_of_a_file_count_too(strict: TemporaryHome) -> None:
    (strict.work / "inputs.yaml").write_text("tags: make,report\nsizes: 3\nquiet: true\n")
    done = strict.cm("run", "script", "@inputs.yaml")
    assert done.code == 1
    assert "did you mean --size?" in done.stderr


def test_a_run_whose_recipe_lost_an_input_is_not_resumed_with_it(strict: TemporaryHome) -> None:
    assert strict.cm("run", "script", "get-x", "--size=bad").code == 2
    strict.recipe("get-x", {"cache": True}, run_sh="true")
    done = strict.cm("resume", "script", "--force")
    assert done.code == 1
    assert "unknown input --size for recipe get-x" in done.stderr


def test_a_recipe_that_runs_another_one_is_held_to_the_same(strict: TemporaryHome) -> None:
    strict.recipe(
        "call-x",
        customize="""
        def preprocess(i):
            call = {"action": "run", "automation": "script", "tags": "get,x", "quiet": True, "sizes": "3"}
            return i["automation"].cmind.access(call)
        """,
    )
    done = strict.cm("run", "script", "call-x")
    assert done.code == 1
    assert "unknown input --sizes for recipe get-x, did you mean --size?" in done.stderr


def test_errors_and_warnings_have_a_colour_on_a_terminal_that_takes_one(strict: TemporaryHome) -> None:
    request = ("run", "script", "--tags=make,report", "--sizes=3", "--quiet")
    for words, settings, shown in (
        (request, {}, "\x1b[31mCM error:\x1b[0m unknown input --sizes"),
        ((*request, "--unknown_inputs=warn"), {}, "\x1b[33m! unknown input --sizes"),
        (request, {"NO_COLOR": "1"}, "\nCM error: unknown input --sizes"),
    ):
        terminal, stderr = os.openpty()
        env = {**strict.process_env({"TERM": "xterm", "NO_COLOR": ""}), **settings}
        subprocess.run(cm_command(words), cwd=strict.work, env=env, stdin=subprocess.DEVNULL, stderr=stderr, timeout=60)
        os.close(stderr)
        assert shown in os.read(terminal, 65_536).decode().replace("\r\n", "\n")
        os.close(terminal)
    forced = {**strict.process_env({"TERM": "dumb"}), "FORCE_COLOR": "1", "NO_COLOR": ""}
    done = subprocess.run(cm_command(request), cwd=strict.work, env=forced, capture_output=True, text=True, timeout=60)
    assert "\x1b[31mCM error:\x1b[0m unknown input --sizes" in done.stderr
