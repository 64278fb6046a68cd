"""From CM's input to a request, and what the call as a whole tells the user."""

from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, write_recipe
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.help import search_action
from recipe_engine.actions.run import parse_query_input, parse_request, run_action
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.rules.errors import Ambiguous, NotFound, RequestError, VariationNotFound
from recipe_engine.running.step import MIN_SHOWN_S


@pytest.mark.parametrize(
    ("i", "words", "variations", "name"),
    [
        ({"tags": "get,x"}, ("get", "x"), (), ""),
        ({"tags": "get,x,_v"}, ("get", "x"), ("v",), ""),
        ({"tags": ["get", "x"]}, ("get", "x"), (), ""),
        ({"artifact": "get x _v"}, ("get", "x"), ("v",), ""),
        ({"artifact": "get x", "tags": "other"}, ("get", "x"), (), ""),
        ({"artifact": "get x", "artifacts": ["_v _w"]}, ("get", "x"), ("v", "w"), ""),
        ({"artifact": "get x", "artifacts": ["_v,y"]}, ("get", "x", "y"), ("v",), ""),
        ({"artifact": "get-x"}, (), (), "get-x"),
        ({"artifact": "get-x", "tags": "_v"}, (), ("v",), "get-x"),
        ({"artifact": "recipes:get-x"}, (), (), "get-x"),
        ({"artifact": "get-x,a123456789abcdef"}, (), (), "a123456789abcdef"),
        ({"artifact": "a123456789abcdef"}, (), (), "a123456789abcdef"),
        ({}, (), (), ""),
    ],
)
def test_the_words_of_the_command_line_are_tags_or_a_name(
    i: dict[str, Any], words: tuple[str, ...], variations: tuple[str, ...], name: str
) -> None:
    query, alias = parse_query_input(i)
    assert (query.all_of, query.variations, alias) == (words, variations, name)


@pytest.mark.parametrize("value", [True, "abc", {"x": "1"}])
def test_an_artifacts_that_is_no_list_of_words_is_refused(value: Any, home: TemporaryHome) -> None:
    with pytest.raises(RequestError, match=r"--artifacts is reserved for cmind .*, found "):
        home.run("get,x", artifacts=value)


@pytest.mark.parametrize(
    ("flag", "field"),
    [
        ("new", "new"),
        ("renew", "renew"),
        ("skip_cache", "skip_cache"),
        ("force_cache", "force_cache"),
        ("only_execute_from_cache", "only_from_cache"),
        ("quiet", "quiet"),
        ("q", "quiet"),
        ("silent", "silent"),
        ("s", "silent"),
        ("verbose", "verbose"),
        ("v", "verbose"),
        ("fake_run", "fake_run"),
        ("prepare", "fake_run"),
        ("fake_deps", "fake_deps"),
        ("dirty", "dirty"),
        ("save_env", "save_env"),
        ("ignore_script_error", "ignore_script_error"),
    ],
)
def test_each_flag_is_read_in_cms_ways_of_writing_it(flag: str, field: str) -> None:
    for value in (True, "yes", "True", "1"):
        assert getattr(parse_request({"tags": "get,x", flag: value}).options, field) is True
    for value in (False, "no", "", None):
        assert getattr(parse_request({"tags": "get,x", flag: value}).options, field) is False


def test_flags_that_recipes_read_are_put_into_the_env() -> None:
    request = parse_request({"tags": "x", "quiet": True, "s": True, "v": True, "fake_run": True, "lock_timeout": "2"})
    assert {key: request.env.get(key) for key in ("CM_QUIET", "CM_TMP_SILENT", "CM_VERBOSE", "CM_TMP_FAKE_RUN")} == {
        "CM_QUIET": "yes",
        "CM_TMP_SILENT": "yes",
        "CM_VERBOSE": "yes",
        "CM_TMP_FAKE_RUN": "yes",
    }
    assert request.options.lock_timeout_s == 2.0


def test_an_unknown_variation_is_named_with_the_known_ones(home: TemporaryHome) -> None:
    home.recipe("get-x", {"variations": {"onnxruntime": {}, "null": {}, "n.#": {}, "null,n.#": {}}})
    with pytest.raises(VariationNotFound) as caught:
        home.run("get,x,_onnx-runtime")
    assert caught.value.code == 16
    assert "no variation _onnx-runtime (close: _onnxruntime)" in caught.value.message
    assert "its variations: _n.#, _null, _onnxruntime" in caught.value.message


def test_asking_for_nothing_runs_nothing(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="touch ran")
    with pytest.raises(RequestError, match="no recipe was requested"):
        home.run("")
    assert not (home.work / "ran").exists()


