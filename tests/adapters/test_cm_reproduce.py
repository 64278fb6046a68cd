"""``cm record|reproduce|diff script`` with the real ``cm``."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome

MAKE = """
    import os

    def preprocess(i):
        folder = os.path.join(i["env"]["CM_OUT"], "here")
        os.makedirs(folder)
        print("making it")
        speed = float(os.environ.get("SPEED", "100"))
        return i["automation"].cmind.access({
            "action": "record", "automation": "script", "folder": folder, "name": "it",
            "request": {"tags": "make,it", "quiet": True}, "folder_input": "out_folder",
            "outcome": {"exact": {"score": 1}, "within": {"speed": {"value": speed, "unit": "1/s"}}},
        })
"""


@pytest.fixture
def made(home: TemporaryHome) -> TemporaryHome:
    """A home with a result in ``work/first``."""
    home.recipe(
        "make-it", {"input_mapping": {"out_folder": "CM_OUT"}, "result_folder_input": "out_folder"}, customize=MAKE
    )
    done = home.cm("run", "script", "--tags=make,it", f"--out_folder={home.work / 'first'}", "--quiet")
    assert done.code == 0, done.stderr
    return home


def folder_of(home: TemporaryHome) -> Path:
    (new,) = (home.work / "reproduced").iterdir()
    return new


def test_reproduce_takes_a_relative_path_and_tells_the_verdict(made: TemporaryHome) -> None:
    done = made.cm("reproduce", "script", "first", "--yes")
    assert done.code == 0, done.stderr
    assert "it: reproduced" in done.stdout
    assert "= score: recorded 1, now 1, must be equal" in done.stdout
    assert done.stdout.splitlines()[-1] == f"reproduced: 1 of 1, in {folder_of(made)}"


def test_json_is_one_object_and_the_story_goes_to_stderr(made: TemporaryHome) -> None:
    done = made.cm("reproduce", "script", "--result=first", "--yes", "--out=json", env={"SPEED": "50"})
    assert done.code == 1
    answer: dict[str, Any] = done.answer
    assert (answer["return"], answer["verdict"]) == (1, "not reproduced")
    assert "reproducing it" in done.stderr
    (bad,) = [row for row in answer["results"][0]["figures"] if not row["is_same"]]
    assert (bad["name"], bad["percent"]) == ("speed", -50.0)


def test_a_result_that_is_not_reproduced_ends_with_code_1_and_the_figures(made: TemporaryHome) -> None:
    done = made.cm("reproduce", "script", "first", "--yes", env={"SPEED": "50"})
    assert done.code == 1
    assert "! speed: recorded 100.0 1/s, now 50.0 1/s (-50.00 %), within 10 %" in done.stdout
    assert "CM error: not reproduced: it" in done.stderr
    assert made.cm("reproduce", "script", "first", "--yes", "--tolerance=50", env={"SPEED": "50"}).code == 0


def test_a_changed_recipe_is_named_and_nothing_is_run(made: TemporaryHome) -> None:
    recipe = made.repo / "script" / "make-it" / "customize.py"
    recipe.write_text(recipe.read_text() + "#")
    done = made.cm("reproduce", "script", "first", "--yes")
    assert done.code == 1
    assert "recipe make-it/customize.py: the file was changed" in done.stdout
    assert "no command was run: make-it/customize.py" in done.stderr
    assert not (made.work / "reproduced").exists()


def test_check_and_plan_run_nothing(made: TemporaryHome) -> None:
    check = made.cm("reproduce", "script", "first", "--check_only")
    assert (check.code, check.stdout.startswith("it: the inputs match those of the result")) == (0, True)
    plan = made.cm("reproduce", "script", "first", "--plan")
    assert plan.code == 0
    assert plan.stdout.startswith("would reproduce 1 result in ")
    assert not (made.work / "reproduced").exists()


def test_without_yes_and_without_a_terminal_it_shows_what_would_run_and_runs_nothing(made: TemporaryHome) -> None:
    done = made.cm("reproduce", "script", "first")
    assert done.code == 1
    told = done.stderr.splitlines()
    line = told.index("it would run:")
    assert told[line + 1].startswith("    cm run script make-it,")
    assert told[line + 2] == "    recipes: make-it"
    assert f"cm reproduce script {made.work / 'first'} --yes" in done.stderr
    assert not (made.work / "reproduced").exists()
    asked = made.cm("reproduce", "script", "first", "--out=json")
    assert (asked.code, asked.answer["return"]) == (1, 1)


def test_diff_shows_a_table_and_one_object_as_json(made: TemporaryHome) -> None:
    made.cm("run", "script", "--tags=make,it", f"--out_folder={made.work / 'second'}", env={"SPEED": "120"})
    same = made.cm("diff", "script", "first", "first")
    assert same.code == 0, same.stderr
    assert "identical: inputs, settings, machine and metrics" in same.stdout
    done = made.cm("diff", "script", "first", "second")
    assert done.code == 0
    assert "speed, 1/s  100  120  1.200  different" in done.stdout
    assert made.cm("diff", "script", "first", "second", "--exit_code").code == 1
    answer = json.loads(made.cm("diff", "script", "first", "second", "--out=json").stdout)
    assert answer["identical"] is False
    assert [row["name"] for row in answer["results"][0]["figures"]] == ["score", "speed"]
