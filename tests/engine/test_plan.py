"""A plan says what a run then does, and where it cannot know it says so; it changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.plan_action import make_plan
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.disk.files import working_folder
from recipe_engine.documents.plan import Plan
from recipe_engine.documents.plan_text import GRAPHS, plan_json, plan_lines
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.events import StepEvent
from recipe_engine.running.execute import run_request

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


HOOK_THAT_FINDS = HOOK_THAT_DECIDES.replace("CM_KIND", "CM_NAME_FOUND")


def test_a_condition_on_what_a_hook_sets_is_not_known_yet(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {"prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}]},
        customize=HOOK_THAT_DECIDES,
    )
    plan = plan_of(home, tags="main,step")
    (child,) = plan.root.children
    assert child.waits_for == ("CM_KIND from main-step",)
    assert not child.is_certain
    assert planned_steps(plan) == [("main-step", "run")]


def test_a_condition_on_a_key_that_no_hook_touches_is_decided(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {"env": {"CM_OTHER": "yes"}, "prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_OTHER": ["yes"]}}]},
        customize=HOOK_THAT_DECIDES,
    )
    assert planned_steps(plan_of(home, tags="main,step")) == [("main-step", "run"), ("get-a", "run")]


def test_a_constant_beats_what_a_hook_may_set(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe(
        "main-step",
        {
            "input_mapping": {"kind": "CM_KIND"},
            "prehook_deps": [{"tags": "get,a", "enable_if_env": {"CM_KIND": ["a"]}}],
        },
        customize=HOOK_THAT_DECIDES,
    )
    assert planned_steps(plan_of(home, tags="main,step", kind="a")) == [("main-step", "run"), ("get-a", "run")]
    assert planned_steps(plan_of(home, tags="main,step", kind="c")) == [("main-step", "run")]


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
    text = "\n".join(plan_lines(plan, with_skipped=False))
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
    lines = "\n".join(plan_lines(plan, with_skipped=False)).splitlines()
    assert [line for line in lines if line.startswith("would fail:")] == ["would fail: get-data: get it by hand"]
    assert [line for line in lines if line.startswith("  also:")] == ["  also: main-step -> get-second -> get-data"]


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
    assert "the very entry it is making" in error.message


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


def test_needs_are_declared_or_seen_and_counted_for_steps_that_run(home: TemporaryHome) -> None:
    home.recipe(
        "get-data",
        {
            "cache": True,
            "needs": {
                "downloads": [
                    {"what": "<<<CM_URL_OF_DATA>>>", "size_bytes": 5_000_000, "sha256": "0" * 64, "licence": "CC0-1.0"}
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
    assert "+ main-step" in shown.stdout
    answer = home.cm("plan", "script", "--tags=main,step", "--out=json").answer
    assert answer["plan"]["counts"]["run"] == 2
    failed = home.cm("plan", "script", "--tags=main,step", "--graph=gif")
    assert failed.code == 1
    assert "mermaid" in failed.stderr


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
            i["env"]["CM_KIND"] = i["env"]["CM_OTHER"] = i["env"]["CM_UNTOLD"] = input()
    """
    conditions = [{"tags": "get,a", "enable_if_env": {key: ["b", "c"]}} for key in ("CM_KIND", "CM_OTHER", "CM_UNTOLD")]
    home.recipe("main-step", {"prehook_deps": conditions}, customize=hooks)
    plan = plan_of(home, tags="main,step", env={"CM_KIND": "b", "CM_OTHER": "c", "CM_UNTOLD": "b"})
    assert [step.is_certain for step in plan.root.children] == [True, True, False]


@pytest.mark.parametrize(
    ("code", "tokens"),
    [
        ("key = env['HF_TOKEN']", ("HF_TOKEN (named in its code)",)),
        ('key = os.environ.get("CM_API_KEY")', ("CM_API_KEY (named in its code)",)),
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
    assert plan_of(home, tags="get,x").root.needs.tokens == ("HF_TOKEN (named in its code)",)
