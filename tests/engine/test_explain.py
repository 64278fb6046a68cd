"""``cm explain script`` names who decided what, and says nothing that the engine does not do."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import recipe, request
from helpers import CHECKOUT, TemporaryHome
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.documents.console_text import WIDTH
from recipe_engine.explaining.explain import explain_action, explain_cache_action
from recipe_engine.explaining.explanation import ExplainEngine, env_rows, trace_of
from recipe_engine.explaining.origins import Asker, StepTrace
from recipe_engine.planning.plan_action import make_plan
from recipe_engine.planning.plan_text import plan_json
from recipe_engine.rules.configure import configure
from recipe_engine.rules.errors import NotFound, RequestError, VariationError

History = list[tuple[str, str, Any, str]]


def explain(home: TemporaryHome, tags: str, **inputs: Any) -> dict[str, Any]:
    with working_folder(home.work):
        answer = explain_action({"tags": tags, **inputs}, home.engine_home)
    assert json.loads(json.dumps(answer)) == answer, "the answer must be plain JSON"
    found = answer["explanation"]
    assert isinstance(found, dict)
    return found


def text_of(home: TemporaryHome, capsys: pytest.CaptureFixture[str], tags: str, **inputs: Any) -> str:
    explain(home, tags, out="con", **inputs)
    return capsys.readouterr().out


def history(found: Mapping[str, Any], key: str) -> History:
    (row,) = [row for row in found["env"] if row["key"] == key]
    return [(item["kind"], item["where"], item["value"], item["effect"]) for item in row["history"]]


def value(found: Mapping[str, Any], key: str) -> Any:
    (row,) = [row for row in found["env"] if row["key"] == key]
    return row["value"]


def variations(found: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["reason"], row["asked_by"]) for row in found["variations"]}


def bounds(found: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["value"], row["source"]) for row in found["version"]}


# --- env ---

LAYERED = {
    "default_env": {"CM_A": "default", "CM_B": "default"},
    "env": {"CM_C": "own", "CM_D": "own"},
    "input_mapping": {"d": "CM_D"},
    "variations": {
        "v": {"env": {"CM_C": "variation", "CM_D": "variation"}, "default_env": {"CM_A": "too late"}},
    },
    "versions": {"2": {"env": {"CM_C": "version 2"}}},
    "update_meta_if_env": [{"enable_if_env": {"CM_B": ["default"]}, "env": {"CM_E": "conditional"}}],
    "const": {"CM_F": "constant"},
}


GIVEN_A, GIVEN_F = ({"env": {key: "given"}} for key in ("CM_A", "CM_F"))
BY_FLAG = ("--env or a flag", "command line", "given", "set")
DEFAULT_A, OWN_C = ("default_env", "recipe", "default", "set"), ("env", "recipe", "own", "set")
IF_B = "update_meta_if_env (enable_if_env: CM_B in [default]) in recipe"
FIVE = [("input --d", "command line", "5", "set"), ("env", "recipe", "own", "not taken")]
BY_V = ("env", "variation _v", "variation", "replaced")


@pytest.mark.parametrize(
    ("inputs", "key", "expected"),
    [
        ({}, "CM_A", [DEFAULT_A]),
        (GIVEN_A, "CM_A", [BY_FLAG, ("default_env", "recipe", "default", "not taken")]),
        ({}, "CM_C", [OWN_C]),
        ({"d": "5"}, "CM_D", FIVE),
        ({}, "CM_E", [("env", IF_B, "conditional", "set")]),
        ({}, "CM_F", [("const", "recipe", "constant", "set")]),
        (GIVEN_F, "CM_F", [BY_FLAG, ("const", "recipe", "constant", "replaced")]),
        ({"tags": "get,x,_v"}, "CM_C", [OWN_C, BY_V]),
        (
            {"tags": "get,x,_v", "version": "2"},
            "CM_C",
            [OWN_C, BY_V, ("env", "versions 2", "version 2", "replaced")],
        ),
        ({"tags": "get,x,_v", "d": "5"}, "CM_D", [*FIVE, ("env", "variation _v", "variation", "not taken")]),
        ({"tags": "get,x,_v"}, "CM_A", [DEFAULT_A, ("default_env", "variation _v", "too late", "not taken")]),
        ({"version": "2"}, "CM_VERSION", [("the version in effect", "", "2", "set")]),
    ],
)
def test_the_history_of_a_key_names_each_block_that_had_a_say(
    home: TemporaryHome, inputs: dict[str, Any], key: str, expected: History
) -> None:
    home.recipe("get-x", LAYERED)
    assert history(explain(home, **{"tags": "get,x", **inputs}, keys=key), key) == expected


def test_a_value_that_is_filled_in_tells_so(home: TemporaryHome) -> None:
    home.recipe("get-x", {"env": {"CM_A": "<<<CM_B>>>/bin", "CM_B": "/opt"}})
    found = explain(home, "get,x", keys="CM_A")
    assert history(found, "CM_A") == [
        ("env", "recipe", "<<<CM_B>>>/bin", "set"),
        ("placeholders filled in", "", "/opt/bin", "replaced"),
    ]


CHAIN = {
    "env": {"CM_A": "parent", "CM_B": "parent"},
    "deps": [{"tags": "get,child", "names": ["child"], "env": {"CM_B": "entry"}, "const": {"CM_C": "entry"}}],
    "adr": {"child": {"env": {"CM_B": "override"}}},
}


def test_a_dependency_has_its_env_from_parent_entry_and_override_by_name(home: TemporaryHome) -> None:
    home.recipe("get-child", {"default_env": {"CM_A": "default"}, "env": {"CM_C": "own"}})
    home.recipe("get-parent", CHAIN)
    found = explain(home, "get,parent", step="get-child", keys="CM_*")
    label = "dependency 'get,child' of get-parent"
    assert history(found, "CM_A") == [
        ("env", "recipe", "parent", "set"),
        ("env", "get-parent", "parent", "handed down"),
        ("default_env", "recipe", "default", "not taken"),
    ]
    assert history(found, "CM_B") == [
        ("env", "recipe", "parent", "set"),
        ("env", "get-parent", "parent", "handed down"),
        ("env", f"{label} (adr of recipe of get-parent for 'child')", "override", "replaced"),
    ]
    assert history(found, "CM_C") == [
        ("const", f"{label} (deps of recipe)", "entry", "set"),
        ("env", "recipe", "own", "not taken"),
    ]
    (row,) = [row for row in found["env"] if row["key"] == "CM_A"]
    assert [item["step"] for item in row["history"]] == ["get-parent", "get-child", "get-child"]


def test_an_override_two_levels_up_is_named(home: TemporaryHome) -> None:
    home.recipe("get-leaf")
    home.recipe("get-mid", {"deps": [{"tags": "get,leaf", "names": ["leaf"]}]})
    home.recipe(
        "get-top",
        {"deps": [{"tags": "get,mid"}], "variations": {"v": {"adr": {"leaf": {"env": {"CM_L": "1"}}}}}},
    )
    found = explain(home, "get,top,_v", step="get-leaf", keys="CM_L")
    assert history(found, "CM_L") == [
        (
            "env",
            "dependency 'get,leaf' of get-mid (adr of variation _v of get-top,_v for 'leaf')",
            "1",
            "set",
        )
    ]
    found = explain(home, "get,top", step="get-leaf", keys="CM_L", adr={"leaf": {"env": {"CM_L": "2"}}})
    assert history(found, "CM_L")[0][1].endswith("(adr of command line for 'leaf')")


def test_what_a_dependency_gives_names_the_dependency_and_where_it_had_it_from(home: TemporaryHome) -> None:
    home.recipe("get-child", {"variations": {"v": {"env": {"CM_A": "1"}}}, "new_env_keys": ["CM_A"]})
    home.recipe("get-parent", {"deps": [{"tags": "get,child,_v"}], "env": {"CM_A": "0"}})
    found = explain(home, "get,parent", keys="CM_A")
    assert history(found, "CM_A") == [
        ("env", "recipe", "0", "set"),
        ("dependency", "get-child,_v", "1", "replaced"),
    ]
    assert found["env"][0]["history"][1]["detail"] == "env of variation _v of get-child"


def test_what_a_hook_or_script_may_set_is_told_as_not_known(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        customize='def preprocess(i):\n    i["env"]["CM_H"] = "1"\n    return {"return": 0}\n',
        run_sh='echo "CM_S=1" >> tmp-run-env.out\n',
    )
    found = explain(home, "get,x", keys="CM_H,CM_S", env={"CM_S": "0"})
    assert found["env"][0]["note"] == "not known before the run: get-x may set it"
    assert history(found, "CM_S")[-1] == (
        "preprocess() in customize.py", "get-x", "<CM_S from get-x>", "may change",
    )  # fmt: skip


def test_without_keys_those_are_listed_that_the_step_sets_itself(
    home: TemporaryHome, capsys: pytest.CaptureFixture[str]
) -> None:
    home.recipe("get-child", {"env": {"CM_OWN": "1"}}, run_sh='eval "$CM_A"; env > tmp-run-env.out\n')
    home.recipe("get-parent", {"env": {"CM_A": "0"}, "deps": [{"tags": "get,child"}]})
    found = explain(home, "get,parent", step="get-child")
    assert [row["key"] for row in found["env"]] == ["CM_OWN"]
    assert history(explain(home, "get,parent", step="get-child", keys="CM_A"), "CM_A")[-1][3] == "may change"
    text = text_of(home, capsys, "get,parent", step="get-child")
    assert "CM_OWN = '1': env of recipe, may be changed: native script of get-child" in text
    text = text_of(home, capsys, "get,parent", step="get-child", keys="CM_A")
    assert "CM_A = '0', may be changed: native script of get-child" in text


def test_a_cached_step_has_its_env_from_the_entry(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_S"]}, run_sh='echo "CM_S=1" >> tmp-run-env.out\n')
    home.run("get,x")
    uid = home.entry("get-x").name
    found = explain(home, "get,x", keys="CM_S")
    assert history(found, "CM_S") == [("cache entry", uid, "1", "set")]
    assert found["step"]["action"] == "reuse"


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("CM_NOBODY", "no step sets it"),
        ("CM_TMP_SECRETLY", "not set here: get-parent has it, but does not pass it down"),
    ],
)
def test_a_key_that_is_not_there_tells_why(home: TemporaryHome, key: str, note: str) -> None:
    home.recipe("get-child")
    home.recipe("get-parent", {"deps": [{"tags": "get,child"}], "env": {"CM_TMP_SECRETLY": "1"}})
    found = explain(home, "get,parent", step="get-child", keys=key)
    assert found["env"][0]["note"].startswith(note)


def test_env_as_a_text_names_keys_and_env_as_values_belongs_to_the_run(home: TemporaryHome) -> None:
    home.recipe("get-x", {"env": {"CM_A": "1"}})
    assert [row["key"] for row in explain(home, "get,x", env="CM_A,CM_Z")["env"]] == ["CM_A", "CM_Z"]
    assert value(explain(home, "get,x", env={"CM_Z": "2"}, keys="CM_Z"), "CM_Z") == "2"
    with pytest.raises(RequestError, match="--keys has no value"):
        explain(home, "get,x", keys=True)


def test_secrets_are_shown_nowhere(home: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    home.recipe("get-child")
    home.recipe(
        "get-x",
        {
            "env": {
                "CM_URL": "https://<<<CM_HF_TOKEN>>>@example.org",
                "CM_REPO": "https://me:very-secret-3@example.org",
            },
            "deps": [{"tags": "get,child,_<<<CM_HF_TOKEN>>>"}],
        },
    )
    given = {"hf_token": "very-secret-1 in words", "env": {"CM_MY_PASSWORD": "very-secret-2"}}
    for extra in ({}, {"keys": "*"}, {"keys": "*", "step": "get,child,_<<<CM_HF_TOKEN>>>"}):
        found = explain(home, "get,x", **given, **extra)
        assert "very-secret" not in json.dumps(found)
        assert "very-secret" not in text_of(home, capsys, "get,x", **given, **extra)
    assert value(explain(home, "get,x", **given, keys="CM_HF_TOKEN"), "CM_HF_TOKEN") == "********"


# --- variations ---


def test_each_variation_tells_who_wanted_it(home: TemporaryHome) -> None:
    home.recipe(
        "get-child",
        {
            "variations": {
                "a": {"base": ["b"], "default_variations": {"g": "g2"}},
                "b": {},
                "c": {},
                "d": {},
                "e": {},
                "g1": {"group": "g", "default": True},
                "g2": {"group": "g"},
                "h1": {"group": "h", "default": True},
                "h2": {"group": "h", "default": True},
            }
        },
    )
    meta = {
        "env": {"CM_WANT": "_c"},
        "deps": [{"tags": "get,child,_a,-_h2", "names": ["n"], "update_tags_from_env": ["CM_WANT"]}],
        "variations": {"v": {"adr": {"n": {"tags": "_d"}}}},
    }
    child = json.loads((home.repo / "script/get-child/_cm.json").read_text(encoding="utf-8"))
    del child["variations"]["h2"]["default"]
    (home.repo / "script/get-child/_cm.json").write_text(json.dumps(child), encoding="utf-8")
    home.recipe("get-parent", meta)
    found = explain(home, "get,parent,_v", step="get-child,_a,_d,_c")
    label = "dependency 'get,child,_a,-_h2,_d' of get-parent,_v"
    assert variations(found) == {
        "a": ("asked for", f"tags of {label} (deps of recipe)"),
        "d": ("asked for", f"tags of {label} (adr of variation _v of get-parent,_v for 'n')"),
        "c": ("asked for", f"update_tags_from_env CM_WANT of {label}, and CM_WANT is from env of recipe of get-parent"),
        "b": ("base of _a", ""),
        "g2": ("default of group 'g' by _a", ""),
        "h1": ("default of group 'h'", ""),
    }
    (excluded,) = found["excluded_variations"]
    assert (excluded["name"], excluded["reason"]) == ("h2", "excluded")
    assert excluded["asked_by"] == f"tags of {label} (deps of recipe)"


def test_an_excluded_default_tells_what_took_its_place(home: TemporaryHome) -> None:
    home.recipe("get-x", {"variations": {"a": {"group": "g", "default": True}, "b": {"group": "g"}}})
    (excluded,) = explain(home, "get,x,_b,-_a")["excluded_variations"]
    assert excluded["reason"] == "excluded: it would be the default of group 'g', now _b"
    assert excluded["asked_by"] == "command line"


# --- version ---


@pytest.mark.parametrize(
    ("meta", "entry", "expected"),
    [
        ({}, {}, {}),
        ({"default_version": "1"}, {}, {"version": ("1", "default_version of recipe")}),
        (
            {"default_version": "1"},
            {"version_min": "2"},
            {
                "version": ("2", "default_version of recipe, moved from 1 into the bounds"),
                "version_min": ("2", "dependency 'get,child' of get-parent (deps of recipe)"),
            },
        ),
        ({"version_max": "7"}, {}, {"version_max": ("7", "version_max of recipe")}),
        (
            {"variations": {"v": {"group": "g", "default": True, "env": {"CM_VERSION": "4"}}}},
            {},
            {"version": ("4", "CM_VERSION: env of variation _v of get-child")},
        ),
        (
            {"variations": {"v": {"group": "g", "default": True, "default_version": "4"}}},
            {},
            {"version": ("4", "default_version of variation _v")},
        ),
    ],
)
def test_each_bound_of_the_version_names_its_source(
    home: TemporaryHome, meta: dict[str, Any], entry: dict[str, Any], expected: dict[str, tuple[str, str]]
) -> None:
    home.recipe("get-child", meta)
    home.recipe("get-parent", {"deps": [{"tags": "get,child", "names": ["n"], **entry}]})
    assert bounds(explain(home, "get,parent", step="get-child")) == expected


def test_a_version_by_override_and_by_command_line_names_them(home: TemporaryHome) -> None:
    home.recipe("get-child")
    home.recipe("get-parent", {"deps": [{"tags": "get,child", "names": ["n"], "version": "1"}]})
    found = explain(home, "get,parent", step="get-child", adr={"n": {"version": "3"}})
    assert bounds(found) == {
        "version": ("3", "dependency 'get,child' of get-parent (adr of command line for 'n')"),
    }
    assert bounds(explain(home, "get,child", version_max="3")) == {"version_max": ("3", "command line")}


# --- the recipe ---


def verdicts(found: Mapping[str, Any]) -> dict[str, str]:
    return {row["alias"]: row["verdict"] for row in found["choice"]["candidates"]}


def test_every_recipe_with_the_tags_has_a_verdict(home: TemporaryHome) -> None:
    home.recipe("a-first", {"tags": ["get", "x", "y"], "variations": {"v": {}}})
    home.recipe("b-excluded", {"tags": ["get", "x", "y", "old"], "variations": {"v": {}}})
    home.recipe("c-without", {"tags": ["get", "x", "y"]})
    home.recipe("d-later", {"tags": ["get", "x", "y"], "variations": {"v": {}}})
    home.recipe("e-near", {"tags": ["get", "x"], "variations": {"v": {}}})
    found = explain(home, "get,x,y,_v,-old", quiet=True)
    assert verdicts(found) == {
        "a-first": "chosen",
        "b-excluded": "excluded tag",
        "c-without": "no such variation",
        "d-later": "fits",
        "e-near": "lacks a tag",
    }
    assert found["choice"]["decided_by"] == "first by sort and path"


def test_a_cached_and_a_remembered_recipe_and_a_clash_of_variations_are_told(home: TemporaryHome) -> None:
    clash = {"variations": {"v": {"group": "g"}, "w": {"group": "g"}}}
    home.recipe("a-first", {"tags": ["get", "x"], "cache": True, "variations": {"v": {}, "w": {}}})
    home.recipe("b-second", {"tags": ["get", "x", "b"], "cache": True, "variations": {"v": {}, "w": {}}})
    home.recipe("c-clashing", {"tags": ["get", "x"], **clash})
    home.recipe("use-x", {"deps": [{"tags": "get,x,_v,_w"}, {"tags": "get,x,_v,_w"}]})
    home.run("get,x,b,_v,_w")
    found = explain(home, "use,x", step="b-second,_v,_w", quiet=True)
    assert found["choice"]["decided_by"] == "cached"
    assert verdicts(found) == {"a-first": "fits", "b-second": "chosen", "c-clashing": "variations clash"}
    found = explain(home, "use,x", step="b-second,_v,_w#2", quiet=True)
    assert found["choice"]["decided_by"] == "remembered"


def test_a_recipe_that_its_tags_help_names_tells_so(home: TemporaryHome) -> None:
    home.recipe("a-first", {"tags": ["get", "x", "a"]})
    home.recipe("b-second", {"tags": ["get", "x"], "tags_help": "get x", "sort": 1})
    found = explain(home, "get,x", quiet=False)
    assert found["choice"]["decided_by"] == "tags_help"
    assert [(row["alias"], row["verdict"], row["reason"]) for row in found["choice"]["candidates"]] == [
        ("a-first", "fits", "its tags_help has words that are not in the query"),
        ("b-second", "chosen", ""),
    ]


def test_a_recipe_by_name_and_an_only_one_tell_so(home: TemporaryHome) -> None:
    home.recipe("get-x")
    assert explain(home, "get,x")["choice"]["decided_by"] == "only one matches"
    assert explain(home, "", artifact="get-x")["choice"]["decided_by"] == "name"


# --- the cache ---

CACHED = {
    "cache": True,
    "input_mapping": {"size": "CM_SIZE"},
    "variations": {"v": {}, "w": {}},
    "new_env_keys": ["CM_FILE"],
}
MAKES_A_FILE = """
    import os

    def postprocess(i):
        with open("made.txt", "w") as file:
            file.write("1")
        i["env"]["CM_FILE"] = os.path.abspath("made.txt")
        return {"return": 0, "version": "1.5"}
