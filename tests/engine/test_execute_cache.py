"""Cached and uncached runs: what is reused, noticed, made again, left behind and kept secret. Real folders and bash."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.adapter import answer_cm
from recipe_engine.actions.run import run_action
from recipe_engine.disk.digests import recipe_digest
from recipe_engine.rules.errors import CycleError, RecipeError, RequestError, ScriptFailed, StoreError

COUNT = 'echo run >> "$CM_COUNTER"'


@pytest.fixture
def count(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many times scripts with ``COUNT`` in them have run."""
    counter = home.folder / "counter"
    monkeypatch.setenv("CM_COUNTER", str(counter))
    return lambda: len(counter.read_text().split()) if counter.exists() else 0


# --- dynamic dependencies that decide on tags of the entry ---

NOTE = 'echo "{name} $CM_SEEN" >> "$CM_TRACE"\n'


def dynamic_family(home: TemporaryHome) -> Path:
    """get-top (cached), whose dynamic dependency gives CM_KIND_TAG and reads what the one before it gives."""
    keys = {"new_env_keys": ["CM_SEEN"], "env": {"CM_SEEN": "seen"}}
    home.recipe("get-before", keys, run_sh=NOTE.format(name="before"))
    tag = NOTE.format(name="dynamic") + 'echo "CM_KIND_TAG=$CM_KIND" > tmp-run-env.out'
    home.recipe("get-kind", {"new_env_keys": ["CM_KIND_TAG"]}, run_sh=tag)
    home.recipe("get-after", run_sh=NOTE.format(name="after"))
    meta = {
        "cache": True,
        "extra_cache_tags_from_env": [{"env": "CM_KIND_TAG", "prefix": "kind-"}],
        "deps": [{"tags": "get,before"}, {"tags": "get,kind", "dynamic": True}, {"tags": "get,after"}],
        "new_env_keys": ["CM_KIND_TAG"],
    }
    home.recipe("get-top", meta, run_sh=NOTE.format(name="top"))
    return home.folder / "trace"


def run_kind(home: TemporaryHome, trace: Path, kind: str, **more: Any) -> list[str]:
    """What a run of get-top did, step by step."""
    trace.unlink(missing_ok=True)
    answer = home.run("get,top", env={"CM_TRACE": str(trace), "CM_KIND": kind}, **more)
    assert answer["new_env"] == {"CM_KIND_TAG": kind}
    return trace.read_text(encoding="utf-8").splitlines()


def kind_tags(home: TemporaryHome) -> list[list[str]]:
    return sorted([tag for tag in entry["tags"] if tag.startswith("deps-")] for entry in home.entries("get-top"))


def test_a_dynamic_dependency_runs_once_and_at_its_place_when_the_entry_is_made(home: TemporaryHome) -> None:
    trace = dynamic_family(home)
    assert run_kind(home, trace, "a") == ["before seen", "dynamic seen", "after seen", "top seen"]
    assert kind_tags(home) == [["deps-kind-a"]]
    assert run_kind(home, trace, "a") == ["dynamic "]
    assert run_kind(home, trace, "a", new=True) == ["before seen", "dynamic seen", "after seen", "top seen"]
    assert kind_tags(home) == [["deps-kind-a"], ["deps-kind-a"]]


def test_an_entry_that_another_result_of_a_dynamic_dependency_made_is_not_reused(home: TemporaryHome) -> None:
    trace = dynamic_family(home)
    for kind in ("a", "b"):
        assert run_kind(home, trace, kind)[-1] == "top seen"
    for kind in ("a", "b"):
        assert run_kind(home, trace, kind) == ["dynamic "]
    assert kind_tags(home) == [["deps-kind-a"], ["deps-kind-b"]]
    assert run_kind(home, trace, "a", renew=True)[-1] == "top seen"
    assert kind_tags(home) == [["deps-kind-a"], ["deps-kind-b"]]


def test_steps_behind_different_results_of_a_dynamic_dependency_may_have_different_versions(
    home: TemporaryHome,
) -> None:
    dynamic_family(home)
    meta = {
        "cache": True,
        "extra_cache_tags_from_env": [{"env": "CM_KIND_TAG", "prefix": "kind-"}],
        "deps": [{"tags": "get,kind", "dynamic": True}],
        "default_version": "3.0",
    }
    home.recipe(
        "get-lib",
        meta,
        customize="""
        def postprocess(i):
            return {"return": 0, "version": i["env"]["CM_VERSION"]}
    """,
    )
    deps = [
        {"tags": "get,lib", "env": {"CM_KIND": "a"}},
        {"tags": "get,lib", "env": {"CM_KIND": "b"}, "version": "1.0"},
        {"tags": "get,lib", "env": {"CM_KIND": "a"}, "version": "2.0"},
    ]
    home.recipe("use-libs", {"deps": deps})
    home.run("use,libs", env={"CM_TRACE": str(home.folder / "trace")})
    assert any(line.startswith("starting over: ") for line in home.story)
    made = {
        (*[tag for tag in entry["tags"] if tag.startswith("deps-")], entry["version"])
        for entry in home.entries("get-lib")
    }
    assert made == {("deps-kind-a", "3.0"), ("deps-kind-a", "2.0"), ("deps-kind-b", "1.0")}


