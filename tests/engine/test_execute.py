"""The order of everything in one run, what a dependency and a caller see, and how a run ends early."""

from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.rules.errors import CacheMiss, CycleError, HookFailed, ScriptNotFound

TRACED = """
    from pathlib import Path

    def note(i, what):
        with Path({trace!r}).open("a") as file:
            file.write("{name} " + what + "\\n")
        return {{"return": 0}}

    def preprocess(i):
        return note(i, "preprocess")

    def postprocess(i):
        return note(i, "postprocess")
"""


def traced(home: TemporaryHome, alias: str, meta: dict[str, Any] | None = None) -> None:
    """A recipe that notes each of its hooks and its script in ``trace``."""
    trace = str(home.folder / "trace")
    home.recipe(
        alias, meta, customize=TRACED.format(trace=trace, name=alias), run_sh=f'echo "{alias} run.sh" >> "{trace}"'
    )


def take_trace(home: TemporaryHome) -> list[str]:
    """What was noted since the last call."""
    path = home.folder / "trace"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def steps(alias: str) -> list[str]:
    return [f"{alias} {what}" for what in ("preprocess", "run.sh", "postprocess")]


@pytest.fixture
def family(home: TemporaryHome) -> TemporaryHome:
    """get-top (cached) with a plain and a dynamic dependency in each phase."""
    phases = ("deps", "prehook_deps", "posthook_deps", "post_deps")
    meta: dict[str, Any] = {"cache": True}
    for phase in phases:
        name = phase.replace("_", "-")
        traced(home, f"plain-{name}")
        traced(home, f"dynamic-{name}")
        meta[phase] = [{"tags": f"plain,{name.replace('-', ',')}"}]
        meta[phase].append({"tags": f"dynamic,{name.replace('-', ',')}", "dynamic": True})
    traced(home, "get-top", meta)
    return home


def test_one_run_has_the_order_of_cm(family: TemporaryHome) -> None:
    family.run("get,top")
    assert take_trace(family) == [
        *steps("plain-deps"),
        *steps("dynamic-deps"),
        "get-top preprocess",
        *steps("plain-prehook-deps"),
        *steps("dynamic-prehook-deps"),
        "get-top run.sh",
        *steps("plain-posthook-deps"),
        *steps("dynamic-posthook-deps"),
        "get-top postprocess",
        *steps("plain-post-deps"),
        *steps("dynamic-post-deps"),
    ]


def test_from_the_cache_only_dynamic_dependencies_run(family: TemporaryHome) -> None:
    family.run("get,top")
    take_trace(family)
    family.run("get,top")
    names = ("deps", "prehook-deps", "posthook-deps", "post-deps")
    assert take_trace(family) == [step for name in names for step in steps(f"dynamic-{name}")]


def test_a_fake_run_runs_no_hook_and_no_script_but_looks_at_the_first_dependencies(family: TemporaryHome) -> None:
    family.run("get,top", fake_run=True)
    trace = take_trace(family)
    assert not [line for line in trace if line.startswith("get-top")]
    assert family.entries() == []


def test_skip_cache_makes_no_entry_and_runs_again(family: TemporaryHome) -> None:
    for _ in range(2):
        answer = family.run("get,top", skip_cache=True)
        assert "get-top run.sh" in take_trace(family)
        assert "cache_entry" not in answer
    assert family.entries() == []


def test_only_execute_from_cache_refuses_to_make_and_takes_what_is_there(family: TemporaryHome) -> None:
    with pytest.raises(CacheMiss):
        family.run("get,top", only_execute_from_cache=True)
    assert "get-top run.sh" not in take_trace(family)
    family.run("get,top")
    take_trace(family)
    assert family.run("get,top", only_execute_from_cache=True)["return"] == 0
    assert "get-top run.sh" not in take_trace(family)


def test_only_execute_from_cache_is_asked_of_the_named_recipe_only(home: TemporaryHome) -> None:
    home.recipe("get-part", {"cache": True})
    home.recipe("get-plain", {"deps": [{"tags": "get,part"}]})
    home.recipe("get-kept", {"cache": True, "deps": [{"tags": "get,part,_v", "dynamic": True}]})
    home.recipe("get-part", {"cache": True, "variations": {"v": {}}})
    home.run("get,plain", only_execute_from_cache=True)
    home.run("get,kept")
    home.cm("rm", "cache", "--tags=get,part", "-f")
    home.run("get,kept", only_execute_from_cache=True)
    assert len(home.entries("get-part")) == 1