"""


def parts(found: Mapping[str, Any]) -> list[str]:
    return [row["part"] for row in found["cache"]["entries"]]


@pytest.mark.parametrize(
    ("tags", "inputs", "part"),
    [
        ("get,x,_v", {"size": "1"}, ""),
        ("get,x", {"size": "1"}, "variations"),
        ("get,x,_v,_w", {"size": "1"}, "variations"),
        ("get,x,_v", {"size": "2"}, "inputs"),
        ("get,x,_v", {"size": "1", "version_min": "2"}, "version"),
        ("get,x,_v", {"size": "1", "version": "1.4"}, "tags"),
        ("get,x,_v", {"size": "1", "extra_cache_tags": "mine"}, "tags"),
    ],
)
def test_an_entry_tells_which_part_differs(home: TemporaryHome, tags: str, inputs: dict[str, Any], part: str) -> None:
    home.recipe("get-x", CACHED, customize=MAKES_A_FILE)
    home.run("get,x,_v", size="1")
    found = explain(home, tags, **inputs)
    assert parts(found) == [part]
    assert found["cache"]["entries"][0]["fits"] is (part == "")
    assert (found["step"]["action"] == "reuse") is (part == "")


def test_an_entry_tells_all_that_differs(home: TemporaryHome) -> None:
    home.recipe("get-x", CACHED, customize=MAKES_A_FILE)
    home.run("get,x,_v", size="1")
    (row,) = explain(home, "get,x,_w", size="2")["cache"]["entries"]
    assert row["reason"] == (
        "it was built with the variations ['v'], but requested are ['w']; "
        "it was made with --size=1, requested is --size=2"
    )


def test_an_entry_whose_file_was_edited_is_told(home: TemporaryHome) -> None:
    home.recipe("get-x", CACHED, customize=MAKES_A_FILE)
    home.run("get,x")
    (home.entry("get-x") / "made.txt").write_text("2", encoding="utf-8")
    found = explain(home, "get,x")
    assert parts(found) == ["files"]
    assert "made.txt was edited" in found["cache"]["entries"][0]["reason"]


def test_an_unfinished_a_broken_and_an_expired_entry_are_told(home: TemporaryHome) -> None:
    home.recipe("get-x", {**CACHED, "variations": {"v": {"cache_expiration": "0"}, "w": {}}}, customize=MAKES_A_FILE)
    home.run("get,x")
    home.run("get,x,_v")
    home.run("get,x,_w")
    for meta in home.entries("get-x"):
        path = Path(meta["path"]) / "_cm.json"
        kept = {key: item for key, item in meta.items() if key != "path"}
        if "_w" in meta["tags"]:
            kept = {**kept, "tags": ["tmp", *meta["tags"]], "crowdperf": {**meta["crowdperf"], "retired": "edited"}}
        elif "_v" not in meta["tags"]:
            kept["tags"] = ["tmp", *meta["tags"]]
        path.write_text(json.dumps(kept), encoding="utf-8")
    found = explain(home, "get,x,_v")
    assert sorted(parts(found)) == ["broken", "expired", "unfinished"]


def test_an_entry_of_a_changed_recipe_and_one_planned_earlier_are_noted(home: TemporaryHome) -> None:
    folder = home.recipe("get-x", CACHED, customize=MAKES_A_FILE)
    home.run("get,x")
    (folder / "customize.py").write_text("# changed\n" + (folder / "customize.py").read_text(encoding="utf-8"))
    assert explain(home, "get,x")["cache"]["entries"][0]["note"] == "built by another version of this recipe"
    home.recipe("get-y", {"cache": True})
    home.recipe("use-y", {"deps": [{"tags": "get,y"}, {"tags": "get,y"}]})
    (row,) = explain(home, "use,y", step="get-y#2")["cache"]["entries"]
    assert (row["fits"], row["note"]) == (True, "built earlier in this plan")


@pytest.mark.parametrize("flag", ["new", "renew", "skip_cache"])
def test_a_flag_that_keeps_the_cache_away_is_named(home: TemporaryHome, flag: str) -> None:
    home.recipe("get-x", {"cache": True})
    home.run("get,x")
    assert explain(home, "get,x", **{flag: True})["cache"]["reason"] == f"--{flag} prevents reuse"


def test_a_recipe_that_is_not_cached_says_so(home: TemporaryHome) -> None:
    home.recipe("get-x")
    found = explain(home, "get,x")
    assert found["cache"]["is_cached"] is False
    assert "does not keep its result" in found["cache"]["reason"]


# --- steps ---


def test_a_step_that_is_not_there_is_refused_with_the_nearest(home: TemporaryHome) -> None:
    home.recipe("get-child")
    home.recipe("get-parent", {"deps": [{"tags": "get,child"}]})
    with pytest.raises(RequestError, match="no step 'get-chld'") as caught:
        explain(home, "get,parent", step="get-chld")
    assert "get-child" in caught.value.hint
    with pytest.raises(RequestError, match="--step=get-child#2: the plan has 1 step of this name"):
        explain(home, "get,parent", step="get-child#2")
    with pytest.raises(RequestError, match="counted from 1"):
        explain(home, "get,parent", step="get-child#0")


def test_a_skipped_dependency_tells_its_condition_and_who_set_the_key(home: TemporaryHome) -> None:
    home.recipe("get-child")
    home.recipe(
        "get-parent",
        {
            "env": {"CM_A": "no"},
            "deps": [{"tags": "get,child", "enable_if_env": {"CM_A": ["yes"], "CM_B": ["yes"]}}],
        },
    )
    found = explain(home, "get,parent", step="get,child")
    assert found["step"]["action"] == "skip"
    assert found["step"]["reason"] == "enable_if_env: CM_A in [yes]; CM_B in [yes]"
    assert history(found, "CM_A") == [("env", "recipe", "no", "set")]
    assert [row["note"] for row in found["env"]] == ["", "no step sets it"]


def test_a_step_that_would_fail_is_explained_with_its_error(home: TemporaryHome) -> None:
    home.recipe("get-parent", {"deps": [{"tags": "no,such"}]})
    found = explain(home, "get,parent", step="no,such")
    assert found["step"]["action"] == "fail"
    assert "no recipe has all the tags 'no,such'" in found["step"]["error"]


def test_what_cannot_be_selected_or_configured_at_all_raises_as_a_run_does(home: TemporaryHome) -> None:
    home.recipe("get-x", {"variations": {"a": {"group": "g"}, "b": {"group": "g"}}})
    with pytest.raises(NotFound):
        explain(home, "no,such")
    with pytest.raises(VariationError, match="several variations of the group"):
        explain(home, "get,x,_a,_b")


def test_a_step_bound_by_what_another_needs_tells_so(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "default_version": "1"})
    home.recipe("use-x", {"deps": [{"tags": "get,x"}, {"tags": "get,x", "version_min": "2"}]})
    found = explain(home, "use,x", step="get-x")
    assert bounds(found)["version_min"][0] == "2"
    assert bounds(found)["version_min"][1].startswith(
        "what satisfies all steps of this run that need the same artifact"
    )


# --- it tells the truth ---


def test_a_witness_changes_nothing(home: TemporaryHome) -> None:
    made = recipe(**LAYERED)
    for tags, inputs in (("get,x", {}), ("get,x,_v", {"d": "5", "version": "2"})):
        plain = configure(made, request(tags, inputs))
        watched = request(tags, inputs)._replace(origins=StepTrace("get-x", Asker()))
        assert configure(made, watched)._replace(request=plain.request) == plain


OWN_REQUESTS = ["run,mlperf,inference", "get,generic-python-lib,_package.numpy", "get,ml-model,digits", "detect,cpu"]


@pytest.mark.parametrize("tags", OWN_REQUESTS)
def test_over_our_own_recipes_the_plan_is_the_same_and_each_history_ends_with_the_value(
    home: TemporaryHome, tags: str
) -> None:
    own = Home([RepoInfo(CHECKOUT, "crowdperf", "a" * 16, python="src")], home.path, home.path / "repos" / "local")
    with working_folder(home.work):
        asked = parse_request({"tags": tags, "quiet": True})
        plain = make_plan(new_engine(own, None), asked)
        engine = ExplainEngine(new_engine(own, None))
        watched = make_plan(engine, asked, engine)
    assert plan_json(watched) == {**plan_json(plain), "free_bytes": watched.free_bytes}
    traces = [trace_of(step.configured) for _, step in watched.root.walk() if step.configured]
    assert len(traces) == sum(1 for _, step in plain.root.walk() if step.recipe)
    for trace in traces:
        assert trace.choice is not None
        for row in env_rows(trace, ["*"]):
            holding = [origin for origin in row.history if origin.effect != "not taken"]
            assert holding, row.key
            if not row.note:
                assert holding[-1].value == row.value, row


def test_explaining_writes_nothing_and_calls_no_hook(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True}, customize='raise RuntimeError("the hook was loaded")\n')
    explain(home, "get,x")
    before = sorted(str(path) for path in home.folder.rglob("*"))
    explain(home, "get,x", keys="*")
    assert sorted(str(path) for path in home.folder.rglob("*")) == before
    assert not home.store.exists()


def test_the_text_fits_in_its_width(home: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    home.recipe("get-child", CACHED, customize=MAKES_A_FILE)
    home.recipe(
        "get-parent", {**LAYERED, "deps": [{"tags": "get,child,_v", "names": ["n"], "env": {"CM_L": "x " * 90}}]}
    )
    home.run("get,child,_w")
    for extra in ({}, {"keys": "*"}, {"step": "get-child"}, {"step": "get-child", "keys": "CM_L"}):
        text = text_of(home, capsys, "get,parent", **extra)
        assert [line for line in text.splitlines() if len(line) > WIDTH and os.sep not in line] == []
        assert text.startswith("explain: ")


def test_the_reference_page_names_every_key_of_the_json(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "env": {"CM_A": "1"}, "default_version": "1", "variations": {"v": {}}})
    home.run("get,x,_v")
    page = (CHECKOUT / "docs" / "reference" / "explain.md").read_text(encoding="utf-8")
    found = explain(home, "get,x,_v")
    rows = explain_cache_action({"tags": "get,x"}, home.engine_home)["entries"]
    assert found["env"]
    assert rows[0]["variations"]
    missing = {key for key in _keys([found, rows]) if f"`{key}`" not in page}
    assert missing == set()


def _keys(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return {str(key) for key in value} | {key for item in value.values() for key in _keys(item)}
    return {key for item in value for key in _keys(item)} if isinstance(value, list) else set()