# --- reuse ---


def test_a_cached_recipe_runs_once_and_gives_the_same_again(home: TemporaryHome, count: Callable[[], int]) -> None:
    run_sh = COUNT + "\necho CM_X=a=b=c > tmp-run-env.out\necho '{\"s\": [1]}' > tmp-run-state.json"
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_X"], "new_state_keys": ["s"]}, run_sh=run_sh)
    first = home.run("get,x")
    assert any(line.startswith("* get-x: running in ") for line in home.story)
    second = home.run("get,x")
    assert first == second
    assert first["new_env"] == {"CM_X": "a=b=c"}
    assert first["new_state"] == {"s": [1]}
    assert first["cache_entry"]["path"] == str(home.entry("get-x"))
    assert home.story == [f"= get-x: reused from the cache ({home.entry('get-x').name})"]
    assert count() == 1


def test_a_cached_recipe_works_in_its_entry_and_keeps_a_log(home: TemporaryHome) -> None:
    run_sh = 'echo told; echo "CM_PWD=$PWD" > tmp-run-env.out; touch result'
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_PWD"]}, run_sh=run_sh)
    answer = home.run("get,x")
    entry = home.entry("get-x")
    assert answer["new_env"]["CM_PWD"] == str(entry)
    assert (entry / "log.txt").read_text() == "told\n"
    assert (entry / "result").exists()
    assert list(home.work.iterdir()) == []


def test_another_variation_input_or_version_is_another_entry(home: TemporaryHome, count: Callable[[], int]) -> None:
    meta = {
        "cache": True,
        "input_mapping": {"model": "CM_MODEL"},
        "variations": {"v": {"env": {"CM_V": "v"}}},
        "new_env_keys": ["CM_OUT"],
        "default_version": "1",
    }
    home.recipe("get-x", meta, run_sh=COUNT + '\necho "CM_OUT=$CM_V$CM_MODEL$CM_VERSION" > tmp-run-env.out')
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("get,x", {}, "1"),
        ("get,x,_v", {}, "v1"),
        ("get,x", {"model": "m"}, "m1"),
        ("get,x", {"version": "2"}, "2"),
    ]
    for _ in range(2):
        for tags, inputs, expected in asked:
            assert home.run(tags, **inputs)["new_env"] == {"CM_OUT": expected}
    assert count() == len(asked)


@pytest.mark.parametrize("name", ["data/part", "tool"])
@pytest.mark.parametrize("change", ["remove", "edit", "grow"])
def test_a_changed_file_of_an_entry_is_noticed_told_and_made_again(
    home: TemporaryHome, count: Callable[[], int], name: str, change: str
) -> None:
    customize = """
        import os
        def postprocess(i):
            i["env"]["CM_TOOL"] = os.path.abspath("tool")
            return {"return": 0, "files": ["data"]}
    """
    run_sh = COUNT + "\nmkdir -p data; echo 12345 > data/part; echo tool > tool"
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_TOOL"]}, customize=customize, run_sh=run_sh)
    home.run("get,x")
    old = home.entry("get-x")
    path = old / name
    if change == "remove":
        path.unlink()
    else:
        text = path.read_text()
        path.write_text(text[::-1] if change == "edit" else text + "more")
    answer = home.run("get,x")
    assert count() == 2
    reasons = [line for line in home.story if line.startswith("! get-x: not reusing")]
    assert len(reasons) == 1, "told once"
    assert str(path) in reasons[0]
    new = home.entry("get-x")
    assert new != old
    assert answer["new_env"]["CM_TOOL"] == str(new / "tool")
    home.run("get,x")
    assert count() == 2


