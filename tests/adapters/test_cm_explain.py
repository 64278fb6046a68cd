"""``cm explain script`` and ``cm explain cache`` with the real ``cm``."""

import json
import shlex
import shutil
from typing import Any

import pytest
from helpers import TemporaryHome

MAKES_A_FILE = """
    import os

    def postprocess(i):
        with open("made.txt", "w") as file:
            file.write("1")
        i["env"]["CM_FILE"] = os.path.abspath("made.txt")
        return {"return": 0, "version": "1.5"}
"""


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """A home with an entry of get-x (a file, an input, a variation) and one of use-x, which names that file."""
    home.recipe(
        "get-x",
        {
            "cache": True,
            "input_mapping": {"size": "CM_SIZE"},
            "variations": {"v": {}, "w": {"group": "g", "default": True}},
            "new_env_keys": ["CM_FILE"],
        },
        customize=MAKES_A_FILE,
    )
    home.recipe(
        "use-x",
        {"cache": True, "deps": [{"tags": "get,x,_v", "size": "a b"}], "new_env_keys": ["CM_FILE"]},
    )
    home.run("use,x")
    return home


def row_of(home: TemporaryHome, *words: str) -> dict[str, Any]:
    done = home.cm("explain", "cache", *words, "--out=json")
    assert done.code == 0, done.stderr
    (row,) = done.answer["entries"]
    assert isinstance(row, dict)
    return row


def test_explain_script_prints_text_on_the_console_and_one_object_as_json(filled: TemporaryHome) -> None:
    done = filled.cm("explain", "script", "--tags=use,x", "--new", "--step=get-x", "--env=CM_SIZE,CM_FILE")
    assert done.code == 0, done.stderr
    for part in ("explain: get-x,_v", "chain: use-x -> get-x,_v", "CM_SIZE = 'a b'", "* input --size", "cache"):
        assert part in done.stdout, part
    answer = filled.cm("explain", "script", "--tags=use,x", "--new", "--step=get-x", "--out=json").answer
    assert answer["return"] == 0, answer
    assert answer["explanation"]["step"]["label"] == "get-x,_v"


def test_explain_script_takes_the_values_of_a_run_beside_the_keys_asked_for(filled: TemporaryHome) -> None:
    done = filled.cm("explain", "script", "--tags=use,x", "--env.CM_OTHER=5", "--keys=CM_OTHER", "--out=json")
    (row,) = done.answer["explanation"]["env"]
    assert (row["key"], row["value"]) == ("CM_OTHER", "5")


def test_an_unknown_step_ends_with_an_error_that_lists_the_nearest(filled: TemporaryHome) -> None:
    done = filled.cm("explain", "script", "--tags=use,x", "--new", "--step=get-y")
    assert done.code == 1
    assert "the plan has no step 'get-y'" in done.stderr
    assert "get-x" in done.stderr
    done = filled.cm("explain", "script", "--tags=use,x", "--step=get-x")
    assert "use-x is reused, so its dependencies are not planned: --new plans them" in done.stderr


def test_explaining_leaves_the_home_as_it_is(filled: TemporaryHome) -> None:
    def tree() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in filled.store.rglob("*")}

    before = tree()
    filled.cm("explain", "script", "--tags=use,x", "--new")
    filled.cm("explain", "cache")
    assert tree() == before


def test_an_entry_tells_who_made_it_and_who_needs_it(filled: TemporaryHome) -> None:
    path = filled.entry("get-x")
    row = row_of(filled, path.name)
    assert row["recipe"].startswith("get-x,")
    assert row["request"]["chain"] == ["use-x", "get-x,_v"]
    assert row["request"]["tags"] == "get,x,_v"
    assert row["request"]["inputs"] == {"size": "a b"}
    assert row["version"] == "1.5"
    assert {item["name"]: item["reason"] for item in row["variations"]} == {
        "v": "asked for",
        "w": "default of group 'g'",
    }
    assert [(file["path"], file["problem"]) for file in row["files"]] == [("made.txt", "")]
    assert row["state"] == "finished and intact"
    assert row["recipe_state"] == "unchanged since"
    (user,) = row["used_by"]
    assert (user["uid"], user["by"]) == (filled.entry("use-x").name, "CM_FILE")


def test_the_command_of_an_entry_reuses_it_when_it_is_run(filled: TemporaryHome) -> None:
    row = row_of(filled, "--tags=get,x")
    assert row["command_reaches_it"] is True
    words = shlex.split(row["command"])
    assert words[0] == "cm"
    done = filled.cm(*words[1:], "--quiet", "--out=json")
    assert done.answer["cache_entry"]["uid"] == filled.entry("get-x").name
    assert row_of(filled, "--tags=get,x")["last_use_utc"]


def test_an_edited_file_and_a_changed_recipe_are_named(filled: TemporaryHome) -> None:
    path = filled.entry("get-x")
    (path / "made.txt").write_text("22", encoding="utf-8")
    code = filled.repo / "script" / "get-x" / "customize.py"
    code.write_text("# more\n" + code.read_text(encoding="utf-8"), encoding="utf-8")
    readme = code.with_name("README.md")  # newer, too, but no part of the digest: it is not what changed the recipe
    readme.write_text("# more\n", encoding="utf-8")
    later_s = path.stat().st_mtime + 100
    import os

    for newer in (code, readme):
        os.utime(newer, (later_s, later_s))
    row = row_of(filled, path.name)
    assert "made.txt has 2 bytes instead of 1" in row["state"]
    assert "made.txt has 2 bytes instead of 1" in row["files"][0]["problem"]
    assert (row["recipe_state"], row["recipe_files_newer"]) == ("changed since", ["customize.py"])
    assert row["command_reaches_it"] is False
    assert "made.txt" in row["command_note"]


def test_an_entry_without_its_recipe_and_one_made_by_cm_are_told(filled: TemporaryHome) -> None:
    path = filled.entry("get-x")
    meta = json.loads((path / "_cm.json").read_text(encoding="utf-8"))
    ours = meta.pop("crowdperf")
    (path / "_cm.json").write_text(json.dumps(meta), encoding="utf-8")
    row = row_of(filled, path.name)
    assert row["recipe_state"] == "not recorded"
    assert row["created_utc"] == ""
    recipe = filled.repo / "script" / "get-x" / "_cm.json"
    recipe.write_text(json.dumps({**json.loads(recipe.read_text()), "library": ["no_such_module"]}))
    (path / "_cm.json").write_text(json.dumps({**meta, "crowdperf": ours}), encoding="utf-8")
    assert row_of(filled, path.name)["recipe_state"].startswith("cannot be used: ")
    shutil.rmtree(recipe.parent)
    row = row_of(filled, path.name)
    assert row["recipe_state"] == "not registered"
    assert (row["command"], row["command_reaches_it"]) == ("", False)


def test_the_text_of_an_entry_reads_well(filled: TemporaryHome) -> None:
    done = filled.cm("explain", "cache", "--tags=get,x")
    for part in (
        "entry ",
        "state: finished and intact",
        "files: 1 declared, 1 unchanged",
        "reached by: cm run script --tags=get,x,_v '--size=a b'",
    ):
        assert part in done.stdout, done.stdout


def test_no_entry_is_code_16_with_what_to_try(filled: TemporaryHome) -> None:
    done = filled.cm("explain", "cache", "--tags=no,such")
    assert done.code == 16
    assert "cm show cache" in done.stderr
    wrong = filled.entry("get-x").name[:-1] + "0"
    done = filled.cm("explain", "cache", wrong)
    if wrong != filled.entry("get-x").name:
        assert filled.entry("get-x").name in done.stderr