def test_a_recipe_that_cannot_be_read_stops_nobody_and_is_named_when_it_is_missed(home: TemporaryHome) -> None:
    home.recipe("get-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    folder = home.recipe("get-broken")
    (folder / "_cm.json").write_text("{")
    assert home.run("get,x")["new_env"] == {"CM_X": "1"}
    with pytest.raises(NotFound) as caught:
        home.run("get,broken")
    assert f"cannot be read: {folder}/_cm.json: " in caught.value.message
    with pytest.raises(NotFound) as caught:
        home.run("", artifact="get-broken")
    assert f"cannot be read: {folder}/_cm.json: " in caught.value.message


def test_several_recipes_and_nobody_to_ask_is_an_error_with_the_list(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.recipe("get-a", {"tags": ["get", "a"]})
    home.recipe("get-b", {"tags": ["get", "b"], "sort": -1})
    with pytest.raises(Ambiguous) as caught:
        home.run("get", quiet=False)
    assert "get-a" in caught.value.message
    assert "--quiet" in caught.value.hint
    home.run("get")
    assert home.story[0] == "* get-b: running", "the first by sort, then by path"


def test_recipes_of_one_name_are_told_apart_by_their_repositories(home: TemporaryHome) -> None:
    home.recipe("get-a")
    home.recipe("get-ab", {"tags": ["get", "a", "b"]})
    other = home.folder / "other"
    write_recipe(other, "get-a", {"uid": "b" * 16})
    repos = [*home.engine_home.repos, RepoInfo(other, "other", "1" * 16)]
    two = Home(repos, home.path, home.path / "repos" / "local")
    with working_folder(home.work), pytest.raises(Ambiguous) as caught:
        run_action({"tags": "get,a"}, two, None)
    assert caught.value.message.split("\n")[1:] == [
        "  0) other:get-a (a,get)",
        "  1) recipes:get-a (a,get)",
        "  2) get-ab (a,b,get)",
    ]
    assert caught.value.hint.startswith("choose one, such as other:get-a, ")


def test_of_several_recipes_the_one_whose_own_help_says_the_query_is_taken_without_asking(home: TemporaryHome) -> None:
    home.recipe("check-a", {"tags": ["run", "a", "check"]})
    home.recipe("run-a", {"tags": ["run", "a"], "tags_help": "run,a"})
    home.run("a,run", quiet=False)
    assert home.story[0] == "* run-a: running"
    with pytest.raises(Ambiguous):
        home.run("run", quiet=False)


def test_of_several_recipes_the_cached_one_is_taken(home: TemporaryHome) -> None:
    home.recipe("get-a", {"tags": ["get", "a"], "cache": True})
    home.recipe("get-b", {"tags": ["get", "b"], "cache": True})
    home.run("get,b")
    home.run("get", quiet=False)
    assert home.story[0].startswith("= get-b: reused")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"modle": "x"}, "--modle for recipe get-x, did you mean --model?"),
        ({"model": "x"}, ""),
        ({"skip_cahce": True}, "--skip_cahce for recipe get-x, did you mean --skip_cache?"),
        ({"something_else_entirely": 1}, ""),
    ],
)
def test_an_input_that_looks_misspelt_is_told(home: TemporaryHome, given: dict[str, Any], told: str) -> None:
    home.recipe("get-x", {"input_mapping": {"model": "CM_MODEL"}})
    home.run("get,x", out="con", **given)
    warnings = [line for line in home.story if "did you mean" in line]
    assert len(warnings) == (1 if told else 0)
    assert told in "".join(warnings)


def test_values_that_the_recipe_wants_shown_are_told_at_the_end(home: TemporaryHome) -> None:
    meta = {"env": {"CM_A": "1", "CM_B": "2"}, "new_env_keys": ["CM_*"]}
    home.recipe("get-x", {**meta, "print_env_at_the_end": {"CM_A": "the first", "CM_B": "", "CM_C": "absent"}})
    home.run("get,x", out="con")
    assert home.story[-2:] == ["  the first: 1", "  CM_B: 2"]


def test_silent_tells_only_what_needs_attention(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "warnings": ["mind the gap"]})
    home.run("get,x", silent=True)
    assert home.story == ["! get-x: mind the gap"]


def test_silent_scripts_write_to_the_log_and_errors_are_shown(home: TemporaryHome, capfd) -> None:
    home.recipe("get-x", {"cache": True}, run_sh="echo chatter; echo trouble >&2")
    home.run("get,x", silent=True)
    assert capfd.readouterr() == ("", "trouble\n")
    assert "chatter" in next(home.store.rglob("log.txt")).read_text()


def test_hooks_of_dependencies_know_that_the_call_is_silent(home: TemporaryHome, capfd) -> None:
    hook = 'def preprocess(i):\n    print("silent:", i["env"].get("CM_TMP_SILENT", "no"))\n    return {"return": 0}\n'
    home.recipe("get-z", {"cache": True}, customize=hook)
    home.recipe("get-y", {"deps": [{"tags": "get,z"}]}, customize=hook)
    home.recipe("get-x", {"deps": [{"tags": "get,y"}]})
    home.run("get,x", silent=True)
    assert capfd.readouterr().out == "silent: yes\n" * 2
    home.run("get,x")
    assert capfd.readouterr().out == "silent: no\n", "the entry that the silent call made is not reused"