@pytest.mark.parametrize("name", ["cm-cached-state.json", "entry.json", "_cm.json"])
def test_a_lost_file_of_the_engine_makes_the_recipe_run_again(
    home: TemporaryHome, count: Callable[[], int], name: str
) -> None:
    home.recipe("get-x", {"cache": True, "env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]}, run_sh=COUNT)
    home.run("get,x")
    (home.entry("get-x") / name).unlink()
    assert home.run("get,x")["new_env"] == {"CM_X": "1"}
    assert count() == 2


def test_a_path_on_which_an_entry_depends_is_watched(home: TemporaryHome, count: Callable[[], int]) -> None:
    tool = home.folder / "tool"
    tool.write_text("x")
    run_sh = COUNT + f'\necho "CM_GET_DEPENDENT_CACHED_PATH={tool}" > tmp-run-env.out'
    home.recipe("get-x", {"cache": True}, run_sh=run_sh)
    home.run("get,x")
    assert home.entries()[0]["dependent_cached_path"] == str(tool)
    home.run("get,x")
    assert count() == 1
    tool.unlink()
    home.run("get,x")
    assert count() == 2
    assert any(f"{tool} (a dependency) is missing" in line for line in home.story)


def test_an_edited_recipe_is_reused_but_said_so(home: TemporaryHome, count: Callable[[], int]) -> None:
    home.recipe("get-x", {"cache": True}, run_sh=COUNT)
    home.run("get,x")
    home.recipe("get-x", {"cache": True}, run_sh=COUNT + " # edited")
    home.run("get,x")
    assert count() == 1
    assert "built by another version of this recipe, --renew rebuilds it" in home.story[0]


def test_a_failing_script_leaves_an_unfinished_entry_that_the_next_run_takes_over(
    home: TemporaryHome, count: Callable[[], int]
) -> None:
    run_sh = COUNT + '\ntest ! -e half || exit 9; touch half; [ -e "$CM_TMP_CURRENT_PATH/mended" ] || exit 3'
    home.recipe("get-y", {"cache": True}, run_sh="echo the reason >&2;" + run_sh)
    home.recipe("get-x", {"deps": [{"tags": "get,y"}]})
    for _ in range(2):
        with pytest.raises(ScriptFailed) as caught:
            home.run("get,x")
        error = caught.value
        assert error.message.startswith("get-y: run.sh failed with exit code 3")
        assert error.trace == ("get-x", "get-y")
        assert Path(error.log_path).read_text() == "the reason\n"
    (unfinished,) = home.entries("get-y")
    assert "tmp" in unfinished["tags"]
    (home.work / "mended").touch()
    home.run("get,x")
    assert home.entry("get-y") == unfinished["path"]
    assert count() == 3


def test_a_declared_file_that_was_not_made_is_an_error(home: TemporaryHome, count: Callable[[], int]) -> None:
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['model.onnx']}\n"
    home.recipe("get-x", {"cache": True}, customize=customize, run_sh=COUNT)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"model\.onnx") as caught:
            home.run("get,x")
        assert caught.value.trace == ("get-x",)
    assert count() == 2


# --- a cache that cannot lie ---


def test_an_entry_records_the_whole_resolved_request_and_the_digest_of_its_recipe(home: TemporaryHome) -> None:
    meta = {
        "cache": True,
        "default_variations": {"precision": "fp32"},
        "input_mapping": {"model": "CM_MODEL"},
        "variations": {
            "fp32": {"group": "precision"},
            "int8": {"group": "precision"},
            "big": {"base": ["more"]},
            "more": {},
        },
    }
    folder = home.recipe("get-x", meta)
    home.recipe("get-p", {"deps": [{"tags": "get,x,_big", "model": "m", "version_min": "1.0"}]})
    home.run("get,p", extra_cache_tags="outer")
    home.run("get,x,_big", model="m", version_min="1.0", extra_cache_tags="mine")
    mine, plain = sorted(home.entries("get-x"), key=lambda entry: "mine" not in entry["tags"])
    for entry, extra, parents in ((mine, ["mine"], []), (plain, [], ["get-p"])):
        details = json.loads((entry["path"] / "entry.json").read_text())
        assert details["chain"] == [*parents, "get-x,_big"]
        assert details["recipe"].startswith("get-x,")
        assert [row["name"] for row in details["variations"]] == ["big", "more", "fp32"]
        request = details["request"]
        assert (request["tags"], request["explicit"]) == ("get,x,_big", ["big"])
        assert request["variations"] == ["big", "fp32", "more"], "with defaults and bases"
        assert request["inputs"] == {"model": "m"}
        assert request["extra_tags"] == extra
        assert [request[name] for name in ("version", "version_min", "version_max")] == ["", "1.0", ""]
        assert {"get", "x", "_big"} <= set(request["cache_tags"])
        assert details["recipe_digest"] == recipe_digest(folder)
        assert entry["crowdperf"]["recipe_digest"] == recipe_digest(folder)


@pytest.mark.parametrize("made", ["get,x,_v", "get,x,_other", "get,x,_v,_w", "get,x,_n.7"])
@pytest.mark.parametrize("asked", ["get,x", "get,x,_w", "get,x,_n.8"])
def test_a_query_never_takes_the_entry_of_other_variations(
    home: TemporaryHome, count: Callable[[], int], made: str, asked: str
) -> None:
    group = {"group": "g"}
    variations = {"v": {}, "w": {}, "n.#": {}, "std": {"default": True, **group}, "other": group}
    home.recipe("get-x", {"cache": True, "variations": variations}, run_sh=COUNT)
    home.run(made)
    home.run(asked)
    assert count() == 2
    home.run(made)
    home.run(asked)
    assert count() == 2


def test_a_default_that_is_asked_for_by_name_is_the_same_entry(home: TemporaryHome, count: Callable[[], int]) -> None:
    variations = {"std": {"default": True, "group": "g"}, "other": {"group": "g"}}
    home.recipe("get-x", {"cache": True, "variations": variations}, run_sh=COUNT)
    home.run("get,x")
    home.run("get,x,_std")
    assert count() == 1


