"""A run of a recipe with `plan_first` that could not succeed begins nothing: the plan's error is the run's."""

from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.rules.errors import RecipeError

INSTALL = """
    from pathlib import Path

    def plan(i):
        return {"return": 0}

    def preprocess(i):
        Path("installed").touch()
        return {"return": 0}
    """
CHECK = """
    def preprocess(i):
        if i["env"].get("CM_WANTED") == "gpu":
            return {"return": 3, "error": "there is no GPU\\nhint: --wanted=cpu"}
        return {"return": 0}

    plan = preprocess
    """
META: dict[str, Any] = {"deps": [{"tags": "install,it"}], "input_mapping": {"wanted": "CM_WANTED"}}


@pytest.fixture
def recipes(home: TemporaryHome) -> TemporaryHome:
    home.recipe("install-it", {"cache": True}, customize=INSTALL)
    home.recipe("do-it", {**META, "plan_first": True}, customize=CHECK)
    home.recipe("just-do-it", META, customize=CHECK)
    home.recipe("large", {"cache": True, "plan_first": True, "needs": {"disk_mb": 10**9}}, customize=INSTALL)
    return home


def test_what_the_plan_shows_to_fail_is_not_begun(recipes: TemporaryHome) -> None:
    with pytest.raises(RecipeError, match="there is no GPU") as caught:
        recipes.run("do,it", wanted="gpu")
    assert caught.value.code == 3 and caught.value.trace == ("do-it",)
    assert not recipes.entries()
    assert recipes.run("do,it", wanted="cpu")["return"] == 0
    assert recipes.entries("install-it")


def test_without_it_a_recipe_runs_as_before(recipes: TemporaryHome) -> None:
    with pytest.raises(RecipeError, match="there is no GPU"):
        recipes.run("just,do,it", wanted="gpu")
    assert recipes.entries("install-it")


def test_a_disk_smaller_than_what_the_steps_declare_is_refused_by_plan_and_run(recipes: TemporaryHome) -> None:
    with pytest.raises(RecipeError, match=r"1000000000 MB of disk are needed, \d+ MB are free"):
        recipes.run("large")
    assert not recipes.entries()
    planned = recipes.cm("plan", "script", "--tags=large", "--quiet")
    assert planned.code == 1 and "MB of disk are needed" in planned.stderr + planned.stdout


FIND = """
    def preprocess(i):
        return {"return": 1, "error": "the copy is gone\\nhint: --path"}

    plan = preprocess
    """
NEED = """
    def preprocess(i):
        return {"return": 0} if i["env"].get("CM_COPY") else {"return": 1, "error": "there is no copy"}

    plan = preprocess
    """


def test_of_a_step_that_fails_and_one_that_reads_what_it_would_say_the_first_is_told(recipes: TemporaryHome) -> None:
    recipes.recipe("find-it", {"new_env_keys": ["CM_COPY"]}, customize=FIND)
    recipes.recipe("need-it", {"deps": [{"tags": "find,it"}], "plan_first": True}, customize=NEED)
    with pytest.raises(RecipeError, match="the copy is gone"):
        recipes.run("need,it")
    planned = recipes.cm("plan", "script", "--tags=need,it", "--quiet")
    assert planned.code == 1 and "there is no copy" not in planned.stderr + planned.stdout


ASK = """
    from pathlib import Path

    def plan(i):
        return {"return": 1, "error": "nobody answers"} if i["is_before_run"] else {"return": 0}
    """


def test_only_the_plan_of_a_run_that_is_about_to_begin_is_told_so(home: TemporaryHome) -> None:
    home.recipe("ask-it", {}, customize=ASK)
    home.recipe("do-it", {"deps": [{"tags": "ask,it"}], "plan_first": True})
    with pytest.raises(RecipeError, match="nobody answers"):
        home.run("do,it")
    assert home.cm("plan", "script", "--tags=do,it", "--quiet").code == 0
    planned = home.cm("plan", "script", "--tags=do,it", "--quiet", "--before_run")
    assert planned.code == 1 and "nobody answers" in planned.stderr + planned.stdout
