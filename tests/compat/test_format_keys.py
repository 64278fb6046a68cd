"""Every live key of the recipe format changes what a run does: one small recipe for each, with and without the key.

The cases are tables: place and key to a recipe and what is seen of it. Each case is run twice, with the key and without
it, so that a key that nothing reads fails. ``test_every_live_key_has_a_case`` compares the tables with the list in
``recipe_engine/rules/keys.py``: a new key needs a case.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import Listener, TemporaryHome, write_recipe
from recipe_engine.actions.script_actions import test_action as act_on_tests
from recipe_engine.disk.repos import RecipeSource
from recipe_engine.documents.recipe_help import help_lines
from recipe_engine.planning.plan_action import plan_action
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.keys import FOR_PEOPLE, LIVE_KEYS, UNREAD

Seen = Callable[[TemporaryHome, "Case"], Any]


def answer_of(home: TemporaryHome, case: Case) -> dict[str, Any]:
    """What the run of a case answers; an error is an answer too."""
    try:
        return home.run(case.tags, **copy.deepcopy(dict(case.inputs)))
    except RecipeError as error:
        return {"return": error.code, "error": error.describe(), "new_env": {}, "new_state": {}}


def env(home: TemporaryHome, case: Case) -> Any:
    """The values that leave the recipe, or the error."""
    answer = answer_of(home, case)
    return answer.get("error") or answer["new_env"]


def is_placed(home: TemporaryHome, case: Case) -> Any:
    """Whether the path ``a`` counts from the folder of the call."""
    return env(home, case) == {"CM_X": str(home.work / "a")}


def state(home: TemporaryHome, case: Case) -> Any:
    """The state that leaves the recipe."""
    return answer_of(home, case)["new_state"]


def fails(home: TemporaryHome, case: Case) -> Any:
    """Whether the run ends with an error."""
    return answer_of(home, case)["return"] > 0


def skips(home: TemporaryHome, case: Case) -> Any:
    """Whether the run ends early."""
    return answer_of(home, case).get("skipped", False)


def reuses(home: TemporaryHome, case: Case) -> Any:
    """Whether the second run takes the cache entry of the first."""
    answer_of(home, case)
    answer_of(home, case)
    return "reused from the cache" in "\n".join(home.story)


def entry_tags(home: TemporaryHome, case: Case) -> Any:
    """The tags of the cache entry of get-x that are neither the recipe's nor the engine's."""
    answer_of(home, case)
    tags = [tag for meta in home.entries("get-x") for tag in meta["tags"]]
    return sorted(tag for tag in tags if tag not in ("get", "x") and not tag.startswith("script-artifact"))


def entries(home: TemporaryHome, case: Case) -> Any:
    """How many cache entries are left of get-x."""
    answer_of(home, case)
    return len(home.entries("get-x"))


def files(home: TemporaryHome, case: Case) -> Any:
    """The names in the working folder after the run; ``old.txt`` was there before."""
    (home.work / "old.txt").touch()
    answer_of(home, case)
    return sorted(path.name for path in home.work.iterdir())


def told(text: str) -> Seen:
    """Whether the story of the run, or its error, holds a text."""

    def look(home: TemporaryHome, case: Case) -> Any:
        answer = answer_of(home, case)
        return text in "\n".join([*home.story, answer.get("error", "")])

    return look


def refused_by_cm(home: TemporaryHome, case: Case) -> Any:
    """Whether a real ``cm`` says that it is too old."""
    return "needs CM 999.0 or newer" in home.run_cm(case.tags).stdout


def planned_disk_mb(home: TemporaryHome, case: Case) -> Any:
    """What the plan says of disk space."""
    return plan_action({"tags": case.tags, **case.inputs}, home.engine_home)["plan"]["needs"]["disk_mb"]


def helps_with(text: str) -> Seen:
    """Whether the help of the recipe holds a text."""

    def look(home: TemporaryHome, case: Case) -> Any:
        source = RecipeSource(home.engine_home.repos, home.engine_home.index_folder)
        (entry,) = source.index.by_name("get-x")
        return text in "\n".join(help_lines(source.recipe(entry)))

    return look


def given_by_tests(home: TemporaryHome, case: Case) -> Any:
    """What each run of ``cm test script get-x`` gives."""
    given = []

    def run(i: dict[str, Any]) -> dict[str, Any]:
        given.append(home.run(**i)["new_env"])
        return {"return": 0}

    act_on_tests({"artifact": "get-x", **case.inputs}, home.engine_home, SimpleNamespace(access=run))
    return given


def told_by_test(home: TemporaryHome, case: Case) -> Any:
    """Whether the test says that it asks for a container."""
    lines: list[str] = []
    logger, listener = logging.getLogger("recipe_engine"), Listener(lines)
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    try:
        given_by_tests(home, case)
    finally:
        logger.removeHandler(listener)
    return any("does not start containers" in line for line in lines)


@dataclass(frozen=True)
class Case:
    """A recipe ``get-x`` with ``block`` at the place of the key, ``around`` it, and what is seen of its run.

    ``others`` are recipes beside it, each with its ``texts`` (see ``write_recipe``) under the key ``+``.
    """

    block: Mapping[str, Any]
    expected: Any
    see: Seen = env
    around: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: str = "get,x"

    def write(self, home: TemporaryHome, meta: Mapping[str, Any]) -> None:
        """Writes get-x with this metadata, and the recipes beside it."""
        exports = {"new_env_keys": ["CM_X*"], "new_state_keys": ["x"]}
        others = {"give-x": GIVE_X, "pass-x": PASS_X, **self.others}
        for alias, other in others.items():
            write_recipe(home.repo, alias, {key: value for key, value in other.items() if key != "+"}, **other["+"])
        write_recipe(home.repo, "get-x", {**exports, **meta}, **self.texts)


GIVE_X = {
    "env": {"CM_X_GIVEN": "plain"},
    "new_env_keys": ["CM_X_GIVEN", "CM_X_SEEN*"],
    "new_state_keys": ["x"],
    "input_mapping": {"color": "CM_X_GIVEN"},
    "variations": {"v": {"env": {"CM_X_GIVEN": "v"}}, "n.#": {"env": {"CM_X_GIVEN": "n#"}}},
    "versions": {number: {"env": {"CM_X_GIVEN": number}} for number in ("1.0", "2.0", "3.0")},
    "+": {},
}
"""A dependency whose result tells with which variation, version and input it ran."""
PASS_X = {"deps": [{"tags": "give,x", "names": ["giver"]}], "new_env_keys": ["CM_X_GIVEN"], "+": {}}
"""A dependency that has give-x for its own dependency."""

WITNESS = {
    "customize": """
        def preprocess(i):
            i["env"]["CM_X_BEFORE"] = i["env"].get("CM_X_GIVEN", "-")
            return {"return": 0}

        def postprocess(i):
            i["env"]["CM_X_AFTER"] = i["env"].get("CM_X_GIVEN", "-")
            return {"return": 0}
        """,
    "run_sh": 'echo "CM_X_SCRIPT=${CM_X_GIVEN:--}" >tmp-run-env.out',
}
"""Hooks and a script that note whether the dependency had run before them."""


def witnessed(before: str, script: str, after: str) -> dict[str, str]:
    """What ``WITNESS`` notes when the dependency ran at some time."""
    return {"CM_X_GIVEN": "plain", "CM_X_BEFORE": before, "CM_X_SCRIPT": script, "CM_X_AFTER": after}


def hook(line: str, name: str = "preprocess") -> dict[str, str]:
    """A customize.py with one function that does one thing."""
    return {
        "customize": f"def {name}(i):\n    env, state = i['env'], i['state']\n    {line}\n    return {{'return': 0}}\n"
    }


ONE = {"CM_X": "1"}
ASKED = {"env": {"CM_ASK": "yes"}}
IF_ASKED = {"enable_if_env": {"CM_ASK": ["yes"]}}
GIVER = {"tags": "give,x", "names": ["giver"]}
IN_CONTAINER = {"env": {"CM_RUN_STATE_DOCKER": "yes", "MLC_RUN_STATE_DOCKER": "yes"}}

SHARED: dict[str, Case] = {
    "default_env": Case({"default_env": ONE}, ONE),
    "env": Case({"env": ONE}, ONE),
    "const": Case({"const": ONE}, ONE, texts=hook("env['CM_X'] = 'hook'")),
    "state": Case({"state": {"x": {"a": 1}}}, {"x": {"a": 1}}, state),
    "const_state": Case({"const_state": {"x": {"a": 1}}}, {"x": {"a": 1}}, state, texts=hook("state['x'] = {'a': 2}")),
    "docker": Case({"docker": {"run": False}}, True, skips, inputs=IN_CONTAINER),
    "ad": Case({"ad": {"giver": {"tags": "_v"}}}, {"CM_X_GIVEN": "v"}, around={"deps": [GIVER]}),
    "add_deps": Case({"add_deps": {"giver": {"tags": "_v"}}}, {"CM_X_GIVEN": "v"}, around={"deps": [GIVER]}),
    "adr": Case({"adr": {"giver": {"tags": "_v"}}}, {"CM_X_GIVEN": "v"}, around={"deps": [{"tags": "pass,x"}]}),
    "add_deps_recursive": Case(
        {"add_deps_recursive": {"giver": {"tags": "_v"}}}, {"CM_X_GIVEN": "v"}, around={"deps": [{"tags": "pass,x"}]}
    ),
}
"""Keys of recipes, variations, versions and the blocks of ``update_meta_if_env``."""

LAYER: dict[str, Case] = {
    **SHARED,
    "deps": Case({"deps": [{"tags": "give,x"}]}, witnessed("plain", "plain", "plain"), texts=WITNESS),
    "prehook_deps": Case({"prehook_deps": [{"tags": "give,x"}]}, witnessed("-", "plain", "plain"), texts=WITNESS),
    "posthook_deps": Case({"posthook_deps": [{"tags": "give,x"}]}, witnessed("-", "-", "plain"), texts=WITNESS),
    "post_deps": Case({"post_deps": [{"tags": "give,x"}]}, witnessed("-", "-", "-"), texts=WITNESS),
    "input_mapping": Case({"input_mapping": {"size": "CM_X"}}, {"CM_X": "5"}, inputs={"size": "5"}),
    "new_env_keys": Case({"new_env_keys": ["CM_Y"]}, {"CM_Y": "1"}, around={"env": {"CM_Y": "1"}}),
    "new_state_keys": Case({"new_state_keys": ["y"]}, {"y": 1}, state, around={"state": {"y": 1}}),
    "update_meta_if_env": Case({"update_meta_if_env": [{**IF_ASKED, "env": ONE}]}, ONE, inputs=ASKED),
    "script_name": Case(
        {"script_name": "other"}, ONE, texts={"files": {"other.sh": 'echo "CM_X=1" >tmp-run-env.out\n'}}
    ),
    "default_version": Case(
        {"default_version": "2.0"}, {"CM_X": "two"}, around={"versions": {"2.0": {"env": {"CM_X": "two"}}}}
    ),
    "warnings": Case({"warnings": ["mind the gap"]}, True, told("mind the gap")),
    "warning": Case({"warning": "mind the gap"}, True, told("mind the gap")),
    "required_disk_space": Case({"required_disk_space": 7}, True, told("needs about 7 MB of disk")),
    "cache_expiration": Case({"cache_expiration": "0"}, False, reuses, around={"cache": True}),
    "needs": Case({"needs": {"disk_mb": 9}}, 9, planned_disk_mb),
}
"""Keys that recipes, variations and versions share."""

SEES_OWN = {"see-own": {"new_env_keys": ["CM_X*"], "+": hook("env['CM_X_SEEN'] = 'yes' if 'CM_OWN' in env else 'no'")}}
VW = {"variations": {"v": {}, "w": {}}}

RECIPE: dict[str, Case] = {
    "alias": Case({"alias": "by-name"}, ONE, around={"env": ONE}, tags="", inputs={"artifact": "by-name"}),
    "uid": Case({"uid": "b" * 16}, ONE, around={"env": ONE}, tags="", inputs={"artifact": "b" * 16}),
    "automation_uid": Case({"automation_uid": "0" * 16}, True, fails),
    "tags": Case({"tags": ["find", "me"]}, ONE, around={"env": ONE}, tags="find,me"),
    "sort": Case(
        {"sort": -1},
        ONE,
        around={"env": ONE, "tags": ["one", "of", "two"]},
        others={"a-rival": {"tags": ["one", "of", "two"], "+": {}}},
        tags="one,of,two",
    ),
    "cache": Case({"cache": True}, True, reuses),
    "library": Case({"library": ["pkg.x"]}, True, told("cmr.yaml has no 'python' folder"), around={"cache": True}),
    "can_force_cache": Case({"can_force_cache": True}, True, reuses, inputs={"force_cache": True}),
    "variations": Case({"variations": {"v": {"env": ONE}}}, ONE, tags="get,x,_v"),
    "versions": Case({"versions": {"1.0": {"env": ONE}}}, ONE, inputs={"version": "1.0"}),
    "customize": Case({"customize": {"a": "1"}}, ONE, texts=hook("env['CM_X'] = i['customize'].get('a', 'no')")),
    "input_description": Case(
        {"input_description": {"folder": {"is_path": True}}},
        True,
        is_placed,
        around={"input_mapping": {"folder": "CM_X"}},
        inputs={"folder": "a"},
    ),
    "default_variation": Case({"default_variation": "v"}, ONE, around={"variations": {"v": {"env": ONE}}}),
    "default_variations": Case(
        {"default_variations": {"g": "v"}}, ONE, around={"variations": {"v": {"group": "g", "env": ONE}}}
    ),
    "version": Case({"version": "1.0"}, ONE, around={"versions": {"1.0": {"env": ONE}}}),
    "version_min": Case(
        {"version_min": "2.0"}, ONE, around={"default_version": "1.0", "versions": {"2.0": {"env": ONE}}}
    ),
    "version_max": Case(
        {"version_max": "2.0"}, ONE, around={"default_version": "3.0", "versions": {"2.0": {"env": ONE}}}
    ),
    "version_max_usable": Case(
        {"version_max_usable": "1.5"},
        ONE,
        around={"default_version": "3.0", "version_max": "2.0", "versions": {"1.5": {"env": ONE}}},
    ),
    "valid_variation_combinations": Case(
        {"valid_variation_combinations": [["v", "w"]]},
        True,
        fails,
        around=VW,
        tags="get,x,_v",
    ),
    "invalid_variation_combinations": Case(
        {"invalid_variation_combinations": [["v", "w"]]},
        True,
        fails,
        around=VW,
        tags="get,x,_v,_w",
    ),
    "local_env_keys": Case(
        {"local_env_keys": ["CM_OWN*"]},
        {"CM_X_SEEN": "no"},
        around={"env": {"CM_OWN": "1"}, "deps": [{"tags": "see,own"}]},
        others=SEES_OWN,
    ),
    "clean_env_keys_post_deps": Case(
        {"clean_env_keys_post_deps": ["CM_OWN*"]},
        {"CM_X_SEEN": "no"},
        around={"env": {"CM_OWN": "1"}, "post_deps": [{"tags": "see,own"}]},
        others=SEES_OWN,
    ),
    "extra_cache_tags_from_env": Case(
        {"extra_cache_tags_from_env": [{"env": "CM_A", "prefix": "a-"}]},
        ["deps-a-one"],
        entry_tags,
        around={"cache": True},
        inputs={"env": {"CM_A": "one"}},
    ),
    "env_key_mappings": Case(
        {"env_key_mappings": {"CM_OLD": "CM_X"}},
        {"CM_X_A": "1", "CM_X_SAW": "1"},
        around={"env": {"CM_OLD_A": "1"}},
        texts={"run_sh": 'echo "CM_X_SAW=$CM_X_A" >tmp-run-env.out'},
    ),
    "clean_files": Case({"clean_files": ["old.txt"]}, [], files),
    "clean_output_files": Case(
        {"clean_output_files": ["old.txt"]}, [], files, inputs={"fake_run": True, "dirty": True}
    ),
    "print_files_if_script_error": Case(
        {"print_files_if_script_error": ["report.txt"]},
        True,
        told("what went wrong"),
        texts={"run_sh": "echo what went wrong >report.txt; exit 3"},
    ),
    "print_env_at_the_end": Case(
        {"print_env_at_the_end": {"CM_X": "The answer"}},
        True,
        told("The answer: 42"),
        around={"env": {"CM_X": "42"}},
        inputs={"out": "con"},
    ),
    "refused_inputs": Case({"refused_inputs": {"other": "say --x"}}, True, fails, inputs={"other": "1"}),
    "unused_inputs": Case(
        {"unused_inputs": {"other": "it is gone"}},
        True,
        told("--other has no effect: it is gone"),
        inputs={"other": "1", "out": "con"},
    ),
    "plan_first": Case(
        {"plan_first": True},
        0,
        lambda home, case: (answer_of(home, case), len(home.entries()))[1],
        around={"deps": [{"tags": "make,y"}]},
        texts={
            "customize": """
                def plan(i):
                    return {"return": 3, "error": "no"}

                def preprocess(i):
                    return {"return": 3, "error": "no"}
                """
        },
        others={"make-y": {"cache": True, "+": {}}},
    ),
    "own_folder": Case(
        {"own_folder": True},
        {"CM_X_IS_HERE": "no"},
        around={"new_env_keys": ["CM_X_IS_HERE"]},
        texts={"run_sh": 'test "$PWD" = "$CM_TMP_CURRENT_PATH" || echo CM_X_IS_HERE=no >tmp-run-env.out'},
    ),
    "min_cm_version": Case({"min_cm_version": "999.0"}, True, refused_by_cm),
    "predeps": Case(
        {"predeps": False},
        {"CM_X_GIVEN": "plain"},
        around={"deps": [{"tags": "give,x"}], "env": {"CM_X": "0"}, "new_env_keys": ["CM_X_GIVEN"]},
        texts=hook("i['meta']['deps'][0]['tags'] = 'give,x,_v'", "predeps"),
    ),
    "name": Case({"name": "Get an X"}, True, helps_with("Get an X")),
    "tags_help": Case({"tags_help": "x"}, True, helps_with("cm run script --tags=x\n")),
    "tests": Case({"tests": {"run_inputs": [{}]}}, [ONE], given_by_tests, around={"env": ONE}),
    "_base": Case({"_base": "script::give-x"}, {"CM_X_GIVEN": "v"}, tags="get,x,_v"),
}
"""Keys of recipes alone."""

VARIATION: dict[str, Case] = {
    "group": Case(
        {"group": "g"}, True, fails, around={"variations": {"w": {"group": "g", "default": True}}}, tags="get,x,_v,_w"
    ),
    "default": Case({"default": True, "group": "g", "env": ONE}, ONE, tags="get,x"),
    "base": Case({"base": ["w"]}, ONE, around={"variations": {"w": {"env": ONE}}}),
    "default_variations": Case(
        {"default_variations": {"g": "w"}}, ONE, around={"variations": {"w": {"group": "g", "env": ONE}}}
    ),
    "alias": Case({"alias": "w"}, ONE, around={"variations": {"w": {"env": ONE}}}),
    "cache": Case({"cache": False}, False, reuses, around={"cache": True}),
    "library": Case({"library": ["pkg.x"]}, True, told("cmr.yaml has no 'python' folder"), around={"cache": True}),
}
TESTED = {"variations": {"v": {"env": {"CM_X": "v"}}, "w": {"env": {"CM_X": "w"}}}}

VARIATION["exclude-in-test"] = Case(
    {"exclude-in-test": True, "env": {"CM_X": "v"}},
    [{"CM_X": "w"}],
    given_by_tests,
    around={"variations": {"w": TESTED["variations"]["w"]}, "tests": {"run_inputs": [{"test-all-variations": "yes"}]}},
)
"""Keys of variations alone; the block is that of ``v``, which is asked for."""

CONDITIONAL: dict[str, Case] = {
    "default_variations": Case(
        {**IF_ASKED, "default_variations": {"g": "v"}},
        ONE,
        around={"variations": {"v": {"group": "g", "env": ONE}}},
        inputs=ASKED,
    ),
    "enable_if_env": Case({"enable_if_env": {"CM_NO": ["yes"]}, "env": ONE}, {}),
    "skip_if_env": Case({"skip_if_env": {"CM_ASK": ["yes"]}, "env": ONE}, {}, inputs=ASKED),
    "enable_if_any_env": Case({"enable_if_any_env": {"CM_NO": ["yes"]}, "env": ONE}, {}),
    "skip_if_any_env": Case({"skip_if_any_env": {"CM_ASK": ["yes"], "CM_NO": ["1"]}, "env": ONE}, {}, inputs=ASKED),
}
"""Keys of the blocks of ``update_meta_if_env`` alone."""

PLAIN, FROM_V = {"CM_X_GIVEN": "plain"}, {"CM_X_GIVEN": "v"}
SEEING = {"see-x": {"new_env_keys": ["CM_X_SEEN"], "+": hook("env['CM_X_SEEN'] = str(env.get('CM_SHOWN', 'nothing'))")}}
CACHED = {"cached-x": {"cache": True, "can_force_cache": True, "new_env_keys": ["CM_X*"], "env": ONE, "+": {}}}


def see_input(key: str, value: str, env_key: str) -> Case:
    """A key of a dependency that reaches the child as env."""
    seeing = {"new_env_keys": ["CM_X_SEEN"], "+": hook(f"env['CM_X_SEEN'] = env.get('{env_key}', '')")}
    return Case({"tags": "see,x", key: value}, {"CM_X_SEEN": value}, others={"see-x": seeing})


def giving(default_version: str) -> dict[str, Any]:
    """give-x with a default version."""
    return {"give-x": {**GIVE_X, "default_version": default_version}}


def cached_again(home: TemporaryHome, case: Case) -> Any:
    """How often the cached dependency was reused in two runs."""
    answer_of(home, case)
    answer_of(home, case)
    return "\n".join(home.story).count("cached-x: reused")


def tags_of_cached(home: TemporaryHome, case: Case) -> Any:
    """Whether the entry of the cached dependency has the tag ``special``."""
    answer_of(home, case)
    return any("special" in meta["tags"] for meta in home.entries("cached-x"))


def outcome_of_second_run(home: TemporaryHome, case: Case) -> Any:
    """What the second run of a cached parent gives: its entry, and what its dynamic dependencies changed."""
    answer_of(home, case)
    answer_of(home, case)
    return any("give-x" in line for line in home.story)


DEPENDENCY: dict[str, Case] = {
    "tags": Case({"tags": "give,x,_v"}, FROM_V),
    "names": Case({"tags": "give,x", "names": ["giver"]}, FROM_V, around={"adr": {"giver": {"tags": "_v"}}}),
    "env": Case({"tags": "see,x", "env": {"CM_SHOWN": "1"}}, {"CM_X_SEEN": "1"}, others=SEEING),
    "state": Case(
        {"tags": "see,x", "state": {"shown": "1"}},
        {"CM_X_SEEN": "1"},
        others={"see-x": {"new_env_keys": ["CM_X_SEEN"], "+": hook("env['CM_X_SEEN'] = state.get('shown', '')")}},
    ),
    "const": Case({"tags": "give,x", "const": {"CM_X_GIVEN": "const"}}, {"CM_X_GIVEN": "const"}),
    "const_state": Case(
        {"tags": "see,x", "const_state": {"x": {"a": 1}}},
        {"x": {"a": 1}},
        state,
        others={"see-x": {"new_state_keys": ["x"], "+": hook("state['x'] = {'a': 2}")}},
    ),
    "dynamic": Case({"tags": "give,x", "dynamic": True}, True, outcome_of_second_run, around={"cache": True}),
    "enable_if_env": Case({"tags": "give,x", "enable_if_env": {"CM_NO": ["yes"]}}, {}),
    "skip_if_env": Case({"tags": "give,x", "skip_if_env": {"CM_ASK": ["yes"]}}, {}, inputs=ASKED),
    "enable_if_any_env": Case({"tags": "give,x", "enable_if_any_env": {"CM_NO": ["yes"]}}, {}),
    "skip_if_any_env": Case({"tags": "give,x", "skip_if_any_env": {"CM_ASK": ["yes"], "CM_NO": [1]}}, {}, inputs=ASKED),
    "update_tags_from_env": Case(
        {"tags": "give,x", "update_tags_from_env": ["CM_MORE"]}, FROM_V, inputs={"env": {"CM_MORE": "_v"}}
    ),
    "update_tags_from_env_with_prefix": Case(
        {"tags": "give,x", "update_tags_from_env_with_prefix": {"_n.": ["CM_MORE"]}},
        {"CM_X_GIVEN": "n7"},
        inputs={"env": {"CM_MORE": "7"}},
    ),
    "update_tags_if_env": Case({"tags": "give,x", "update_tags_if_env": {"_v": IF_ASKED}}, FROM_V, inputs=ASKED),
    "force_env_keys": Case(
        {"tags": "see,x", "force_env_keys": ["CM_GIT_*"]},
        {"CM_X_SEEN": "1"},
        around={"env": {"CM_GIT_A": "1"}},
        others={"see-x": {"new_env_keys": ["CM_X_SEEN"], "+": hook("env['CM_X_SEEN'] = env.get('CM_GIT_A', '')")}},
    ),
    "inherit_variation_tags": Case(
        {"tags": "give,x", "inherit_variation_tags": True}, FROM_V, around={"variations": {"v": {}}}, tags="get,x,_v"
    ),
    "skip_inherit_variation_groups": Case(
        {"tags": "give,x", "inherit_variation_tags": True, "skip_inherit_variation_groups": ["g"]},
        PLAIN,
        around={"variations": {"v": {"group": "g"}}},
        tags="get,x,_v",
    ),
    "reuse_version": Case({"tags": "give,x", "reuse_version": True}, {"CM_X_GIVEN": "2.0"}, inputs={"version": "2.0"}),
    "skip_if_fake_run": Case({"tags": "give,x", "skip_if_fake_run": True}, {}, inputs={"fake_run": True}),
    "update_meta_if_env": Case(
        {"tags": "see,x", "update_meta_if_env": [{**IF_ASKED, "env": {"CM_SHOWN": "1"}}]},
        {"CM_X_SEEN": "1"},
        inputs=ASKED,
        others=SEEING,
    ),
    "continue_on_error": Case(
        {"tags": "no,such", "continue_on_error": True}, False, fails, others={"a-b": {"tags": ["no", "thing"], "+": {}}}
    ),
    "inherit_cache_expiration": Case(
        {"tags": "cached,x", "inherit_cache_expiration": True},
        0,
        cached_again,
        around={"cache_expiration": "0"},
        others=CACHED,
    ),
    "name": see_input("name", "venv1", "CM_NAME"),
    "path": see_input("path", "/a", "CM_TMP_PATH"),
    "input": see_input("input", "in.txt", "CM_INPUT"),
    "output": see_input("output", "out.txt", "CM_OUTPUT"),
    "outbasename": see_input("outbasename", "base", "CM_OUTBASENAME"),
    "outdirname": Case(
        {"tags": "write,x", "outdirname": "sub"},
        ["old.txt", "sub"],
        files,
        others={"write-x": {"+": {"run_sh": "touch made.txt"}}},
    ),
    "version": Case({"tags": "give,x", "version": "2.0"}, {"CM_X_GIVEN": "2.0"}),
    "version_min": Case(
        {"tags": "give,x", "version_min": "2.0"},
        {"CM_X_GIVEN": "2.0"},
        others=giving("1.0"),
    ),
    "version_max": Case(
        {"tags": "give,x", "version_max": "2.0"},
        {"CM_X_GIVEN": "2.0"},
        others=giving("3.0"),
    ),
    "version_max_usable": Case(
        {"tags": "give,x", "version_max": "2.0", "version_max_usable": "1.0"},
        {"CM_X_GIVEN": "1.0"},
        others=giving("3.0"),
    ),
    "extra_cache_tags": Case({"tags": "cached,x", "extra_cache_tags": "special"}, True, tags_of_cached, others=CACHED),
    "force_cache": Case(
        {"tags": "cached,x", "force_cache": True},
        1,
        cached_again,
        others={"cached-x": {**CACHED["cached-x"], "cache": False}},
    ),
    "skip_cache": Case({"tags": "cached,x", "skip_cache": True}, 0, cached_again, others=CACHED),
    "cache_expiration": Case({"tags": "cached,x", "cache_expiration": 0}, 0, cached_again, others=CACHED),
    "ignore_script_error": Case(
        {"tags": "fail,x", "ignore_script_error": True}, False, fails, others={"fail-x": {"+": {"run_sh": "exit 3"}}}
    ),
    "force_new_env_keys": Case(
        {"tags": "give,x", "force_new_env_keys": ["CM_X_OTHER"], "env": {"CM_X_OTHER": "1"}}, {"CM_X_OTHER": "1"}
    ),
    "force_new_state_keys": Case(
        {"tags": "give,x", "force_new_state_keys": ["y"]},
        {"y": 1},
        state,
        around={"new_state_keys": ["y"]},
        others={"give-x": {"state": {"y": 1}, "+": {}}},
    ),
    "ad": Case({"tags": "pass,x", "ad": {"giver": {"tags": "_v"}}}, FROM_V),
    "add_deps": Case({"tags": "pass,x", "add_deps": {"giver": {"tags": "_v"}}}, FROM_V),
    "adr": Case({"tags": "pass,x", "adr": {"giver": {"tags": "_v"}}}, FROM_V),
    "add_deps_recursive": Case({"tags": "pass,x", "add_deps_recursive": {"giver": {"tags": "_v"}}}, FROM_V),
}
"""Keys of an entry of ``deps``; the block is the only entry of get-x."""

OVERRIDE: dict[str, Case] = {
    "tags": Case({"tags": "_v"}, FROM_V),
    "env": Case({"env": {"CM_VERSION": "2.0"}}, {"CM_X_GIVEN": "2.0"}),
    "version": Case({"version": "2.0"}, {"CM_X_GIVEN": "2.0"}),
    "version_min": Case({"version_min": "2.0"}, {"CM_X_GIVEN": "2.0"}, others=giving("1.0")),
    "version_max": Case({"version_max": "2.0"}, {"CM_X_GIVEN": "2.0"}, others=giving("3.0")),
    "version_max_usable": Case(
        {"version_max": "2.0", "version_max_usable": "1.0"},
        {"CM_X_GIVEN": "1.0"},
        others=giving("3.0"),
    ),
    "extra_cache_tags": Case({"extra_cache_tags": "special"}, True, tags_of_cached, others=CACHED),
    "enable_if_env": Case({"tags": "_v", "enable_if_env": {"CM_NO": ["yes"]}}, PLAIN),
    "skip_if_env": Case({"tags": "_v", "skip_if_env": {"CM_ASK": ["yes"]}}, PLAIN, inputs=ASKED),
    "enable_if_any_env": Case({"tags": "_v", "enable_if_any_env": {"CM_NO": ["yes"]}}, PLAIN),
    "skip_if_any_env": Case({"tags": "_v", "skip_if_any_env": {"CM_ASK": ["yes"]}}, PLAIN, inputs=ASKED),
}
"""Keys below a handle of ``adr``; the block is that of the handle ``giver``."""

DOCKER: dict[str, Case] = {
    "run": Case({"run": False}, True, skips, inputs=IN_CONTAINER),
    "real_run": Case({"real_run": False}, {}, inputs=IN_CONTAINER, texts=hook("env['CM_X'] = 'hook'")),
}
"""Keys of ``docker`` that a run reads, inside a container."""

CACHE_TAGS_FROM_ENV: dict[str, Case] = {
    key: Case({"env": "CM_A", "prefix": "a-"}, ["deps-a-one"], entry_tags, {"cache": True}, {"env": {"CM_A": "one"}})
    for key in ("env", "prefix")
}

SIZED = {"input_mapping": {"size": "CM_X"}}


def wrong_size(block: Mapping[str, Any], size: str, text: str, **around: Any) -> Case:
    """An input ``size`` whose value gets this remark."""
    return Case(block, True, told(text), around={**SIZED, **around}, inputs={"size": size})


INPUT: dict[str, Case] = {
    "type": wrong_size({"type": "whole"}, "huge", "--size: found 'huge'; allowed: a whole number from 0"),
    "unit": wrong_size({"type": "number", "unit": "ms"}, "huge", "allowed: a number (ms)"),
    "minimum": wrong_size({"type": "whole", "minimum": 2}, "1", "allowed: a whole number from 2"),
    "maximum": wrong_size({"type": "whole", "maximum": 2}, "3", "allowed: a whole number from 0 to 2"),
    "above": wrong_size({"type": "number", "above": 0}, "0", "allowed: a number above 0"),
    "only_with": wrong_size({"type": "whole", "only_with": "size=3"}, "1", "which counts only with --size=3"),
    "together_with": wrong_size(
        {"type": "whole", "together_with": ["weight"]},
        "1",
        "--size: give --weight as well, or omit both",
        input_description={"weight": "how heavy"},
    ),
    "aliases": Case({"env": "CM_X", "aliases": ["extent"]}, {"CM_X": "a"}, inputs={"extent": "a"}),
    "may_be_empty": Case(
        {"type": "text", "may_be_empty": True}, False, told("--size has no value"), around=SIZED, inputs={"size": ""}
    ),
    "env": Case({"env": "CM_X"}, {"CM_X": "a"}, inputs={"size": "a"}),
    "choices": wrong_size(
        {"choices": ["small", "big"]}, "huge", "--size=huge is not one of its values (allowed: small, big)"
    ),
    "boolean": wrong_size({"boolean": True}, "y", "--size=y is not one of its values (allowed: yes, no)"),
    "refused": wrong_size(
        {"choices": ["small"], "refused": {"huge": "nothing here is so large"}},
        "huge",
        "--size=huge: nothing here is so large",
    ),
    "is_path": Case({"is_path": True}, True, is_placed, around=SIZED, inputs={"size": "a"}),
    "desc": Case({"desc": "how much of it"}, True, helps_with("how much of it")),
    "default": Case({"default": "some 40"}, True, helps_with("default: some 40")),
    "env_default": Case({"env": "CM_X", "env_default": 40}, {"CM_X": "40"}),
}
"""Keys of the description of the input ``size``."""

TESTS: dict[str, Case] = {"run_inputs": Case({"run_inputs": [{"env": ONE}, {}]}, [ONE, {}], given_by_tests)}
RUN_INPUTS: dict[str, Case] = {
    "id": Case({"id": "one", "env": ONE}, [ONE], given_by_tests, inputs={"test_input_id": "one"}),
    "env": Case({"env": ONE}, [ONE], given_by_tests),
    "docker": Case({"docker": True}, True, told_by_test),
    "test-all-variations": Case({"test-all-variations": "yes"}, [{"CM_X": "v"}, {"CM_X": "w"}], given_by_tests, TESTED),
    "variations_list": Case({"variations_list": ["v", "_w"]}, [{"CM_X": "v"}, {"CM_X": "w"}], given_by_tests, TESTED),
}
"""Keys of ``tests`` and of its entries, which ``cm test script`` reads; any other key of an entry is an input."""

Place = Callable[[Mapping[str, Any], Case], dict[str, Any]]


def in_recipe(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block at the top of the recipe."""
    return {**case.around, **block}


