"""The traps of the reference engine (cm4mlops at e1d5c7cf0), and the test that keeps each of them shut here.

What concerns a whole run is tested in this file with ``cm`` processes; the table at its end names, trap by trap, the
tests elsewhere that show the rest, and checks that they are there.
"""

import ast
import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, wait_until

TESTS = Path(__file__).resolve().parent.parent

HOSTILE = {
    "quotes": """say "hi" and 'bye'""",
    "command substitution": "$(touch pwned)",
    "backticks": "`touch pwned`",
    "end of the quoting": "'; touch pwned; '",
    "several lines": "one\ntwo\n\nfour $(touch pwned)",
    "equals signs": "https://host/?a=b=c&d=--flag=-DX=1",
    "variables": "$HOME ${HOME} $$ ~ !!",
    "backslashes and globs": "\\n \\' * ? [a] {a,b} \\",
    "blanks at the ends": "  two in front and two behind  ",
    "words of other alphabets": "grüße 你好 😀",
}
SEEN = """
    printf '%s' "$CM_FROM_CALLER" > seen-caller
    printf '%s' "$CM_FROM_RECIPE" > seen-recipe
    printf '%s' "$CM_FROM_DEPENDENCY" > seen-dependency
"""


@pytest.mark.parametrize("value", HOSTILE.values(), ids=list(HOSTILE))
def test_values_reach_the_native_script_and_come_back_unchanged_and_are_never_executed(
    home: TemporaryHome, value: str
) -> None:
    home.write_cmr(values="literal")
    home.recipe("give-value", {"env": {"CM_FROM_DEPENDENCY": value}, "new_env_keys": ["CM_FROM_DEPENDENCY"]})
    home.recipe(
        "get-x",
        {"deps": [{"tags": "give,value"}], "env": {"CM_FROM_RECIPE": value}, "new_env_keys": ["CM_FROM_*"]},
        run_sh=SEEN,
    )
    answer = home.run("get,x", env={"CM_FROM_CALLER": value})
    for origin in ("CALLER", "RECIPE", "DEPENDENCY"):
        assert (home.work / f"seen-{origin.lower()}").read_bytes().decode() == value
        assert answer["new_env"][f"CM_FROM_{origin}"] == value
    assert not list(home.folder.rglob("pwned"))


def test_a_value_given_on_the_command_line_and_one_left_by_a_script_keep_their_equals_signs(
    home: TemporaryHome,
) -> None:
    value = "https://host/?a=b=c&d=$(touch pwned)"
    home.recipe("get-x", {"new_env_keys": ["CM_GIVEN", "CM_BACK"]}, run_sh='echo "CM_BACK=$CM_GIVEN" > tmp-run-env.out')
    done = home.run_cm("get,x", f"--env.CM_GIVEN={value}")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_GIVEN": value, "CM_BACK": value}
    assert not list(home.folder.rglob("pwned"))


