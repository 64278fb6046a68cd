"""A plan says what a run then does, and where it cannot know it says so; it changes nothing."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, uid_of
from plan_comparison import planned_rows
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.planning.plan import Plan
from recipe_engine.planning.plan_action import make_plan
from recipe_engine.planning.plan_text import GRAPHS, plan_json, plan_lines, summary_lines
from recipe_engine.provenance.lock import lock_action
from recipe_engine.rules.cachekey import VersionConflict
from recipe_engine.rules.conditions import START, has_symbol
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.model import StepEvent
from recipe_engine.running.step import run_request

Step = tuple[str, str]
NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net")


def plan_of(home: TemporaryHome, **inputs: Any) -> Plan:
    with working_folder(home.work):
        return make_plan(new_engine(home.engine_home, None), parse_request(inputs))


def planned_steps(plan: Plan) -> list[Step]:
    return [(step.label, step.action) for _, step in plan.root.walk() if step.action != "skip" and step.is_certain]


def open_steps(plan: Plan) -> list[str]:
    return [step.label for _, step in plan.root.walk() if not step.is_certain]


def steps_of_run(home: TemporaryHome, **inputs: Any) -> list[Step]:
    """What a real run does, in the order in which its steps start."""
    engine = new_engine(home.engine_home, None)
    rows: list[list[str]] = []
    open_rows: list[list[str]] = []

    def listen(event: StepEvent) -> None:
        if event.kind == "start":
            rows.append([event.label, "reuse"])
            open_rows.append(rows[-1])
        elif event.kind == "run":
            open_rows[-1][1] = "run"
        elif event.kind in ("done", "fail"):
            open_rows.pop()

    engine.observers.append(listen)
    with working_folder(home.work):
        run_request(engine, parse_request(inputs))
    return [(label, action) for label, action in rows]


def tree_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.rglob("*"))}


def test_a_fresh_plan_and_a_second_one_equal_the_runs_that_follow(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True, "new_env_keys": ["TOOL"], "env": {"TOOL": "/bin/true"}})
    home.recipe("get-lib", {"cache": True, "deps": [{"tags": "get,tool", "dynamic": True}], "new_env_keys": ["LIB"]})
    home.recipe("use-both", {"deps": [{"tags": "get,tool"}, {"tags": "get,lib"}], "post_deps": [{"tags": "get,tool"}]})
    for _ in range(2):
        planned = planned_steps(plan_of(home, tags="use,both"))
        assert planned == steps_of_run(home, tags="use,both")


def test_what_a_plan_hook_gives_under_a_pattern_is_known_to_the_key_of_an_entry(home: TemporaryHome) -> None:
    hook = 'def plan(i):\n    i["env"]["CM_NET_ID"] = "7"\n    return {"return": 0}\npreprocess = plan\n'
    home.recipe("look-at", {"new_env_keys": ["CM_NET_*"]}, customize=hook)
    tags = [{"env": "CM_NET_ID", "prefix": "net-"}]
    deps = [{"tags": "look,at", "dynamic": True}]
    home.recipe("get-net", {"cache": True, "deps": deps, "extra_cache_tags_from_env": tags})
    for _ in range(2):
        planned = planned_steps(plan_of(home, tags="get,net"))
        assert planned == steps_of_run(home, tags="get,net")
    (thing,) = lock_action({"tags": "get,net"}, home.engine_home)["lock"]["things"]
    assert thing["is_made"]


def test_planning_writes_nothing_outside_the_index(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True}, run_sh="echo made > file.txt\n")
    home.recipe("use-tool", {"deps": [{"tags": "get,tool"}], "clean_output_files": ["precious.txt"]})
    (home.work / "precious.txt").write_text("kept", encoding="utf-8")
    plan_of(home, tags="use,tool")
    before = tree_of(home.path), tree_of(home.work)
    plan_of(home, tags="use,tool", outdirname="made-by-nobody")
    assert (tree_of(home.path), tree_of(home.work)) == before


HOOK_THAT_DECIDES = """
    def preprocess(i):
        i["env"]["CM_KIND"] = "b"
        return {"return": 0}