def test_renew_never_turns_an_entry_into_one_of_another_request(home: TemporaryHome, count: Callable[[], int]) -> None:
    meta = {
        "cache": True,
        "default_version": "2",
        "input_mapping": {"model": "CM_MODEL"},
        "new_env_keys": ["CM_OUT"],
        "variations": {"v": {"env": {"CM_V": "v"}}},
    }
    home.recipe("get-x", meta, run_sh=COUNT + '\necho "CM_OUT=$CM_V$CM_MODEL$CM_VERSION" > tmp-run-env.out')
    wishes: list[tuple[str, dict[str, Any], str]] = [
        ("get,x", {"model": "m"}, "m2"),
        ("get,x", {"version": "1"}, "1"),
        ("get,x,_v", {}, "v2"),
    ]
    for tags, inputs, _ in wishes:
        home.run(tags, **inputs)
    before = {entry["path"]: (entry["tags"], entry["crowdperf"]["inputs"]) for entry in home.entries()}
    assert home.run("get,x", renew=True)["new_env"] == {"CM_OUT": "2"}
    assert count() == 4
    after = {entry["path"]: (entry["tags"], entry["crowdperf"]["inputs"]) for entry in home.entries()}
    assert len(after) == 4, "an entry of its own, and the others as they were"
    assert {path: after[path] for path in before} == before
    for tags, inputs, expected in wishes:
        assert home.run(tags, **inputs)["new_env"] == {"CM_OUT": expected}
    assert count() == 4
    for tags, inputs, expected in wishes:
        assert home.run(tags, renew=True, **inputs)["new_env"] == {"CM_OUT": expected}
    assert count() == 7
    assert len(home.entries()) == len(after), "each was replaced by another"
    assert {path for path in after if path.exists()} == set(after) - set(before)


def test_a_path_on_which_one_dependency_depends_is_none_of_its_siblings(home: TemporaryHome) -> None:
    tool = home.folder / "tool"
    tool.touch()
    run_sh = f'echo "CM_GET_DEPENDENT_CACHED_PATH={tool}" > tmp-run-env.out'
    home.recipe("get-a", {"cache": True, "new_env_keys": ["CM_GET_DEPENDENT_CACHED_PATH"]}, run_sh=run_sh)
    home.recipe("get-b", {"cache": True}, run_sh="true")
    home.recipe("get-p", {"cache": True, "deps": [{"tags": "get,a"}, {"tags": "get,b"}]})
    home.run("get,p")
    watched = {
        meta["associated_script_artifact"].split(",")[0]: meta.get("dependent_cached_path") for meta in home.entries()
    }
    assert watched == {"get-a": str(tool), "get-b": None, "get-p": str(tool)}


# --- flags ---


@pytest.fixture
def counted(home: TemporaryHome, count: Callable[[], int]) -> Callable[[], int]:
    """A cached recipe ``get,x`` and a cached dependency of it, which both count; the version is the count."""
    home.recipe("get-y", {"cache": True}, run_sh=COUNT)
    meta = {"cache": True, "deps": [{"tags": "get,y"}], "new_env_keys": ["CM_N"], "variations": {"v": {}}}
    run_sh = COUNT + '\necho "CM_N=$(wc -l < "$CM_COUNTER")" > tmp-run-env.out; echo "$CM_RENEW_CACHE_ENTRY" > renewed'
    customize = "def postprocess(i):\n    return {'return': 0, 'version': i['env']['CM_N']}\n"
    home.recipe("get-x", meta, run_sh=run_sh, customize=customize)
    return count


def test_renew_makes_an_entry_that_takes_the_place_of_the_old_one(
    home: TemporaryHome, counted: Callable[[], int]
) -> None:
    home.run("get,x,_v", extra_cache_tags="mine")
    before = home.entries("get-x")[0]
    (before["path"] / "kept").touch()
    answer = home.run("get,x,_v", renew=True)
    (after,) = home.entries("get-x")
    assert counted() == 3, "the dependency is not renewed"
    assert after["path"] != before["path"]
    assert "version-2" in before["tags"]
    assert set(after["tags"]) == set(before["tags"]) - {"version-2"} | {"version-3"}
    assert {"mine", "_v"} <= set(after["tags"])
    assert not (after["path"] / "kept").exists()
    assert (after["path"] / "renewed").read_text() == "yes\n"
    assert answer["new_env"] == {"CM_N": "3"}
    assert home.run("get,x,_v")["new_env"] == {"CM_N": "3"}