@pytest.mark.parametrize(
    ("entry", "adr"),
    [({"only_execute_from_cache": True}, {}), ({"names": ["part"]}, {"part": {"only_execute_from_cache": "yes"}})],
)
def test_only_execute_from_cache_of_a_dependency_counts_for_that_dependency(
    home: TemporaryHome, entry: dict[str, Any], adr: dict[str, Any]
) -> None:
    home.recipe("get-part", {"cache": True, "deps": [{"tags": "get,inner"}]})
    home.recipe("get-inner", {"cache": True})
    home.recipe("get-top", {"deps": [{"tags": "get,part", **entry}]})
    with pytest.raises(CacheMiss, match="get-part is not in the cache"):
        home.run("get,top", adr=adr)
    home.run("get,part")
    assert home.run("get,top", adr=adr)["return"] == 0


def test_fake_run_of_a_dependency_counts_for_that_dependency(home: TemporaryHome) -> None:
    traced(home, "get-inner")
    traced(home, "get-part", {"cache": True, "deps": [{"tags": "get,inner"}], "new_env_keys": ["CM_TMP_FAKE_RUN"]})
    traced(home, "get-top", {"deps": [{"tags": "get,part", "fake_run": True}], "new_env_keys": ["CM_TMP_FAKE_RUN"]})
    assert home.run("get,top")["new_env"] == {"CM_TMP_FAKE_RUN": "yes"}
    assert take_trace(home) == [*steps("get-inner"), *steps("get-top")]
    assert home.entries("get-part") == []


@pytest.mark.parametrize("phase", ["prehook_deps", "posthook_deps", "post_deps"])
@pytest.mark.parametrize("value", ["yes", "no"])
def test_a_condition_of_a_later_phase_sees_what_preprocess_set(home: TemporaryHome, phase: str, value: str) -> None:
    traced(home, "get-y")
    home.recipe(
        "get-x",
        {phase: [{"tags": "get,y", "enable_if_env": {"CM_WANTED": ["yes"]}}]},
        customize=f"""
            def preprocess(i):
                i["env"]["CM_WANTED"] = {value!r}
                return {{"return": 0}}
        """,
    )
    home.run("get,x")
    assert take_trace(home) == (steps("get-y") if value == "yes" else [])


# --- what flows ---


def test_only_listed_keys_leave_a_recipe_and_the_caller_sees_them(home: TemporaryHome) -> None:
    home.recipe("get-y", {"env": {"CM_Y": "1", "CM_HIDDEN": "2"}, "new_env_keys": ["CM_Y"]})
    home.recipe(
        "get-x",
        {"deps": [{"tags": "get,y"}], "new_env_keys": ["CM_SEEN"]},
        customize="""
            def preprocess(i):
                i["env"]["CM_SEEN"] = i["env"].get("CM_Y", "-") + i["env"].get("CM_HIDDEN", "-")
                return {"return": 0}
        """,
    )
    assert home.run("get,x")["new_env"] == {"CM_SEEN": "1-"}


def test_force_new_env_keys_takes_the_place_of_the_list_for_one_call(home: TemporaryHome) -> None:
    home.recipe("get-x", {"env": {"CM_A": "1", "CM_B": "2"}, "new_env_keys": ["CM_A"]})
    assert home.run("get,x", force_new_env_keys=["CM_B"])["new_env"] == {"CM_B": "2"}
    assert home.run("get,x")["new_env"] == {"CM_A": "1"}


def test_the_env_of_a_dependency_entry_is_for_the_dependency_alone(home: TemporaryHome) -> None:
    home.recipe("get-y", {"new_env_keys": ["CM_BACK"]}, run_sh='echo "CM_BACK=$CM_P-$CM_C" > tmp-run-env.out')
    home.recipe(
        "get-x",
        {"deps": [{"tags": "get,y", "env": {"CM_P": "p"}, "const": {"CM_C": "c"}}], "new_env_keys": ["CM_*"]},
    )
    for quiet in (True, False):  # the reference engine loses both without --quiet
        new_env = home.run("get,x", quiet=quiet)["new_env"]
        assert new_env["CM_BACK"] == "p-c"
        assert "CM_P" not in new_env
        assert "CM_C" not in new_env