def test_the_same_request_gives_the_same_whatever_the_hash_seed_the_folder_and_the_flags_for_questions(
    home: TemporaryHome,
) -> None:
    order = {name: {"env": {"CM_LAST": name}} for name in ("x", "y", "z", "v")}
    home.recipe("get-tool", {"variations": order, "new_env_keys": ["CM_LAST"]})
    home.recipe(
        "get-x",
        {
            "deps": [{"tags": "get,tool,_v", "names": ["tool"]}],
            "adr": {"tool": {"tags": "_y,_z,_x"}},
            "env": {"CM_SET": "1"},
            "new_env_keys": ["CM_LAST", "CM_SET", "CM_OUT"],
        },
        run_sh='echo "CM_OUT=$CM_LAST" > tmp-run-env.out',
    )
    answers = []
    for seed, name in enumerate(["plain", "with blanks", "it's $(touch pwned)", "ünïcode"]):
        folder = home.folder / name
        folder.mkdir()
        quiet = ["--quiet"] if seed % 2 else []
        words = ("run", "script", "--tags=get,x", "--out=json", *quiet)
        done = home.cm(*words, env={"PYTHONHASHSEED": str(seed)}, cwd=folder)
        assert done.code == 0, done.stderr
        answers.append((done.answer["new_env"], done.answer["deps"]))
    assert answers == [({"CM_LAST": "x", "CM_SET": "1", "CM_OUT": "x"}, ["get,tool,_v,_y,_z,_x"])] * 4
    assert not list(home.folder.rglob("pwned"))


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("exit 3", "failed with exit code 3"),
        ("exit 77", "failed with exit code 77"),
        ("kill -TERM $$", "was killed by SIGTERM"),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("bash -c 'exit 5'; exit $?", "failed with exit code 5"),
    ],
)
def test_the_true_exit_code_of_a_failing_child_is_reported(home: TemporaryHome, end: str, told: str) -> None:
    home.recipe("get-inner", run_sh=end)
    home.recipe("get-x", {"deps": [{"tags": "get,inner"}]})
    done = home.run_cm("get,x")
    assert done.code == 2
    assert told in done.answer["error"]
    assert "get-x -> get-inner" in done.answer["error"]


@pytest.mark.parametrize("place", ["import", "preprocess", "postprocess"])
def test_an_exception_in_a_recipe_leaves_no_half_entry_no_env_and_the_folder_as_it_was(
    home: TemporaryHome, place: str
) -> None:
    hook = f"""
        import os, pathlib

        broken = pathlib.Path({str(home.work / "broken")!r})

        def fail(name):
            if broken.exists() and name == {place!r}:
                raise KeyError("no such thing")

        fail("import")

        def preprocess(i):
            i["env"]["CM_X"] = os.getcwd()
            pathlib.Path("half").touch()
            fail("preprocess")
            return {{"return": 0}}

        def postprocess(i):
            fail("postprocess")
            return {{"return": 0}}
    """
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_X"]}, customize=hook, run_sh=":")
    (home.work / "broken").touch()
    failed = home.run_cm("get,x")
    assert failed.code == 1
    assert "KeyError" in failed.answer["error"]
    assert "Traceback" not in failed.stderr + failed.stdout
    assert all("tmp" in meta["tags"] for meta in home.entries()), "nothing that failed may count as finished"
    assert home.run_cm("get,x", "--only_execute_from_cache").code == 1
    (home.work / "broken").unlink()
    done = home.run_cm("get,x")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_X": str(home.entry("get-x"))}
    assert len(home.entries()) == 1


def test_what_the_command_line_says_is_the_last_word_over_settings_of_the_user(home: TemporaryHome) -> None:
    home.recipe("get-x", {"new_env_keys": ["CM_A", "CM_VERSION_SEEN"], "versions": {"1.0": {}, "2.0": {}}}, run_sh="""
        echo "CM_VERSION_SEEN=$CM_VERSION" > tmp-run-env.out
    """)  # fmt: skip
    settings = {"CM_SCRIPT_EXTRA_CMD": "--version=2.0 --env.CM_A=settings"}
    done = home.run_cm("get,x", "--version=1.0", "--env.CM_A=typed", env=settings)
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_A": "typed", "CM_VERSION_SEEN": "1.0"}


def test_a_variation_that_tells_a_warning_and_one_with_yes_and_no_values_run(home: TemporaryHome) -> None:
    home.recipe("get-y", {"new_env_keys": ["CM_Y"], "env": {"CM_Y": "y"}})
    home.recipe(
        "get-x",
        {
            "variations": {
                "old": {"warning": "this one is old"},
                "n.#": {"deps": [{"tags": "get,y", "dynamic": True, "inherit_variation_tags": False, "sort": 1}]},
            },
            "new_env_keys": ["CM_Y"],
        },
    )
    assert home.run("get,x,_old,_n.5")["new_env"] == {"CM_Y": "y"}
    assert any("this one is old" in line for line in home.story)