def test_silent_steps_hide_the_steps_and_not_what_scripts_write(home: TemporaryHome, capfd) -> None:
    home.recipe("get-y", {"cache": True})
    home.recipe("get-x", {"deps": [{"tags": "get,y"}]}, run_sh="echo chatter")
    home.run("get,x", silent="steps")
    assert home.story == []
    assert capfd.readouterr().out == "chatter\n"


def test_recipes_are_found_by_tags_variations_and_name(home: TemporaryHome) -> None:
    one = home.recipe("get-a", {"tags": ["get", "a"], "variations": {"v": {}}})
    two = home.recipe("get-b", {"tags": ["get", "b"]})
    assert search_action({"tags": "get"}, home.engine_home)[0] == [one, two]
    assert search_action({"tags": "get,_v"}, home.engine_home)[0] == [one]
    assert search_action({"tags": "get,-a"}, home.engine_home)[0] == [two]
    assert search_action({"artifact": "get-b"}, home.engine_home)[0] == [two]
    assert search_action({"tags": "none"}, home.engine_home)[0] == []


def test_the_store_is_cms_local_repository_or_the_folder_that_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home([RepoInfo(tmp_path, "r", "")], tmp_path / "home", tmp_path / "home" / "repos" / "local")
    assert home.store_path == tmp_path / "home" / "repos" / "local" / "cache"
    monkeypatch.setenv("CROWDPERF_CACHE", "/elsewhere")
    assert home.store_path == Path("/elsewhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROWDPERF_CACHE", "here")
    assert home.store_path == tmp_path / "here", "recipes change the current folder"


@pytest.mark.parametrize("name", ["plan", "dry_run", "dry-run"])
def test_a_request_for_a_dry_run_never_runs(home: TemporaryHome, name: str) -> None:
    home.recipe("get-x", run_sh='touch "$CM_TMP_CURRENT_PATH/ran"\n')
    with pytest.raises(RequestError, match="would run for real") as caught:
        home.run("get,x", **{name: True})
    assert "cm plan script" in caught.value.hint
    assert not (home.work / "ran").exists()
    home.recipe("get-y", {"input_mapping": {name: "CM_ONLY_LOOK"}})
    home.run("get,y", **{name: True})


@pytest.mark.parametrize(
    ("given", "of_the_process", "token"),
    [
        ({"GH_TOKEN": "given"}, "", "given"),
        ({"GH_TOKEN": "given"}, "of the process", "given"),
        ({}, "of the process", "of the process"),
        ({"CM_GH_TOKEN": "ours", "GH_TOKEN": "given"}, "of the process", "ours"),
        ({}, "", None),
    ],
)
def test_a_github_token_that_is_given_wins_over_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], of_the_process: str, token: str | None
) -> None:
    monkeypatch.setenv("GH_TOKEN", of_the_process)
    env = parse_request({"tags": "get,x", "env": given}).env
    assert (env.get("CM_GH_TOKEN"), env.get("GH_TOKEN")) == (token, None)


def test_the_answer_has_no_env_that_only_the_engine_added(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:planted-proxy@proxy:3128")
    home.recipe("get-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]}, run_sh='test -n "$http_proxy"')
    env = home.run("get,x", verbose=True, env={"CM_MINE": "2"})["env"]
    assert env == {"CM_X": "1", "CM_MINE": "2"}


@pytest.mark.parametrize(("took_s", "is_shown"), [(0.0, False), (0.05, False), (0.25, True)])
def test_a_dependency_that_ends_at_once_is_shown_with_v_only(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, took_s: float, is_shown: bool
) -> None:
    home.recipe("get-quick")
    home.recipe("get-script", run_sh="true")
    home.recipe("run-all", {"deps": [{"tags": "get,quick"}, {"tags": "get,script"}]})
    readings = iter(range(1000))
    monkeypatch.setattr("recipe_engine.running.step.time.perf_counter", lambda: next(readings) * took_s)
    home.min_shown_s = MIN_SHOWN_S
    home.run("run,all")
    done = [line.split(":")[0].strip() for line in home.story if ": done in" in line]
    assert ("+ get-quick" in done) is is_shown
    assert {"+ get-script", "+ run-all"} <= set(done), "what was announced is finished, and the requested step shown"


def test_a_run_that_a_recipe_starts_does_not_report_entries_again(home: TemporaryHome) -> None:
    home.recipe("get-tool", {"cache": True})
    home.recipe("get-inner", {"deps": [{"tags": "get,tool"}]})
    hook = """
        def preprocess(i):
            return i["automation"].cmind.access({"action": "run", "automation": "script", "tags": "get,inner"})
    """
    home.recipe("run-many", {"deps": [{"tags": "get,tool"}]}, customize=hook)
    home.cm("run", "script", "--tags=get,tool")
    done = home.run_cm("run,many")
    assert done.code == 0
    assert done.stderr.count("= get-tool: reused") == 1, done.stderr