@pytest.mark.parametrize("phase", ["deps", "prehook_deps", "posthook_deps", "post_deps"])
def test_a_local_key_with_a_value_is_not_changed_by_a_dependency(home: TemporaryHome, phase: str) -> None:
    for name in ("first", "second"):
        keys = ["CM_GIT_REPO_NAME", "CM_MINE", "CM_OPEN", "CM_TMP_SHOWN", "CM_SHARED", "+CM_GIT_LIST", "CM_VERSION"]
        env = {key: [name] if key.startswith("+") else name for key in keys}
        home.recipe(f"get-{name}", {"env": env, "new_env_keys": keys})
    meta = {
        "env": {"CM_OPEN": "<<<CM_NONE>>>", "CM_TMP_SHOWN": "own"},
        "local_env_keys": ["CM_MI*"],
        phase: [{"tags": "get,first", "force_env_keys": ["CM_TMP_SHOWN"]}, {"tags": "get,second"}],
        "new_env_keys": ["CM_*", "+CM_*"],
    }
    home.recipe("get-top", meta)
    wanted = {
        "CM_GIT_REPO_NAME": "first",  # of the first that gave it
        "CM_MINE": "caller",
        "CM_OPEN": "<<<CM_NONE>>>",
        "CM_TMP_SHOWN": "own",
        "CM_SHARED": "second",
        "+CM_GIT_LIST": ["first", "second"],  # its name starts with a +
        "CM_VERSION": "first",
    }
    answer = home.run("get,top", env={"CM_MINE": "caller"})
    assert {key: value for key, value in answer["new_env"].items() if key in wanted} == wanted


def test_the_earlier_producer_stays_first_in_a_list_key(home: TemporaryHome) -> None:
    for name in "ab":
        home.recipe(
            f"get-{name}",
            {"new_env_keys": ["+CM_LIST"]},
            customize=f"""
            def preprocess(i):
                i["env"].setdefault("+CM_LIST", []).insert(0, "/{name}")
                return {{"return": 0}}
        """,
        )
    home.recipe(
        "get-x",
        {"deps": [{"tags": "get,a"}, {"tags": "get,b"}], "new_env_keys": ["+CM_LIST", "CM_JOINED"]},
        run_sh='echo "CM_JOINED=$CM_LIST" > tmp-run-env.out',
    )
    new_env = home.run("get,x")["new_env"]
    assert new_env == {"+CM_LIST": ["/a", "/b"], "CM_JOINED": "/a:/b"}


# --- ending early ---


def skipping(extra: str = "") -> str:
    return f"""
        def preprocess(i):
            i["env"]["CM_LEAK"] = "leaked"
            i["state"]["leak"] = "leaked"
            return {{"return": 0, "skip": True{extra}}}
    """


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_skip_leaves_no_env_no_entry_and_the_folder_as_it_was(home: TemporaryHome, is_cached: bool) -> None:
    home.recipe(
        "get-y",
        {"cache": is_cached, "new_env_keys": ["CM_LEAK"], "env": {"CM_META": "1"}},
        customize=skipping(),
        run_sh="touch ran",
    )
    home.recipe(
        "get-x", {"deps": [{"tags": "get,y"}], "new_env_keys": ["*"]}, run_sh='echo "CM_PWD=$PWD" > tmp-run-env.out'
    )
    answer = home.run("get,x")
    assert answer["new_env"]["CM_PWD"] == str(home.work)
    assert not {"CM_LEAK", "CM_META"} & answer["new_env"].keys()
    assert "leak" not in answer["state"]
    assert home.entries() == []
    assert home.run("get,y")["skipped"] is True
    assert not list(home.folder.rglob("ran"))


def test_a_skip_may_name_another_recipe_that_answers_in_its_place(home: TemporaryHome) -> None:
    home.recipe(
        "get-z",
        {"new_env_keys": ["CM_Z", "CM_Q"], "env": {"CM_Q": "q"}},
        run_sh='echo "CM_Z=$CM_GIVEN" > tmp-run-env.out',
    )
    meta = {"cache": True, "new_env_keys": ["CM_Z"]}
    home.recipe("get-y", meta, customize=skipping(', "script": {"tags": "get,z"}'))
    answer = home.run("get,y", env={"CM_GIVEN": "9"})
    assert answer["new_env"] == {"CM_Z": "9"}
    assert "CM_LEAK" not in answer["env"]