"""


def test_a_condition_after_a_hook_is_not_known_yet(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {"prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}]},
        customize=HOOK_THAT_DECIDES,
    )
    plan = plan_of(home, tags="main,step")
    (child,) = plan.root.children
    assert child.waits_for == ("preprocess of main-step, which has no plan(i)", "CM_KIND from main-step")
    assert not child.is_certain
    assert planned_steps(plan) == [("main-step", "run")]


WRITES_ENV = {
    "another name": "e = i['env']\n    e['CM_KIND'] = 'a'",
    "a helper function": "helper(i)",
    "an operator": "env = i['env']\n    env |= {'CM_KIND': 'a'}",
    "get": "i.get('env')['CM_KIND'] = 'a'",
    "a new env": "i['env'] = {**i['env'], 'CM_KIND': 'a'}",
    "a module": "other.write(i)",
    "setattr of a loop": "for name in ('CM_' + 'KIND',): i['env'].__setitem__(name, 'a')",
}


@pytest.mark.parametrize("statements", WRITES_ENV.values(), ids=WRITES_ENV.keys())
def test_no_way_of_writing_env_makes_a_sure_skip_run(home: TemporaryHome, statements: str) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {
            "env": {"CM_KIND": "b"},
            "posthook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}],
        },
        customize="from . import other\n\ndef helper(given):\n    given['env']['CM_KIND'] = 'a'\n\n"
        f"def preprocess(i):\n    {statements}\n    return {{'return': 0}}\n",
        files={"other.py": "def write(given):\n    given['env']['CM_KIND'] = 'a'\n"},
    )
    plan = plan_of(home, tags="main,step")
    assert [step.is_certain for step in plan.root.children] == [False]
    assert steps_of_run(home, tags="main,step") == [("main-step", "run"), ("get-a", "run")]


def test_what_a_program_writes_into_the_env_file_is_not_known_yet(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {"posthook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}]},
        run_sh='python3 "$CM_TMP_CURRENT_SCRIPT_PATH/write.py"\n',
        files={"write.py": "open('tmp-run-' + 'env.out', 'w').write('CM_KIND=a')\n"},
    )
    assert open_steps(plan_of(home, tags="main,step")) == ["get-a"]
    assert steps_of_run(home, tags="main,step") == [("main-step", "run"), ("get-a", "run")]


def test_a_recipe_below_a_dependency_that_runs_later_does_not_know_what_the_hook_set(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("get-b", {"deps": [{"tags": "get,a", "skip_if_env": {"CM_KIND": ["a"]}}]})
    home.recipe("main-step", {"post_deps": [{"tags": "get,b"}]}, run_sh="echo CM_KIND=a > tmp-run-env.out\n")
    plan = plan_of(home, tags="main,step")
    assert planned_steps(plan) == [("main-step", "run"), ("get-b", "run")]
    assert open_steps(plan) == ["get-a"]


def test_only_the_keys_that_new_env_keys_let_out_are_unknown_to_the_parent(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"new_env_keys": ["CM_TOOL*"]}, customize="def preprocess(i):\n    return {'return': 0}\n")
    home.recipe("get-a")
    deps = [{"tags": "get,tool"}] + [
        {"tags": "get,a", "enable_if_env": {key: ["yes"]}} for key in ("CM_TOOL_PATH", "CM_OTHER")
    ]
    home.recipe("main-step", {"deps": deps})
    assert [(step.action, step.is_certain) for step in plan_of(home, tags="main,step").root.children] == [
        ("run", True),
        ("run", False),
        ("skip", True),
    ]


HOOKS_THAT_END_OR_CHANGE_A_STEP = {
    "skip": "return {'return': 0, 'skip': True}",
    "another recipe": "return {'return': 0, 'skip': True, 'script': {'tags': 'get,b'}}",
    "other dependencies": "i['meta']['prehook_deps'] = []; return {'return': 0}",
}


@pytest.mark.parametrize("statements", HOOKS_THAT_END_OR_CHANGE_A_STEP.values(), ids=HOOKS_THAT_END_OR_CHANGE_A_STEP)
def test_after_a_hook_that_may_end_or_change_the_step_nothing_of_it_is_certain(
    home: TemporaryHome, statements: str
) -> None:
    home.recipe("get-a")
    home.recipe("get-b", {"env": {"CM_INNER": "yes", "CM_OWN": "1"}, "new_env_keys": ["CM_INNER", "CM_OWN"]})
    home.recipe(
        "get-tool",
        {"cache": True, "const": {"CM_OWN": "c"}, "new_env_keys": ["CM_OWN"], "prehook_deps": [{"tags": "get,a"}]},
        customize=f"def preprocess(i):\n    {statements}\n",
    )
    deps = [
        {"tags": "get,tool"},
        {"tags": "get,tool"},
        *({"tags": "get,a", "enable_if_env": {key: ["yes", "c"]}} for key in ("CM_INNER", "CM_OWN")),
    ]
    home.recipe("main-step", {"deps": deps})
    plan = plan_of(home, tags="main,step")
    first, second, inner, own = plan.root.children
    assert [step.is_certain for step in (first, second, own)] == [True, False, False]
    assert [step.is_certain for step in first.children] == [False]
    assert (inner.action, inner.is_certain) == ("skip", True)
    assert "get-a" not in [label for label, _ in steps_of_run(home, tags="main,step")][:2]


def test_a_constant_is_what_no_hook_changes(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {
            "input_mapping": {"kind": "CM_KIND"},
            "posthook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}],
        },
        run_sh="echo CM_KIND=b > tmp-run-env.out\n",
    )
    assert planned_steps(plan_of(home, tags="main,step", kind="a")) == [("main-step", "run"), ("get-a", "run")]
    assert planned_steps(plan_of(home, tags="main,step", kind="c")) == [("main-step", "run")]
    assert open_steps(plan_of(home, tags="main,step", kind="c")) == []


def test_a_plan_hook_that_reads_what_is_not_known_yet_does_not_count(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("get-tool", {"new_env_keys": ["CM_TOOL"]}, run_sh="echo CM_TOOL=2 > tmp-run-env.out\n")
    home.recipe(
        "main-step",
        {"deps": [{"tags": "get,tool"}], "prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}]},
        customize="def preprocess(i):\n    i['env']['CM_KIND'] = 'a' if i['env'].get('CM_TOOL') == '2' else 'b'\n"
        "    return {'return': 0}\n\nplan = preprocess\n",
    )
    plan = plan_of(home, tags="main,step")
    assert open_steps(plan) == ["get-a"]
    assert plan.root.children[-1].waits_for[0].startswith("plan(i) of main-step, which reads CM_TOOL from get-tool")


def test_a_block_of_metadata_that_rests_on_an_unknown_key_leaves_the_step_open(home: TemporaryHome) -> None:
    home.recipe("get-a")
    block = {"enable_if_env": {"CM_TOOL": ["2"]}, "env": {"CM_KIND": "a"}}
    home.recipe("get-tool", {"new_env_keys": ["CM_TOOL"]}, run_sh="echo CM_TOOL=2 > tmp-run-env.out\n")
    home.recipe(
        "use-tool",
        {"update_meta_if_env": [block], "deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}]},
    )
    home.recipe("main-step", {"deps": [{"tags": "get,tool"}, {"tags": "use,tool"}]})
    assert open_steps(plan_of(home, tags="main,step")) == ["use-tool", "get-a"]
    assert ("get-a", "run") in steps_of_run(home, tags="main,step")


@pytest.mark.parametrize(
    "entry",
    [
        {"update_tags_from_env_with_prefix": {"_name.": ["CM_TOOL"]}},
        {"update_tags_from_env": ["CM_TOOL"]},
        {"update_tags_if_env": {"_name.b": {"enable_if_env": {"CM_TOOL": ["2"]}}}},
        {"update_meta_if_env": [{"enable_if_env": {"CM_TOOL": ["2"]}, "env": {"CM_X": "1"}}]},
        {"tags": "get,model,_name.<<<CM_TOOL>>>"},
        {"version": "<<<CM_TOOL>>>"},
    ],
)
def test_a_dependency_whose_entry_rests_on_an_unknown_key_is_open(home: TemporaryHome, entry: dict[str, Any]) -> None:
    home.recipe("get-tool", {"new_env_keys": ["CM_TOOL"]}, run_sh="echo CM_TOOL=2 > tmp-run-env.out\n")
    home.recipe("get-model", {"variations": {"name.#": {}}})
    home.recipe("main-step", {"deps": [{"tags": "get,tool"}, {"tags": "get,model", **entry}]})
    plan = plan_of(home, tags="main,step")
    assert plan.errors == ()
    assert [step.is_certain for step in plan.root.children] == [True, False]


def test_an_entry_that_a_script_may_refuse_is_no_sure_reuse(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True}, files={"validate_cache.sh": "exit 1\n"})
    home.run(tags="get,tool")
    assert open_steps(plan_of(home, tags="get,tool")) == ["get-tool"]
    assert steps_of_run(home, tags="get,tool") == [("get-tool", "run")]


@pytest.mark.parametrize(("usable", "action"), [("0", "reuse"), ("1", "run")])
def test_a_recipe_can_answer_for_its_own_check_of_an_entry(home: TemporaryHome, usable: str, action: str) -> None:
    home.recipe(
        "get-tool",
        {"cache": True},
        customize=f"def plan_reuse(i):\n    return {{'return': {usable}, 'error': 'gone'}}\n",
        files={"validate_cache.sh": f"exit {usable}\n"},
    )
    home.run(tags="get,tool")
    plan = plan_of(home, tags="get,tool")
    assert [(plan.root.action, plan.root.is_certain)] == [(action, True)]
    assert steps_of_run(home, tags="get,tool") == [("get-tool", action)]


def test_a_version_that_a_step_to_come_may_ask_for_makes_the_choice_open(home: TemporaryHome) -> None:
    home.recipe(
        "get-tool",
        {"cache": True, "default_version": "3", "versions": {"2": {}, "3": {}}, "new_env_keys": ["CM_TOOL"]},
        customize="def postprocess(i):\n    return {'return': 0, 'version': i['env']['CM_VERSION']}\n",
    )
    home.recipe("get-name", run_sh="echo CM_KIND=a > tmp-run-env.out\n", meta={"new_env_keys": ["CM_KIND"]})
    deps = [
        {"tags": "get,tool"},
        {"tags": "get,name"},
        {"tags": "get,tool", "version": "2", "enable_if_env": {"CM_KIND": ["a"]}},
    ]
    home.recipe("main-step", {"deps": deps})
    home.run(tags="get,tool")
    assert open_steps(plan_of(home, tags="main,step")) == ["get-tool", "get-tool"]


def test_a_dependency_that_may_fail_gives_nothing_for_sure_and_stops_no_run(home: TemporaryHome) -> None:
    home.recipe("main-step", {"deps": [{"tags": "get,nothing", "continue_on_error": True}]})
    assert plan_of(home, tags="main,step").errors == ()


def test_what_a_cached_step_gives_is_known_and_what_a_new_one_gives_is_not(home: TemporaryHome) -> None:
    home.recipe("get-extra")
    home.recipe(
        "get-tool",
        {"cache": True, "new_env_keys": ["CM_TOOL_VERSION"]},
        run_sh='echo "CM_TOOL_VERSION=2" >> tmp-run-env.out\n',
    )
    home.recipe(
        "use-tool",
        {"deps": [{"tags": "get,tool"}, {"tags": "get,extra", "enable_if_env": {"CM_TOOL_VERSION": ["2"]}}]},
    )
    first = plan_of(home, tags="use,tool")
    assert open_steps(first) == ["get-extra"]
    home.run(tags="get,tool")
    second = plan_of(home, tags="use,tool")
    assert planned_steps(second) == [("use-tool", "run"), ("get-tool", "reuse"), ("get-extra", "run")]
    assert planned_steps(second) == steps_of_run(home, tags="use,tool")


def test_an_entry_made_under_a_condition_is_no_sure_reuse_for_a_step_without_it(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True})
    home.recipe(
        "main-step",
        {
            "prehook_deps": [{"tags": "get,tool", "enable_if_env": {"CM_KIND": ["a"]}}],
            "post_deps": [{"tags": "get,tool"}],
        },
        customize=HOOK_THAT_DECIDES,
    )
    plan = plan_of(home, tags="main,step")
    last = plan.root.children[-1]
    assert last.phase == "post_deps"
    assert not last.is_certain


def test_a_tag_made_of_an_unknown_value_leaves_open_which_recipe_runs(home: TemporaryHome) -> None:
    home.recipe(
        "get-name", {"new_env_keys": ["CM_NAME_FOUND"]}, customize=HOOK_THAT_DECIDES.replace("CM_KIND", "CM_NAME_FOUND")
    )
    home.recipe("get-model", {"variations": {"name.#": {"env": {"CM_MODEL": "#"}}}})
    home.recipe(
        "main-step",
        {
            "deps": [
                {"tags": "get,name"},
                {"tags": "get,model", "update_tags_from_env_with_prefix": {"_name.": ["CM_NAME_FOUND"]}},
            ]
        },
    )
    plan = plan_of(home, tags="main,step")
    assert planned_steps(plan) == [("main-step", "run"), ("get-name", "run")]
    assert plan.root.children[-1].waits_for == ("CM_NAME_FOUND from get-name",)


def test_all_sure_errors_of_a_request_are_shown_at_once(home: TemporaryHome) -> None:
    home.recipe("get-model", {"variations": {"a": {}}})
    home.recipe("main-step", {"deps": [{"tags": "get,nothing"}, {"tags": "get,model,_b"}]})
    plan = plan_of(home, tags="main,step")
    assert len(plan.errors) == 2
    assert plan.errors[0].trace == ("main-step",)
    text = "\n".join(plan_lines(plan))
    assert "get,nothing" in text
    assert "_b" in text


def test_an_error_that_several_steps_end_with_is_told_once_with_every_way_to_it(home: TemporaryHome) -> None:
    hook = "def plan(i):\n    return {'return': 1, 'error': 'get it by hand'}\n"
    home.recipe("get-data", customize=hook)
    home.recipe("get-first", {"deps": [{"tags": "get,data"}]})
    home.recipe("get-second", {"deps": [{"tags": "get,data"}]})
    home.recipe("main-step", {"deps": [{"tags": "get,first"}, {"tags": "get,second"}, {"tags": "get,second"}]})
    plan = plan_of(home, tags="main,step")
    assert len(plan.errors) == 3
    lines = "\n".join(plan_lines(plan)).splitlines()
    assert [line for line in lines if line.startswith("would fail:")] == ["would fail: get-data: get it by hand"]
    assert [line for line in lines if line.startswith("  also:")] == ["  also: main-step -> get-second -> get-data"]


@pytest.mark.parametrize("names", ["plan = preprocess", "plan = plan_reuse = preprocess"])
def test_a_plan_hook_may_be_another_name_of_preprocess(home: TemporaryHome, names: str) -> None:
    hook = f"def preprocess(i):\n    return {{'return': 1, 'error': 'get it by hand'}}\n\n{names}\n"
    home.recipe("get-data", customize=hook)
    assert [error.message for error in plan_of(home, tags="get,data").errors] == ["get-data: get it by hand"]


def test_the_line_that_runs_a_failed_step_again_holds_known_values_only(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"new_env_keys": ["CM_TOOL", "+PATH"]}, run_sh="echo CM_TOOL=2 > tmp-run-env.out\n")
    fails = "def plan(i):\n    return {'return': 1, 'error': 'no'}\n"
    home.recipe("use-tool", {"env": {"CM_B": "<<<CM_TOOL>>> <<<CM_A>>>"}}, customize=fails)
    home.recipe("main-step", {"deps": [{"tags": "get,tool"}, {"tags": "use,tool", "env": {"CM_A": "a <<<CM_TOOL>>>"}}]})
    (error,) = plan_of(home, tags="main,step").errors
    text = error.describe()
    assert "again: cm run script --tags=use,tool\n" in text
    assert "--env.CM_A (not known before the run), --env.CM_TOOL (not known before the run)" in text
    assert START not in text


def test_an_error_in_a_step_that_may_never_happen_is_no_failure_of_the_plan(home: TemporaryHome) -> None:
    home.recipe(
        "main-step",
        {"prehook_deps": [{"tags": "get,nothing", "enable_if_env": {"CM_KIND": ["a"]}}]},
        customize=HOOK_THAT_DECIDES,
    )
    plan = plan_of(home, tags="main,step")
    assert plan.errors == ()
    assert plan.root.children[0].action == "fail"


def test_a_request_for_which_there_is_no_recipe_is_refused(home: TemporaryHome) -> None:
    with pytest.raises(RecipeError, match="no recipe"):
        plan_of(home, tags="no,such")


def test_a_recipe_that_needs_itself_is_found_without_running(home: TemporaryHome) -> None:
    home.recipe("get-egg", {"cache": True, "deps": [{"tags": "get,hen"}]})
    home.recipe("get-hen", {"cache": True, "deps": [{"tags": "get,egg"}]})
    (error,) = plan_of(home, tags="get,hen").errors
    assert "the entry it is building" in error.message


def test_the_plan_hook_of_a_recipe_tells_values_and_further_runs(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("sub-run", {"input_mapping": {"size": "CM_SIZE"}})
    home.recipe(
        "main-step",
        {"prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["b"]}}]},
        customize="""
            def plan(i):
                i["env"]["CM_KIND"] = "b"
                return {"return": 0, "runs": [{"tags": "sub,run", "size": 3}]}

            def preprocess(i):
                i["env"]["CM_KIND"] = "b"
                return {"return": 0}
        """,
    )
    plan = plan_of(home, tags="main,step")
    assert planned_steps(plan) == [("main-step", "run"), ("sub-run", "run"), ("get-a", "run")]
    assert plan.root.children[0].inputs == {"size": "3"}


def test_a_hook_that_raises_in_the_plan_is_the_error_of_the_run(home: TemporaryHome) -> None:
    home.recipe("main-step", customize="\ndef plan(i):\n    return {'return': 1, 'error': 'no such model'}\n")
    (error,) = plan_of(home, tags="main,step").errors
    assert "no such model" in error.message


def test_customize_without_a_plan_hook_is_never_loaded(home: TemporaryHome) -> None:
    home.recipe("main-step", customize="raise RuntimeError('loaded')\n")
    assert plan_of(home, tags="main,step").errors == ()


def test_a_download_that_the_caller_declares_is_not_listed_again_by_its_address(home: TemporaryHome) -> None:
    address = {"env": {"CM_DOWNLOAD_URL": "https://x.org/a"}, "tags": "download,file"}
    needs = {"downloads": [{"what": "x.org: a", "size_bytes": 5}]}
    home.recipe("download-file")
    home.recipe("get-a", {"deps": [address], "needs": needs})
    home.recipe("get-b", {"deps": [address]})
    assert [one.what for one in plan_of(home, tags="get,a").needs.downloads] == ["x.org: a"]
    assert [one.what for one in plan_of(home, tags="get,b").needs.downloads] == ["https://x.org/a"]


@pytest.mark.parametrize("key", ["license", "licence"])
def test_needs_are_declared_or_seen_and_counted_for_steps_that_run(home: TemporaryHome, key: str) -> None:
    home.recipe(
        "get-data",
        {
            "cache": True,
            "needs": {
                "downloads": [
                    {"what": "<<<CM_URL_OF_DATA>>>", "size_bytes": 5_000_000, "sha256": "0" * 64, key: "CC0-1.0"}
                ],
                "disk_mb": 7,
                "tokens": ["HF_TOKEN"],
            },
            "env": {"CM_URL_OF_DATA": "https://example.org/data.tar"},
        },
    )
    home.recipe("get-package", run_sh="sudo apt-get install thing\n")
    home.recipe("main-step", {"deps": [{"tags": "get,data"}, {"tags": "get,package"}]})
    plan = plan_of(home, tags="main,step")
    (download,) = plan.needs.downloads
    assert download == ("https://example.org/data.tar", 5_000_000, "0" * 64, "CC0-1.0")
    assert plan.needs.sudo == ("get-package: its code calls sudo",)
    assert plan.needs.tokens == ("HF_TOKEN",)
    assert plan_json(plan)["disk_need_mb"] == 12
    home.run(tags="get,data")
    assert plan_of(home, tags="main,step").needs.downloads == ()


def test_the_reason_names_the_nearest_entry_and_what_differs(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True, "variations": {"dev": {}}})
    made = home.run(tags="get,tool,_dev")["cache_entry"]["uid"]
    reason = plan_of(home, tags="get,tool").root.reason
    assert made in reason
    assert "dev" in reason


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_every_graph_shows_the_steps_and_escapes_their_names(home: TemporaryHome, name: str) -> None:
    home.recipe("get-model", {"variations": {"name.#": {}}})
    home.recipe("main-step", {"deps": [{"tags": 'get,model,_name.<b>"x'}]})
    text = GRAPHS[name](plan_of(home, tags="main,step"))
    assert "main-step" in text
    assert "get-model" in text
    assert '<b>"x' not in text


def test_real_cm_prints_a_plan_and_clean_json(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("main-step", {"deps": [{"tags": "get,a"}]})
    shown = home.cm("plan", "script", "--tags=main,step")
    assert shown.code == 0
    assert "\n> main-step\n  > get-a\n" in shown.stdout
    whole = home.cm("plan", "script", "--tags=main,step", "-v")
    assert "\n+ main-step (not kept in the cache, runs each time)\n" in whole.stdout
    answer = home.cm("plan", "script", "--tags=main,step", "--out=json").answer
    assert answer["plan"]["counts"]["run"] == 2
    failed = home.cm("plan", "script", "--tags=main,step", "--graph=gif")
    assert failed.code == 1
    assert "mermaid" in failed.stderr
    assert not (home.path / "runs").exists(), "a plan leaves no journal"


@pytest.mark.parametrize(
    ("flag", "reason"),
    [("fake_run", "fake run: only its dependencies run"), ("skip_cache", "not kept in the cache, runs each time")],
)
def test_a_plan_does_not_say_that_the_cache_keeps_what_a_run_does_not_make_there(
    home: TemporaryHome, flag: str, reason: str
) -> None:
    needs = {"downloads": [{"what": "https://x.org/a", "size_bytes": 5}]}
    home.recipe("get-part", {"cache": True})
    home.recipe("get-model", {"cache": True, "needs": needs, "deps": [{"tags": "get,part"}]})
    plan = plan_of(home, tags="get,model", **{flag: True})
    assert list(summary_lines(plan, 80))[-3:] == [
        "+ built, and kept in the cache; > runs each time",
        "> get-model",
        "  + get-part",
    ]
    assert f"+ get-model ({reason})" in plan_lines(plan)
    assert bool(plan.needs.downloads) is (flag == "skip_cache")
    home.run("get,model", **{flag: True})
    assert home.entries() == home.entries("get-part")


def test_the_short_plan_shows_each_step_once_and_the_totals_first(home: TemporaryHome) -> None:
    needs = {"downloads": [{"what": "PyPI: numpy and what it requires"}, {"what": "https://x.org/a", "size_bytes": 5}]}
    home.recipe("get-package", {"cache": True, "needs": needs})
    home.recipe("get-model", {"cache": True, "deps": [{"tags": "get,package"}], "input_mapping": {"size": "CM_SIZE"}})
    home.recipe("get-host")
    home.recipe("sub-run", {"deps": [{"tags": "get,host"}, {"tags": "get,model"}], "variations": {"a": {}, "b": {}}})
    subs = [{"tags": "sub,run,_a"}, {"tags": "sub,run,_b"}, {"tags": "sub,run,_b"}]
    home.recipe("main-step", {"deps": subs, "input_mapping": {"scenario": "CM_SCENARIO"}})
    plan = plan_of(home, tags="main,step", scenario="Server", graph="html", v=True)
    lines = list(summary_lines(plan, 60, "the same command lasted 3.0 s on 2026-11-22"))
    assert lines[0] == "plan for: cm run script --tags=main,step --scenario=Server"
    assert lines[3:] == [
        "steps:     6: 2 to make, 4 to run each time, with repeats 11",
        "install:   1 Python package with their dependencies (sizes",
        "           not declared): numpy",
        "download:  5 B: https://x.org/a",
        "time:      the same command lasted 3.0 s on 2026-11-22",
        "",
        "+ built, and kept in the cache; > runs each time",
        "> main-step",
        "  > sub-run,_a",
        "    > get-host  x 3",
        "    + get-model  x 3",
        "      + get-package",
        "  > sub-run,_b  x 2",
    ]
    assert "plan for: cm run script --tags=main,step --scenario=Server" in plan_lines(plan)
    assert "--scenario=Server" in GRAPHS["html"](plan)


def test_the_short_plan_names_what_fails_and_what_is_not_known(home: TemporaryHome) -> None:
    hook = "def plan(i):\n    return {'return': 1, 'error': 'get it by hand'}\n"
    home.recipe("get-data", customize=hook)
    home.recipe("get-first", {"deps": [{"tags": "get,data"}]})
    home.recipe("get-second", {"deps": [{"tags": "get,data"}]})
    home.recipe("main-step", {"deps": [{"tags": "get,first"}, {"tags": "get,second"}, {"tags": "get,data"}]})
    lines = list(summary_lines(plan_of(home, tags="main,step"), 100))
    assert "    ! get-data  x 3 (get it by hand)" in lines
    assert lines[-1] == "  also in 2 other places (-v lists them)"
    failed = home.cm("plan", "script", "--tags=main,step")
    assert failed.stderr.endswith("CM error: the run would fail: get-data: get it by hand\n"), "no mark behind it"


def test_a_plan_says_how_long_the_same_command_took(home: TemporaryHome) -> None:
    home.recipe("main-step", {"needs": {"disk_mb": 30}}, run_sh="true")
    assert "\ndisk:      30.0 MB declared, " in home.cm("plan", "script", "--tags=main,step").stdout
    home.cm("run", "script", "--tags=main,step", "--quiet")
    assert "\ntime:      the same command lasted " in home.cm("plan", "script", "--tags=main,step").stdout
    assert "time:" not in home.cm("plan", "script", "--tags=main,step", "--other=1").stdout


def test_without_network_and_interfaces_a_plan_is_the_same(home: TemporaryHome) -> None:
    cut_off = [*NO_NETWORK, str(Path(sys.executable).parent / "cm")]
    if subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody make a network namespace")
    home.recipe("get-tool", {"cache": True}, run_sh="echo x > y\n")
    home.recipe("main-step", {"deps": [{"tags": "get,tool"}]})
    words = ("plan", "script", "--tags=main,step")
    home.cm(*words)  # cmind says something of its own in a home that is new to it
    plain = home.cm(*words)
    alone = subprocess.run([*cut_off, *words], cwd=home.work, env=home.process_env(), capture_output=True, text=True)
    assert (alone.returncode, alone.stdout) == (0, plain.stdout)


def test_state_that_a_plan_hook_sets_reaches_the_plan_hook_of_its_parent(home: TemporaryHome) -> None:
    home.recipe(
        "get-a",
        {"new_state_keys": ["kind"]},
        customize="def plan(i):\n    i['state']['kind'] = 'b'\n    return {'return': 0}\n",
    )
    home.recipe(
        "main-step",
        {"deps": [{"tags": "get,a"}], "prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["b"]}}]},
        customize="def plan(i):\n    i['env']['CM_KIND'] = i['state']['kind']\n    return {'return': 0}\n",
    )
    assert [label for label, _ in planned_steps(plan_of(home, tags="main,step"))] == ["main-step", "get-a", "get-a"]


def test_a_value_that_a_plan_hook_confirms_stays_known(home: TemporaryHome) -> None:
    home.recipe("get-a")
    hooks = """
        def plan(i):
            i["env"]["CM_KIND"] = "b"
            i["env"].setdefault("CM_OTHER", "c")
            return {"return": 0}

        def preprocess(i):
            i["env"]["CM_KIND"] = i["env"]["CM_OTHER"] = input()
    """
    conditions = [{"tags": "get,a", "enable_if_env": {key: ["b", "c"]}} for key in ("CM_KIND", "CM_OTHER", "CM_UNTOLD")]
    home.recipe("main-step", {"posthook_deps": conditions}, customize=hooks, run_sh="true\n")
    plan = plan_of(home, tags="main,step", env={"CM_KIND": "b", "CM_OTHER": "c", "CM_UNTOLD": "b"})
    assert [step.is_certain for step in plan.root.children] == [True, True, False]


@pytest.mark.parametrize(
    ("code", "tokens"),
    [
        ("key = env['HF_TOKEN']", ("HF_TOKEN (used in its code)",)),
        ('key = os.environ.get("CM_API_KEY")', ("CM_API_KEY (used in its code)",)),
        ("END_TOKEN = 0", ()),
        ("rows = [tokenizer.END_TOKEN]", ()),
    ],
)
def test_a_token_is_what_the_code_of_a_recipe_names_as_a_key(
    home: TemporaryHome, code: str, tokens: tuple[str, ...]
) -> None:
    home.recipe("get-x", customize=f"def helper(env):\n    {code}\n")
    assert plan_of(home, tags="get,x").root.needs.tokens == tokens


def test_a_token_that_a_script_uses_is_named(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh='curl -H "Bearer ${HF_TOKEN}" x')
    assert plan_of(home, tags="get,x").root.needs.tokens == ("HF_TOKEN (used in its code)",)


@pytest.mark.parametrize("condition", [{}, {"enable_if_env": {"CM_UNKNOWN": ["yes"]}}])
def test_a_plan_keeps_local_keys_from_later_dependencies_as_a_run_does(
    home: TemporaryHome, condition: dict[str, Any]
) -> None:
    for name in ("first", "second"):
        home.recipe(f"get-{name}", {"env": {"CM_GIT_NAME": name}, "new_env_keys": ["CM_GIT_NAME"]})
    home.recipe("get-third")
    home.recipe("get-fact", {"new_env_keys": ["CM_UNKNOWN"]}, run_sh="echo CM_UNKNOWN=yes > tmp-run-env.out")
    deps = [
        {"tags": "get,fact"},
        {"tags": "get,first", **condition},
        {"tags": "get,second"},
        {"tags": "get,third", "enable_if_env": {"CM_GIT_NAME": ["first"]}},
    ]
    home.recipe("get-top", {"deps": deps})
    plan = plan_of(home, tags="get,top")
    steps = steps_of_run(home, tags="get,top")
    assert ("get-third", "run") in steps
    if condition:  # whether the first one gives the key is not known yet
        assert open_steps(plan) == ["get-first", "get-third"]
    else:
        assert planned_steps(plan) == steps


def test_what_leaves_a_step_of_a_list_is_not_known_while_the_list_of_its_caller_is_not(home: TemporaryHome) -> None:
    sets = "def preprocess(i):\n    i['env']['+CM_LIST'] = ['a']\n    return {'return': 0}\n"
    home.recipe("get-a", {"new_env_keys": ["+CM_LIST"]}, customize=sets)
    home.recipe("get-b", {"new_env_keys": ["+CM_LIST"]}, customize=f"{sets}\nplan = preprocess\n")
    home.recipe("main-step", {"deps": [{"tags": "get,a"}, {"tags": "get,b"}]})
    with working_folder(home.work):
        planned = {row.trace[-1]: row.env for row in planned_rows({"tags": "main,step"}, home.engine_home)}
    assert has_symbol((planned["get-b"] or {})["+CM_LIST"])
    assert home.run("get,b", env={"+CM_LIST": ["a"]})["new_env"] == {}


def test_the_folder_of_an_entry_that_is_not_there_yet_is_not_known(home: TemporaryHome) -> None:
    home.recipe("get-a", {"new_env_keys": ["CM_TMP_*"]})
    home.recipe("get-b", {"cache": True, "new_env_keys": ["CM_TMP_*"], "deps": [{"tags": "get,a"}]})
    with working_folder(home.work):
        rows = planned_rows({"tags": "get,b"}, home.engine_home)
    assert [has_symbol((row.env or {})["CM_TMP_CURRENT_SCRIPT_WORK_PATH"]) for row in rows] == [True, True]


def test_an_unknown_tag_is_one_word_though_the_step_that_gives_it_has_commas_in_its_name(home: TemporaryHome) -> None:
    unsure = {"tags": "get,x,_v", "enable_if_env": {"CM_PICK": ["yes"]}}
    home.recipe("pick-it", {"new_env_keys": ["CM_PICK"]}, run_sh="echo CM_PICK=yes > tmp-run-env.out")
    home.recipe("get-x", {"variations": {"v": {}}, "env": {"CM_X": "word"}, "new_env_keys": ["CM_X"]})
    home.recipe("use-y", {"tags": ["use", "word"]})
    home.recipe("all-of", {"deps": [{"tags": "pick,it"}, unsure, {"tags": "use", "update_tags_from_env": ["CM_X"]}]})
    plan = plan_of(home, tags="all,of")
    assert plan.errors == ()
    assert open_steps(plan) == ["get-x,_v", "use-y"]


def test_a_plan_hook_has_one_env_by_both_names(home: TemporaryHome) -> None:
    hook = """
        def preprocess(i):
            i['run_script_input']['env']['CM_X'] = '2'
            i['env'].setdefault('CM_X', '1')
            return {'return': 0}

        plan = preprocess
    """
    home.recipe("get-x", {"new_env_keys": ["CM_X"]}, customize=textwrap.dedent(hook))
    home.recipe("use-x", {"deps": [{"tags": "get,x"}, {"tags": "get,y", "enable_if_env": {"CM_X": ["2"]}}]})
    home.recipe("get-y")
    assert planned_steps(plan_of(home, tags="use,x")) == steps_of_run(home, tags="use,x")
    assert [label for label, _ in steps_of_run(home, tags="use,x")] == ["use-x", "get-x", "get-y"]


def test_a_plan_that_starts_over_renews_the_entry_on_disk_again(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True})
    home.recipe("use-tool", {"deps": [{"tags": "get,tool"}]})
    home.recipe("ask-tool", {"post_deps": [{"tags": "get,tool", "reuse_version": True}]}, run_sh="true\n")
    deps = {"deps": [{"tags": "use,tool"}], "post_deps": [{"tags": "ask,tool", "version_min": "2.0"}]}
    home.recipe("get-app", {"cache": True, "new_env_keys": ["CM_*"], **deps})
    for _ in range(2):
        plan = plan_of(home, tags="get,app", renew=True)
        assert plan.root.action == "run"
        home.run("get,app", renew=True)
    rows = planned_rows({"tags": "get,app", "renew": True, "quiet": True}, home.engine_home)
    assert rows[0].env["CM_RENEW_CACHE_ENTRY"] == "yes"


def test_a_renewed_entry_keeps_the_tags_it_was_known_by_in_a_plan_as_in_a_run(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True})
    deps = [{"tags": "get,tool", "renew": True}, {"tags": "get,tool", "extra_cache_tags": "x"}]
    home.recipe("main-step", {"deps": deps})
    home.run("get,tool", extra_cache_tags="x")
    planned = planned_steps(plan_of(home, tags="main,step"))
    assert planned == [("main-step", "run"), ("get-tool", "run"), ("get-tool", "reuse")]
    home.run("main,step")
    (entry,) = [row for row in home.entries("get-tool") if "tmp" not in row["tags"]]
    assert "x" in entry["tags"], "the run reuses it as the plan says"


def test_an_entry_planned_below_a_step_that_ends_early_stays_for_later_steps(home: TemporaryHome) -> None:
    ends = "def preprocess(i):\n    return {'return': 0, 'skip': True}\n\nplan = preprocess\n"
    home.recipe("get-inner", {"cache": True})
    home.recipe("get-outer", {"cache": True, "deps": [{"tags": "get,inner"}]}, customize=ends)
    home.recipe("get-other", {"cache": True})
    home.recipe("main-step", {"deps": [{"tags": tags} for tags in ("get,outer", "get,other", "get,inner")]})
    planned = planned_steps(plan_of(home, tags="main,step"))
    assert planned[-1] == ("get-inner", "reuse")
    assert planned == steps_of_run(home, tags="main,step")


def test_a_plan_leaves_no_env_file(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "env": {"CM_A": "1"}, "new_env_keys": ["CM_A"]})
    for _ in ("made", "reused"):
        assert plan_of(home, tags="get,x", save_env=True).errors == ()
        assert list(home.work.iterdir()) == []
        home.run("get,x")


def test_a_plan_does_not_run_predeps_and_leaves_open_what_it_may_decide(home: TemporaryHome) -> None:
    home.recipe("get-a")
    folder = home.repo / "script" / "new-x"
    folder.mkdir()
    meta = f"""
        alias: new-x
        automation_uid: 5b4e0237da074764
        deps: [{{tags: 'get,a', enable_if_env: {{MLC_PICK: [a]}}}}]
        tags: [new, x]
        uid: "{uid_of("new-x")}"
    """
    code = """
        def predeps(i):
            open("touched-by-predeps", "w").close()
            i["env"]["MLC_PICK"] = "a"
            return {"return": 0}
    """
    for name, text in {"meta.yaml": meta, "customize.py": code}.items():
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    (child,) = plan_of(home, tags="new,x").root.children
    assert child.waits_for == ("predeps of new-x, which has no plan(i)", "MLC_PICK from new-x")
    assert not list(home.folder.rglob("touched-by-predeps"))
    home.run("new,x")
    assert any("get-a" in line for line in home.story)


def test_the_name_of_the_folder_of_a_call_changes_nothing(home: TemporaryHome) -> None:
    home.recipe("get-a", {"cache": True, "new_env_keys": ["CM_A*"]}, run_sh="echo CM_AB=1 > tmp-run-env.out\n")
    home.recipe("use-first", {"deps": [{"tags": "get,a"}]})
    home.recipe("use-b")
    home.recipe("get-d")
    home.recipe("use-c", {"deps": [{"tags": "get,a"}, {"tags": "get,d", "enable_if_env": {"CM_AB": ["1"]}}]})
    home.recipe("main-step", {"deps": [{"tags": f"use,{name}"} for name in ("first", "b", "c")]})
    found = []
    for name in ("any", "planned-1"):
        folder = home.work / name
        folder.mkdir()
        with working_folder(folder):
            plan = make_plan(new_engine(home.engine_home, None), parse_request({"tags": "main,step"}))
        found.append(open_steps(plan))
    assert found == [["get-d"], ["get-d"]]


# --- versions that several steps require ---


@pytest.fixture
def tool(home: TemporaryHome) -> TemporaryHome:
    """get-tool is made in the version asked for, else in 3; app-a takes any."""
    code = "def plan(i):\n    return {'return': 0, 'version': i['env']['CM_VERSION']}\n\n\npostprocess = plan\n"
    home.recipe("get-tool", {"cache": True, "default_version": "3"}, customize=code)
    home.recipe("app-a", {"deps": [{"tags": "get,tool"}]})
    return home


def test_the_plan_sees_versions_that_contradict_each_other(tool: TemporaryHome) -> None:
    tool.recipe("app-main", {"deps": [{"tags": "get,tool", "version": "1"}, {"tags": "get,tool", "version": "2"}]})
    (error,) = plan_of(tool, tags="app,main").errors
    assert isinstance(error, VersionConflict)
    assert tool.entries() == []


def test_the_plan_shows_the_version_that_suits_all(tool: TemporaryHome) -> None:
    tool.recipe("app-main", {"deps": [{"tags": "app,a"}, {"tags": "get,tool", "version": "2"}]})
    plan = plan_of(tool, tags="app,main")
    versions = [step.version for _, step in plan.root.walk() if step.label.startswith("get-tool")]
    assert versions == ["2", "2"]
    assert plan.root.label == "app-main"


def test_a_step_that_may_not_happen_puts_no_bounds_on_the_plan(tool: TemporaryHome) -> None:
    maybe = {"tags": "get,tool", "version": "1", "enable_if_env": {"CM_KIND": ["x"]}}
    lists = {"prehook_deps": [maybe], "post_deps": [{"tags": "get,tool", "version": "2"}]}
    sets = 'def preprocess(i):\n    i["env"]["CM_KIND"] = "y"\n    return {"return": 0}\n'
    tool.recipe("app-main", lists, customize=sets)
    assert plan_of(tool, tags="app,main").errors == ()
    tool.run("app,main")
    assert [entry["version"] for entry in tool.entries("get-tool")] == ["2"]