@pytest.mark.parametrize("place", ["preprocess", "run.sh", "a file that is not made"])
def test_a_renewal_that_fails_leaves_the_old_entry_answering(
    home: TemporaryHome, count: Callable[[], int], place: str
) -> None:
    hook = """
        import os

        def preprocess(i):
            return {"return": int(os.environ.get("FAIL") == "preprocess"), "error": "no network"}

        def postprocess(i):
            i["env"]["CM_X"] = os.path.abspath("big")
            return {"return": 0, "files": ["big", *(["none"] if os.environ.get("FAIL", "").startswith("a ") else [])]}
    """
    run_sh = COUNT + '\necho data > big; [ "${FAIL:-}" != run.sh ]'
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_X"]}, customize=hook, run_sh=run_sh)
    good = home.run("get,x")
    with pytest.MonkeyPatch.context() as failing:
        failing.setenv("FAIL", place)
        with pytest.raises(RecipeError):
            home.run("get,x", renew=True)
        n_runs = count()
        again = home.run("get,x", only_execute_from_cache=True)
    assert again["new_env"] == good["new_env"]
    assert (home.entry("get-x") / "big").read_text() == "data\n"
    assert count() == n_runs
    renewed = home.run("get,x", renew=True)
    assert renewed["new_env"] != good["new_env"]
    assert len(home.entries()) == 1


@pytest.mark.parametrize("damage", ["{}", "", "[]", "edited", "deep"])
def test_an_entry_whose_results_were_damaged_is_made_again_and_reported(
    home: TemporaryHome, count: Callable[[], int], damage: str
) -> None:
    home.recipe("get-x", {"cache": True, "env": {"CM_X": "/bin/x"}, "new_env_keys": ["CM_X"]}, run_sh=COUNT)
    home.run("get,x")
    state = home.entry("get-x") / "cm-cached-state.json"
    texts = {"edited": state.read_text().replace("/bin/x", "/etc/x"), "deep": "[" * 200_000}
    state.write_text(texts.get(damage, damage))
    assert home.run("get,x")["new_env"] == {"CM_X": "/bin/x"}
    assert count() == 2
    (line,) = [line for line in home.story if line.startswith("! ")]
    assert f"its file {state} was edited" in line


def test_entries_whose_time_is_over_do_not_pile_up(home: TemporaryHome, count: Callable[[], int]) -> None:
    home.recipe("get-x", {"cache": True, "cache_expiration": 0}, run_sh=COUNT)
    for _ in range(4):
        home.run("get,x")
    assert count() == 4
    assert len(home.entries()) == 1


def test_an_entry_is_in_use_before_its_dynamic_dependencies_run(home: TemporaryHome, count: Callable[[], int]) -> None:
    hook = """
        import subprocess

        def preprocess(i):
            from recipe_engine.actions.cache_actions import gc_action
            from recipe_engine.actions.adapter import Home
            from pathlib import Path

            gc_action({"max_size": 0, "f": True}, Home([], Path(HOME), Path(HOME) / "repos/local"))
            return {"return": 0}
    """.replace("Path(HOME)", f"Path({str(home.path)!r})")
    home.recipe("get-y", customize=hook)
    home.recipe("get-x", {"cache": True, "deps": [{"tags": "get,y", "dynamic": True}]}, run_sh=COUNT)
    home.run("get,x")
    entry = home.entry("get-x")
    home.run("get,x")
    assert home.entry("get-x") == entry
    assert count() == 1


def test_renew_without_an_entry_makes_one(home: TemporaryHome, counted: Callable[[], int]) -> None:
    home.run("get,x", renew=True)
    assert counted() == 2
    assert home.entry("get-x")