def test_an_error_changes_nothing_of_what_the_caller_gave(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        customize="""
        def preprocess(i):
            i["env"]["CM_LIST"].append("changed")
            i["env"]["CM_A"] = "changed"
            i["state"]["s"]["k"] = "changed"
            return {"return": 1, "error": "on purpose"}
    """,
    )
    env, state = {"CM_LIST": ["one"], "CM_A": "a"}, {"s": {"k": "v"}}
    with pytest.raises(HookFailed, match="on purpose"):
        home.run("get,x", env=env, state=state)
    assert (env, state) == ({"CM_LIST": ["one"], "CM_A": "a"}, {"s": {"k": "v"}})


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_cycle_is_an_error_that_names_the_way_round(home: TemporaryHome, is_cached: bool) -> None:
    home.recipe("get-a", {"cache": is_cached, "deps": [{"tags": "get,b"}]})
    home.recipe("get-b", {"cache": is_cached, "deps": [{"tags": "get,a"}]})
    with pytest.raises(CycleError) as caught:
        home.run("get,a")
    assert "get-a -> get-b -> get-a" in caught.value.describe()


@pytest.mark.parametrize("needed", ["a", "b"])
def test_a_circle_ends_when_nothing_changes_any_more(home: TemporaryHome, needed: str) -> None:
    home.recipe("get-a", {"deps": [{"tags": f"get,{needed}"}]}, run_sh="true")
    home.recipe("get-b", {"deps": [{"tags": "get,a"}]}, run_sh="true")
    with pytest.raises(CycleError, match="without end") as caught:
        home.run("get,a")
    assert len(caught.value.describe().split("get-a")) < 12
    depth = int(caught.value.message.partition("(")[2].split()[0])
    assert depth <= 10, "each level is printed"


# --- scripts and helpers ---


def test_a_named_script_must_exist(home: TemporaryHome) -> None:
    home.recipe("get-x", {"script_name": "build"}, run_sh="true")
    with pytest.raises(ScriptNotFound, match=r"no native script 'build\.sh'\. It has: run\.sh") as caught:
        home.run("get,x")
    assert caught.value.code == 16


def test_preprocess_may_choose_the_script_and_change_the_dependencies_of_later_phases(home: TemporaryHome) -> None:
    traced(home, "get-y")
    home.recipe("get-z", {"variations": {"v": {"env": {"CM_V": "v"}}}, "new_env_keys": ["CM_V"]})
    home.recipe(
        "get-x",
        {"prehook_deps": [{"tags": "get,z", "names": ["zed"]}], "new_env_keys": ["CM_V", "CM_RAN"]},
        customize="""
            def preprocess(i):
                i["run_script_input"]["script_name"] = "other"
                meta, automation = i["meta"], i["automation"]
                return automation.update_deps({"deps": meta["prehook_deps"], "update_deps": {"zed": {"tags": "_v"}}})
        """,
        files={"other.sh": "echo CM_RAN=other > tmp-run-env.out", "run.sh": "exit 1"},
    )
    assert home.run("get,x")["new_env"] == {"CM_V": "v", "CM_RAN": "other"}


def test_validate_cache_decides_whether_an_entry_is_reused(home: TemporaryHome) -> None:
    flag = home.folder / "is-bad"
    home.recipe(
        "get-x",
        {"cache": True, "new_env_keys": ["CM_X"]},
        run_sh='echo "CM_X=$(date +%s%N)" > tmp-run-env.out',
        files={
            "validate_cache.sh": f'test -n "$CM_X" || exit 1; if [ -e "{flag}" ]; then echo it is stale; exit 1; fi'
        },
    )
    first = home.run("get,x")["new_env"]
    assert home.run("get,x")["new_env"] == first
    flag.touch()
    assert home.run("get,x")["new_env"] != first
    assert any("not reusing" in line and "it is stale" in line for line in home.story)
    flag.unlink()


def test_why_an_entry_is_not_reused_is_said_once(home: TemporaryHome) -> None:
    """Though the recipe's script is asked twice, before and under the lock."""
    home.recipe("get-x", {"cache": True}, run_sh="true", files={"validate_cache.sh": "echo it is stale >&2; exit 1\n"})
    home.run_cm("get,x")
    assert home.run_cm("get,x").stderr.count("it is stale") == 1