def in_variation(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as the variation ``v``."""
    return {**case.around, "variations": {**case.around.get("variations", {}), "v": dict(block)}}


def in_version(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as version 1.0, which the recipe asks for itself."""
    return {**case.around, "version": "1.0", "versions": {**case.around.get("versions", {}), "1.0": dict(block)}}


def in_condition(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block in ``update_meta_if_env``."""
    return {**case.around, "update_meta_if_env": [dict(block)]}


def in_dependency(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as the only dependency."""
    return {**case.around, "deps": [dict(block)]}


def in_override(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block below a handle of ``adr``."""
    entry = {"tags": "cached,x" if "cached-x" in case.others else "give,x", "names": ["giver"]}
    return {**case.around, "deps": [entry], "adr": {"giver": dict(block)}}


def in_docker(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as ``docker``."""
    return {**case.around, "docker": dict(block)}


def in_cache_tags(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as an item of ``extra_cache_tags_from_env``."""
    return {**case.around, "extra_cache_tags_from_env": [dict(block)]}


def in_input(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as the description of the input ``size``."""
    return {**case.around, "input_description": {**case.around.get("input_description", {}), "size": dict(block)}}


def in_tests(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as ``tests``."""
    return {**case.around, "tests": dict(block)}


def in_run_inputs(block: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The block as the only entry of ``tests.run_inputs``."""
    return in_tests({"run_inputs": [dict(block)]}, case)


def with_variation(cases: Mapping[str, Case]) -> dict[str, Case]:
    """The cases with the variation ``v`` asked for."""
    asked = {}
    for key, case in cases.items():
        is_default = key == "default"
        asked[key] = case if is_default or "_v" in case.tags else Case(**{**vars(case), "tags": case.tags + ",_v"})
    return asked


PLACES: dict[str, tuple[Place, dict[str, Case]]] = {
    "recipe": (in_recipe, {**LAYER, **RECIPE}),
    "variation": (in_variation, with_variation({**LAYER, **VARIATION})),
    "version": (in_version, {key: case for key, case in LAYER.items() if key != "default_version"}),
    "update_meta_if_env": (in_condition, {**SHARED, **CONDITIONAL}),
    "dependency": (in_dependency, DEPENDENCY),
    "override": (in_override, OVERRIDE),
    "docker": (in_docker, DOCKER),
    "extra_cache_tags_from_env": (in_cache_tags, CACHE_TAGS_FROM_ENV),
    "input_description": (in_input, INPUT),
    "tests": (in_tests, TESTS),
    "tests.run_inputs": (in_run_inputs, RUN_INPUTS),
}
"""Each place of the format, how a block gets there, and the cases of its keys."""

ALL = [(place, key) for place, (_, cases) in PLACES.items() for key in cases]


@pytest.mark.parametrize(("place", "key"), ALL, ids=[f"{place}-{key}" for place, key in ALL])
def test_a_key_changes_what_a_run_does(tmp_path: Any, place: str, key: str) -> None:
    put, cases = PLACES[place]
    case = cases[key]
    seen = {}
    for name, block in (("with", case.block), ("without", {k: v for k, v in case.block.items() if k != key})):
        home = TemporaryHome(tmp_path / name)
        case.write(home, put(block, case))
        seen[name] = case.see(home, case)
    assert seen["with"] == case.expected
    assert seen["without"] != case.expected, f"{key} in {place} makes no difference"


@pytest.mark.parametrize("key", LAYER)
def test_a_key_means_the_same_in_a_recipe_of_cms_successor(home: TemporaryHome, key: str) -> None:
    """What differs there has tests in tests/engine/test_metafile.py."""
    case = LAYER[key]
    case.write(home, in_recipe(case.block, case))
    folder = home.repo / "script" / "get-x"
    (folder / "_cm.json").rename(folder / "meta.yaml")
    assert case.see(home, case) == case.expected


@pytest.mark.parametrize("place", [*PLACES, *(set(LIVE_KEYS) - set(PLACES))])
def test_every_live_key_has_a_case(place: str) -> None:
    assert set(PLACES[place][1]) == set(LIVE_KEYS[place])


def test_no_live_key_is_listed_as_unread_too() -> None:
    for table in (FOR_PEOPLE, UNREAD):
        for place, keys in table.items():
            assert not set(LIVE_KEYS[place]) & keys.keys()
            assert all(keys.values()), "each needs a word why"