def test_a_renewal_that_its_recipe_skips_leaves_the_entry_as_it_was(home: TemporaryHome) -> None:
    customize = """
        def preprocess(i):
            return {"return": 0, "skip": i["env"].get("CM_RENEW_CACHE_ENTRY") == "yes"}
    """
    home.recipe("get-x", {"cache": True, "env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]}, customize=customize)
    home.run("get,x")
    entry = home.entry("get-x")
    assert home.run("get,x", renew=True)["skipped"] is True
    assert home.run("get,x")["new_env"] == {"CM_X": "1"}
    assert home.entry("get-x") == entry


def test_new_adds_an_entry_and_keeps_the_old_one(home: TemporaryHome, counted: Callable[[], int]) -> None:
    home.run("get,x")
    home.run("get,x", new=True)
    assert counted() == 3
    assert [("tmp" in entry["tags"]) for entry in home.entries("get-x")] == [False, False]


def test_force_cache_needs_the_consent_of_the_recipe(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("get-b", {"can_force_cache": True})
    home.run("get,a", force_cache=True)
    home.run("get,b")
    assert home.entries() == []
    home.recipe("get-p", {"deps": [{"tags": "get,b", "force_cache": True}]})
    home.run("get,p")
    assert [entry["associated_script_artifact"].split(",")[0] for entry in home.entries()] == ["get-b"]


def test_force_cache_is_stronger_than_skip_cache(home: TemporaryHome) -> None:
    home.recipe("get-b", {"can_force_cache": True})
    home.run("get,b", force_cache=True, skip_cache=True)
    assert len(home.entries("get-b")) == 1


def test_a_fake_run_caches_nothing_and_leaves_nothing(home: TemporaryHome, count: Callable[[], int]) -> None:
    home.recipe("get-y", run_sh=COUNT)
    deps = [{"tags": "get,y"}, {"tags": "get,y", "skip_if_fake_run": True}]
    home.recipe("get-x", {"cache": True, "deps": deps}, run_sh="exit 1")
    home.run("get,x", fake_run=True, outdirname="never")
    assert count() == 1
    assert home.entries() == []
    assert list(home.work.iterdir()) == []


def test_fake_dependencies_are_named_but_not_run(home: TemporaryHome, count: Callable[[], int]) -> None:
    home.recipe("get-y", run_sh=COUNT)
    home.recipe("get-x", {"deps": [{"tags": "get,y"}]})
    assert home.run("get,x", fake_deps=True)["deps"] == ["get,y"]
    assert count() == 0


def test_ignore_script_error_goes_on_after_the_script_of_the_recipe_asked_for(home: TemporaryHome) -> None:
    customize = """
        def postprocess(i):
            i["env"]["CM_X"] = "went on"
            return {"return": 0}
    """
    home.recipe("get-x", {"new_env_keys": ["CM_X"]}, run_sh="exit 3", customize=customize)
    home.recipe("get-p", {"deps": [{"tags": "get,x"}]})
    assert home.run("get,x", ignore_script_error=True)["new_env"] == {"CM_X": "went on"}
    assert any("--ignore_script_error" in line for line in home.story)
    with pytest.raises(ScriptFailed):
        home.run("get,p", ignore_script_error=True)


@pytest.mark.parametrize("is_cached", [False, True])
def test_ignore_script_error_keeps_what_the_failing_script_had_written(home: TemporaryHome, is_cached: bool) -> None:
    script = "echo CM_X=1 > tmp-run-env.out\necho '{\"s\": 2}' > tmp-run-state.json\nexit 3"
    home.recipe("get-x", {"cache": is_cached, "new_env_keys": ["CM_X"], "new_state_keys": ["s"]}, run_sh=script)
    answer = home.run("get,x", ignore_script_error=True)
    assert (answer["new_env"], answer["new_state"]) == ({"CM_X": "1"}, {"s": 2})


# --- the folder of an uncached run ---


@pytest.mark.parametrize("outdir", ["", "out/here"])
def test_an_uncached_recipe_leaves_only_what_its_script_made(home: TemporaryHome, outdir: str) -> None:
    customize = "def postprocess(i):\n    open('from-hook', 'w').close()\n    return {'return': 0}\n"
    run_sh = "ls >result; touch scratch.txt; echo A=1 >tmp-run-env.out\necho {} >tmp-run-state.json; echo >tmp-ver.out"
    meta = {"clean_files": ["scratch.txt", "../keep", "result-folder"]}
    home.recipe("get-x", meta, customize=customize, run_sh=run_sh)
    place = home.work / outdir
    (place / "result-folder").mkdir(parents=True)
    (place.parent / "keep").touch()
    inputs = {"outdirname": outdir} if outdir else {}
    home.run("get,x", **inputs)
    assert sorted(path.name for path in place.iterdir()) == ["from-hook", "result", "result-folder"]
    assert (place.parent / "keep").exists()
    home.run("get,x", dirty=True, **inputs)
    assert {"tmp-run.sh", "tmp-state.json", "scratch.txt"} <= {path.name for path in place.iterdir()}
    home.run("get,x", **inputs)
    assert {"tmp-ver.out", "scratch.txt"}.isdisjoint((place / "result").read_text().split()), "of the run before"


def test_a_skip_after_a_script_of_the_hook_leaves_no_scratch_files(home: TemporaryHome) -> None:
    customize = """
        def preprocess(i):
            i["automation"].run_native_script({"env": dict(i["env"]), "script_name": "detect"})
            return {"return": 0, "skip": True}
    """
    home.recipe("get-x", customize=customize, files={"detect.sh": "echo 1 > tmp-ver.out"})
    home.run("get,x")
    assert list(home.work.iterdir()) == []


def test_a_failed_uncached_run_leaves_what_is_needed_to_try_by_hand(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="exit 3")
    with pytest.raises(ScriptFailed):
        home.run("get,x")
    assert (home.work / "tmp-run.sh").exists()


def test_an_output_folder_that_cannot_be_made_is_named(home: TemporaryHome) -> None:
    home.recipe("get-x")
    (home.work / "file").touch()
    with pytest.raises(RequestError, match="--outdirname=file/x"):
        home.run("get,x", outdirname="file/x")


def test_a_recipe_without_scripts_does_not_touch_the_scratch_files_of_another_run(home: TemporaryHome) -> None:
    home.recipe("get-x", customize="def preprocess(i):\n    return {'return': 0}\n")
    for name in ("tmp-run-env.out", "tmp-run.sh", "tmp-ver.out"):
        (home.work / name).write_text("of another run")
    home.run("get,x")
    assert len(list(home.work.iterdir())) == 3


def test_files_to_clean_first_are_removed_but_never_folders(home: TemporaryHome) -> None:
    home.recipe("get-x", {"clean_output_files": ["old.txt", "folder", "missing"]})
    (home.work / "old.txt").touch()
    (home.work / "folder").mkdir()
    home.run("get,x")
    assert [path.name for path in home.work.iterdir()] == ["folder"]


def test_files_to_clean_first_never_lie_outside_the_folder(home: TemporaryHome) -> None:
    outside = home.folder / "outside.txt"
    outside.touch()
    names = [str(outside), "../outside.txt", "folder/../../outside.txt"]
    home.recipe("get-x", {"clean_output_files": names, "clean_files": names})
    (home.work / "folder").mkdir()
    home.run("get,x")
    assert outside.exists()


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_hook_that_changes_the_folder_does_not_lead_others_astray(home: TemporaryHome, is_cached: bool) -> None:
    customize = """
        import os
        def preprocess(i):
            os.makedirs("deep/er")
            os.chdir("deep/er")
            return {"return": 0}
    """
    home.recipe("get-x", {"cache": is_cached, "env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]}, customize=customize)
    meta = {"deps": [{"tags": "get,x"}], "new_env_keys": ["*"]}
    home.recipe("get-p", meta, run_sh='echo "CM_PWD=$PWD" > tmp-run-env.out')
    assert home.run("get,p")["new_env"]["CM_PWD"] == str(home.work)
    if is_cached:
        assert (home.entry("get-x") / "tmp-env.sh").exists()


# --- secrets ---


def test_a_token_reaches_the_scripts_and_stays_out_of_every_file(
    home: TemporaryHome, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = {
        "cache": True,
        "input_mapping": {"token": "CM_MY_TOKEN"},
        "deps": [{"tags": "get,y", "names": ["y"]}],
        "new_env_keys": ["CM_*"],
    }
    y_meta = {"cache": True, "new_env_keys": ["CM_*"]}
    home.recipe("get-y", y_meta, run_sh='echo "CM_Y=${#CM_GH_TOKEN}" > tmp-run-env.out')
    run_sh = 'echo "CM_SEEN=${#CM_MY_TOKEN}-${#CM_GH_TOKEN}" > tmp-run-env.out; echo "using $CM_MY_TOKEN, $CM_GH_TOKEN"'
    home.recipe("get-x", meta, run_sh=run_sh)
    secret, other = "s3cret-0123456789", "gh-9876543210"
    asked = {"token": secret, "adr": {"y": {"env": {"CM_API_KEY": secret}}}, "out": "json"}
    for flag, of_process in (({}, other), ({"gh_token": other, "new": True}, "")):
        monkeypatch.setenv("GH_TOKEN", of_process)
        answer = home.run("get,x", **asked, **flag)
        assert answer["new_env"]["CM_SEEN"] == f"{len(secret)}-{len(other)}"
        assert answer["new_env"]["CM_Y"] == str(len(other))
    shown = "".join(capfd.readouterr()) + "\n".join(home.story) + json.dumps(answer)
    texts = {"what was shown": shown}
    texts |= {str(path): path.read_text(errors="replace") for path in home.folder.rglob("*") if path.is_file()}
    assert "using ********, ********" in shown
    assert not [name for name, text in texts.items() if secret in text or other in text]


# --- recipes that run others, endlessly too ---


class FakeCm:
    """Stands for cmind: its ``access`` runs a recipe as the adapter does."""

    def __init__(self, home: TemporaryHome) -> None:
        self.home = home
        self.output = None

    def access(self, i: dict[str, Any]) -> dict[str, Any]:
        """CM's answer for a run."""
        return answer_cm(lambda i: run_action(i, self.home.engine_home, self), i, self)


NESTED = """
    def preprocess(i):
        answer = i["automation"].cmind.access(
            {"action": "run", "automation": "script", "tags": "TAGS", "quiet": True, "env": {"CM_IN": "in"}}
        )
        if answer["return"] > 0:
            return answer
        i["env"]["CM_X"] = answer["new_env"]["CM_Y"]
        return {"return": 0}
"""


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_recipe_may_run_another_through_cm(home: TemporaryHome, is_cached: bool) -> None:
    run_sh = 'echo "CM_Y=$CM_IN-$(basename "$PWD")" > tmp-run-env.out'
    home.recipe("get-y", {"new_env_keys": ["CM_Y"]}, run_sh=run_sh)
    customize = NESTED.replace("TAGS", "get,y")
    home.recipe("get-x", {"cache": is_cached, "new_env_keys": ["CM_X"]}, customize=customize, run_sh="true")
    place = home.run("get,x", cmind=FakeCm(home))["new_env"]["CM_X"]
    assert place == ("in-" + home.entry("get-x").name if is_cached else "in-work")


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_cycle_through_cm_is_an_error_and_no_hang(home: TemporaryHome, is_cached: bool) -> None:
    home.recipe("get-x", {"cache": is_cached}, customize=NESTED.replace("TAGS", "get,x"))
    with pytest.raises(CycleError) as caught:
        home.run("get,x", cmind=FakeCm(home))
    assert "get-x" in caught.value.message
    assert len(caught.value.describe()) < 1000


def test_an_endless_chain_is_named_by_the_part_that_repeats(home: TemporaryHome) -> None:
    for name, needed in (("top", "a"), ("a", "b"), ("b", "c"), ("c", "a")):
        home.recipe(f"get-{name}", {"deps": [{"tags": f"get,{needed}"}]})
    with pytest.raises(CycleError) as caught:
        home.run("get,top")
    circle = caught.value.message.rpartition(": ")[2].split(" -> ")
    assert sorted(circle[1:]) == ["get-a", "get-b", "get-c"]
    assert circle[0] == circle[-1]
    assert len(caught.value.describe()) < 1000


def test_a_recipe_may_need_itself_with_an_end(home: TemporaryHome) -> None:
    deps = [{"tags": "get,x", "env": {"CM_DEPTH": "<<<CM_DEPTH>>>1"}, "skip_if_env": {"CM_DEPTH": ["01111"]}}]
    customize = """
        def preprocess(i):
            i["env"]["CM_DEEPEST"] = max(i["env"]["CM_DEPTH"], i["env"].get("CM_DEEPEST", ""))
            return {"return": 0}
    """
    home.recipe("get-x", {"deps": deps, "new_env_keys": ["CM_DEEPEST"]}, customize=customize)
    assert home.run("get,x", env={"CM_DEPTH": "0"})["new_env"] == {"CM_DEEPEST": "01111"}


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_long_chain_of_recipes_is_no_cycle(home: TemporaryHome, is_cached: bool) -> None:
    for number in range(90):
        deps = [{"tags": f"chain,n{number + 1}"}] if number < 89 else []
        meta = {"cache": is_cached, "deps": deps, "env": {f"CM_{number}": "1"}, "new_env_keys": ["CM_*"]}
        home.recipe(f"chain-n{number}", meta)
    assert "CM_89" in home.run("chain,n0")["new_env"]


def test_after_an_error_the_next_run_starts_a_chain_and_a_folder_of_its_own(home: TemporaryHome) -> None:
    customize = """
        import os
        def preprocess(i):
            os.makedirs("deeper", exist_ok=True)
            os.chdir("deeper")
            return {"return": 0}
    """
    home.recipe("get-x", run_sh="exit 1", customize=customize)
    for _ in range(2):
        with pytest.raises(RecipeError) as caught:
            home.run("get,x")
        assert caught.value.trace == ("get-x",)
    assert not (home.work / "deeper" / "deeper").exists()


def test_an_input_that_a_dynamic_dependency_waits_for_acts_on_the_entry_that_is_there(home: TemporaryHome) -> None:
    pull = {"tags": "pull,it", "dynamic": True, "enable_if_env": {"CM_PULL": ["yes"]}, "force_env_keys": ["CM_CLONE"]}
    home.recipe(
        "get-clone",
        {
            "cache": True,
            "input_mapping": {"pull": "CM_PULL", "url": "CM_URL"},
            "new_env_keys": ["CM_CLONE"],
            "post_deps": [pull],
        },
        run_sh='echo "CM_CLONE=$PWD" > tmp-run-env.out',
    )
    home.recipe("pull-it", run_sh='echo pulled >> "$CM_CLONE/history"')
    first = home.run("get,clone", url="a")["new_env"]["CM_CLONE"]
    assert home.run("get,clone", url="a", pull="yes")["new_env"]["CM_CLONE"] == first
    assert (home.entry("get-clone") / "history").read_text(encoding="utf-8") == "pulled\n"
    assert home.run("get,clone", url="b", pull="yes")["new_env"]["CM_CLONE"] != first
    assert home.run("get,clone", url="b")["new_env"]["CM_CLONE"] != first
    assert len(home.entries("get-clone")) == 2


def test_one_address_with_different_logins_is_one_entry_that_keeps_none(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        {"cache": True, "input_mapping": {"url": "CM_X_URL"}, "new_env_keys": ["CM_X_*"]},
        run_sh='[ "$CM_X_URL" = https://me:first-login@example.org/x ]',
    )
    first = home.run("get,x", url="https://me:first-login@example.org/x")
    assert first["new_env"]["CM_X_URL"] == "https://me:first-login@example.org/x"
    for url in ("https://you:second-login@example.org/x", "https://example.org/x"):
        again = home.run("get,x", url=url)
        assert again["cache_entry"] == first["cache_entry"]
        assert again["new_env"]["CM_X_URL"] == url
    texts = [path.read_bytes() for path in home.store.rglob("*") if path.is_file()]
    assert not [text for text in texts if b"-login" in text]


def test_a_script_gives_back_the_state_that_it_was_shown_without_secrets(home: TemporaryHome) -> None:
    home.recipe("get-x", {"new_state_keys": ["x"]}, run_sh="cp tmp-state.json tmp-run-state.json; grep -v s3cret tmp-*")
    state = {"x": {"api_key": "s3cret-1", "urls": ["https://me:s3cret-2@h/", "b"], "n": 1}}
    assert home.run("get,x", state=state)["new_state"] == state