def test_a_warm_run_starts_no_process(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    deps = []
    for number in range(5):
        home.recipe(f"get-d{number}", {"cache": True}, customize="def preprocess(i):\n    return {'return': 0}\n")
        deps.append({"tags": f"get,d{number}"})
    home.recipe("get-x", {"deps": deps})
    home.run("get,x")
    started: list[Any] = []
    monkeypatch.setattr("subprocess.Popen", lambda *words, **_: started.append(words))
    home.run("get,x")
    assert started == []


def test_four_runs_at_once_in_one_folder_give_four_full_results(home: TemporaryHome) -> None:
    home.recipe("get-x", {"new_env_keys": ["CM_OUT"]}, run_sh='sleep 0.1; echo "CM_OUT=$CM_IN" > tmp-run-env.out')
    assert home.cm("version", "core").code == 0
    children = [home.start_run("get,x", f"--env.CM_IN={number}") for number in range(4)]
    wait_until(lambda: all(child.poll() is not None for child in children), "the end of all four")
    outputs = [json.loads(child.communicate()[0]) for child in children]
    assert [output["new_env"]["CM_OUT"] for output in outputs] == ["0", "1", "2", "3"]


SHOWN_ELSEWHERE = {
    "a query without a variation takes the entry of another variation": [
        "engine/test_execute_cache.py::test_a_query_never_takes_the_entry_of_other_variations"
    ],
    "--renew rewrites the tags of an entry from the query": [
        "engine/test_execute_cache.py::test_renew_never_turns_an_entry_into_one_of_another_request",
        "engine/test_store.py::test_a_renewal_makes_an_entry_with_a_folder_of_its_own_and_the_tags_variations_and_pin_of_the_old_one",
    ],
    "env or const of a dependency entry is lost when the parent has none": [
        "engine/test_deps.py::test_the_env_of_the_entry_reaches_the_child_alone_also_when_the_parents_is_empty",
        "engine/test_deps.py::test_the_constants_of_parent_and_entry_hold_in_the_child",
    ],
    "a skip leaks env, leaves the folder inside the cache and an unfinished entry": [
        "engine/test_execute.py::test_a_skip_leaves_no_env_no_entry_and_the_folder_as_it_was"
    ],
    "tags added by ad and adr come in random order": [
        "engine/test_overrides.py::test_added_tags_keep_the_order_in_which_they_are_written"
    ],
    "a value in tmp-run-env.out is cut at its second equals sign": [
        "engine/test_shell.py::test_the_env_file_is_read_line_by_line"
    ],
    "const and update_meta_if_env at the top of a recipe are ignored": [
        "engine/test_configure.py::test_a_const_at_the_top_of_a_recipe_counts",
        "engine/test_configure.py::test_a_conditional_block_counts_while_its_condition_holds",
    ],
    "the block of the default version counts although a bound chose another version": [
        "engine/test_configure.py::test_the_block_is_that_of_the_version_that_was_chosen_also_when_a_bound_moved_it"
    ],
    "post_deps see other keys in an uncached run than on a hit": [
        "engine/test_deps.py::test_local_keys_are_hidden_in_all_four_phases_unless_the_entry_forces_them"
    ],
    "comparing 3.9rc1 with 3.9.1 raises": [
        "engine/test_version.py::test_a_word_against_a_number_compares_where_the_reference_engine_raises"
    ],
    "of two values of one dynamic variation the second is lost without a word": [
        "engine/test_variations.py::test_a_contradiction_is_refused_and_named"
    ],
    "yes and no values in a dynamic variation crash": [
        "engine/test_variations.py::test_the_value_takes_the_place_of_every_hash_at_any_depth"
    ],
    "names written as one text match by parts of it": [
        "engine/test_overrides.py::test_a_name_written_as_a_text_is_no_list_of_letters",
        "engine/test_compat.py::test_a_handle_is_a_whole_name_even_when_names_is_a_text",
    ],
    "--quiet without a query runs some recipe": [
        "engine/test_run.py::test_asking_for_nothing_runs_nothing",
        "engine/test_select.py::test_a_query_without_any_tag_is_refused_instead_of_taking_some_recipe",
    ],
    "misspelt keys and handles are accepted silently": [
        "engine/test_keys.py::test_a_key_that_nothing_reads_is_named_with_its_place_and_the_key_that_was_meant",
        "engine/test_configure.py::test_an_unknown_handle_is_an_error_for_ad_with_the_names_that_there_are",
    ],
    "nested lists of the state grow with every run": [
        "engine/test_env.py::test_state_is_merged_through_all_levels_without_repeated_items"
    ],
    "an edited recipe keeps its old tags": ["engine/test_repos.py::test_an_edited_recipe_is_noticed"],
    "show cache --env prints the env as state": [
        "engine/test_cache_actions.py::test_env_and_state_are_shown_without_secrets"
    ],
    "the JSON answer is mixed with other output": [
        "adapters/test_cm_run.py::test_json_output_is_one_object_whatever_the_recipe_prints"
    ],
    "helper modules of one name collide": ["engine/test_hooks.py::test_two_recipes_may_have_modules_of_the_same_name"],
    "an error text reports the raw wait status": ["engine/test_shell.py::test_an_exit_status_is_decoded"],
    "a question without a terminal raises EOFError": [
        "engine/test_run.py::test_several_recipes_and_nobody_to_ask_is_an_error_with_the_list",
        "engine/test_cache_actions.py::test_without_force_and_without_a_terminal_nothing_is_removed",
    ],
    "tokens are written in clear text": [
        "engine/test_shell.py::test_a_secret_reaches_the_script_but_no_file_and_no_output",
        "engine/test_store.py::test_secrets_are_in_no_file_of_an_entry",
    ],
    "parallel runs make duplicates and lose entries": [
        "engine/test_race.py::test_many_processes_that_want_the_same_recipe_run_it_once_and_all_get_it",
        "engine/test_race.py::test_different_variations_are_made_side_by_side_and_none_is_lost",
    ],
    "metadata and overrides are changed while a recipe runs": [
        "engine/test_configure.py::test_configuring_changes_neither_the_recipe_nor_the_request",
        "engine/test_configure.py::test_two_requests_of_one_recipe_do_not_see_each_other",
    ],
    "every start reads all metadata again": [
        "engine/test_repos.py::test_a_second_start_parses_nothing_and_writes_nothing"
    ],
    "customize.py is loaded twice": [
        "engine/test_hooks.py::test_a_customize_is_loaded_only_once_while_it_stays_the_same"
    ],
    "a changed recipe is reused without a word": [
        "engine/test_execute_cache.py::test_an_edited_recipe_is_reused_but_said_so"
    ],
    "an entry does not say what made it": [
        "engine/test_execute_cache.py::test_an_entry_records_the_whole_resolved_request_and_the_digest_of_its_recipe"
    ],
    "there is no way to know before the run": [
        "engine/test_plan.py::test_a_fresh_plan_and_a_second_one_equal_the_runs_that_follow"
    ],
}
"""Not here: the traps of ``docker`` and ``native-run``, and of ``copy_to_remote``: these are no part of this engine."""


@functools.cache
def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    """The test functions of a file below tests/."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("trap", SHOWN_ELSEWHERE)
def test_the_trap_is_kept_shut_by_a_test_that_is_there_and_always_runs(trap: str) -> None:
    for place in SHOWN_ELSEWHERE[trap]:
        file, _, name = place.partition("::")
        assert name in functions_of(file), f"{place} is gone; name the test that shows: {trap}"
        marks = [ast.unparse(decorator) for decorator in functions_of(file)[name].decorator_list]
        assert not [mark for mark in marks if re.match(r"pytest\.mark\.(skip|xfail|full)", mark)]