def test_an_entry_whose_library_changed_behind_it_is_made_again(home: TemporaryHome) -> None:
    library = home.folder / "library"
    library.mkdir()
    home.recipe(
        "get-x",
        {"cache": True, "new_env_keys": ["CM_X_VERSION"]},
        customize=f"""
        import pathlib

        def preprocess(i):
            pathlib.Path("{library}/version").write_text(i["env"].get("CM_VERSION", "3"))
            return {{"return": 0}}

        def detect_version(i):
            return i["automation"].parse_version({{
                "match_text": r"(.+)", "group_number": 1, "env_key": "CM_X_VERSION", "which_env": i["env"]}})

        def postprocess(i):
            return detect_version(i)
        """,
        files={"run.sh": f"cp {library}/version tmp-ver.out", "validate_cache.sh": f"cp {library}/version tmp-ver.out"},
    )
    for version in ("1", "2", "1", "1"):
        home.run("get,x", version=version)
        assert (library / "version").read_text(encoding="utf-8") == version
    assert any("reused" in line for line in home.story)
    home.run("get,x", version="2")
    assert any("its version is 2, but detect_version now finds 1" in line for line in home.story)
    (library / "version").write_text("", encoding="utf-8")
    home.run("get,x", version="1")
    assert any("not reusing" in line and "no version matching" in line for line in home.story)


def test_save_env_leaves_files_that_a_shell_can_source(home: TemporaryHome) -> None:
    home.recipe("get-x", {"env": {"CM_A": "it's $(HOME)"}, "new_env_keys": ["CM_A"]})
    home.run("get,x")
    assert list(home.work.iterdir()) == [], "without --save_env nothing is left in the user's folder"
    home.run("get,x", save_env=True)
    assert "export CM_A='it'\"'\"'s $(HOME)'" in (home.work / "tmp-env.sh").read_text(encoding="utf-8")


def test_save_env_leaves_what_a_cached_recipe_gives_whether_made_or_reused(home: TemporaryHome) -> None:
    meta = {"cache": True, "env": {"CM_A": "it's"}, "new_env_keys": ["CM_A"], "new_state_keys": ["script_prefix"]}
    home.recipe("get-x", {**meta, "state": {"script_prefix": ["echo first"]}})
    home.recipe("get-y", {"deps": [{"tags": "get,x"}]})
    for _ in ("made", "reused"):
        home.run("get,x", save_env=True)
        assert [path.name for path in home.work.iterdir()] == ["tmp-env.sh"]
        lines = (home.work / "tmp-env.sh").read_text(encoding="utf-8").splitlines()
        assert lines == ["#!/bin/bash", "", "echo first", "export CM_A='it'\"'\"'s'"]
        (home.work / "tmp-env.sh").unlink()


# --- hooks ---


@pytest.mark.parametrize("hook", ["preprocess", "postprocess"])
def test_a_hook_that_raises_is_named_with_the_chain(home: TemporaryHome, hook: str) -> None:
    home.recipe("get-x", customize=f"def {hook}(i):\n    raise ValueError('odd')\n")
    with pytest.raises(HookFailed) as caught:
        home.run("get,x")
    text = caught.value.describe()
    assert all(
        part in text for part in (f"get-x: {hook} in", "raised ValueError: odd", "customize.py:2", "chain: get-x")
    )


# --- values through the shell ---


def test_a_value_reaches_the_script_and_comes_back_unchanged(home: TemporaryHome) -> None:
    value = """say "hi", it's $(touch pwned) `touch pwned` $HOME ${PATH} \\n ünï 漢字; touch pwned # * ~ ! & | < >"""
    home.write_cmr(values="literal")
    home.recipe("get-x", {"new_env_keys": ["CM_BACK"]}, run_sh="""printf 'CM_BACK=%s\\n' "$CM_V" > tmp-run-env.out""")
    for given in (value, ""):
        assert home.run("get,x", env={"CM_V": given})["new_env"] == {"CM_BACK": given}
    assert not list(home.folder.rglob("pwned"))


def test_a_value_of_several_lines_reaches_the_script_whole(home: TemporaryHome) -> None:
    value = "one\ntwo 'x'\n\n$(touch pwned)\nend"
    home.recipe("get-x", run_sh="""printf '%s' "$CM_V" > got""")
    home.run("get,x", env={"CM_V": value})
    assert (home.work / "got").read_text(encoding="utf-8") == value
    assert not list(home.folder.rglob("pwned"))
