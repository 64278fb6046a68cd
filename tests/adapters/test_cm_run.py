"""The console of ``cm run script``: one JSON object on stdout, the story on stderr, exit codes, signals, refusals."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from helpers import Finished, TemporaryHome, finish, is_alive, wait_until

NOISY = """
    import os

    print("printed while loading")

    def preprocess(i):
        print("printed by preprocess")
        os.system("echo printed by a child of preprocess")
        return {"return": 0}

    def postprocess(i):
        print("printed by postprocess")
        return {"return": 0}
"""
LEAVES_A_PID = """
    echo $$ > "$PID_FOLDER/script.pid"
    sleep 300 &
    echo $! > "$PID_FOLDER/sleep.pid"
    wait
"""


def told(text: str, *parts: str) -> None:
    """Asserts that all parts are in the text."""
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in:\n{text}"


def plain_error(done: Finished, code: int) -> str:
    """The error text of a refused run; it must be no traceback and no fault of the engine."""
    assert done.code == code, (done.code, done.stdout, done.stderr)
    answer = done.answer
    assert answer["return"] == code
    assert "Traceback" not in done.stderr
    assert "internal error" not in answer["error"]
    return str(answer["error"])


def folders(done: Finished) -> list[Path]:
    """The folders printed on stdout, without the remarks of cmind itself on its index."""
    return [Path(line) for line in done.stdout.splitlines() if line.startswith("/")]


# --- standard output and standard error ---


def test_json_output_is_one_object_whatever_the_recipe_prints(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        {"new_env_keys": ["CM_X"], "cache": True},
        customize=NOISY,
        run_sh="echo from run.sh; echo CM_X=1 >> tmp-run-env.out",
    )
    done = home.cm("run", "script", "get x", "--out=json")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_X": "1"}
    printed = ("while loading", "by preprocess", "by a child of preprocess", "by postprocess")
    told(done.stderr, "from run.sh", "get-x: done", *(f"printed {how}" for how in printed))


def test_what_json_cannot_hold_is_a_text_in_it(home: TemporaryHome) -> None:
    values = "'odd': [float('nan'), float('inf'), -float('inf'), 1.5], 'path': __import__('pathlib').Path('/a')"
    home.recipe(
        "get-x",
        {"new_state_keys": ["odd", "path"]},
        customize=f"def preprocess(i):\n    i['state'].update({{{values}}})\n    return {{'return': 0}}\n",
    )
    done = home.cm("run", "script", "--tags=get,x", "--out=json")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert answer["new_state"] == {"odd": ["NaN", "Infinity", "-Infinity", 1.5], "path": "/a"}


def test_json_output_is_one_object_when_the_run_fails(home: TemporaryHome) -> None:
    home.recipe("get-x", customize=NOISY, run_sh="echo from run.sh; echo to stderr >&2; exit 3")
    done = home.cm("run", "script", "get x", "--out=json")
    error = plain_error(done, 2)
    told(error, "failed with exit code 3", "last lines of its standard error:", "to stderr", "hint:")
    assert "from run.sh" not in error
    told(done.stderr, "from run.sh", "printed by preprocess")


def test_on_the_console_the_output_of_scripts_is_on_stdout_and_the_story_on_stderr(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="echo from run.sh")
    done = home.cm("run", "script", "get x")
    assert done.code == 0
    assert "from run.sh" in done.stdout
    assert "get-x: done" not in done.stdout
    assert "get-x: done" in done.stderr


def test_an_error_on_the_console_is_told_once_with_a_hint_that_can_be_copied(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="exit 1")
    done = home.cm("run", "script", "get x")
    assert done.code == 2
    assert (done.stdout + done.stderr).count("failed with exit code 1") == 1
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(r"  resume: cm resume script \S+[0-9a-f]", last), "cmind must put no exclamation mark behind it"
    assert "again:" not in done.stderr
    assert "  again: cm run script 'get x' -v\n" in home.cm("run", "script", "get x", "-v").stderr


def test_the_result_has_the_shape_that_cm_users_know(home: TemporaryHome) -> None:
    home.recipe("get-y", {"new_env_keys": ["CM_Y"]}, run_sh="echo CM_Y=2 > tmp-run-env.out")
    home.recipe(
        "get-x",
        {"cache": True, "deps": [{"tags": "get,y"}], "new_env_keys": ["CM_X"], "new_state_keys": ["x"]},
        customize="""
            def postprocess(i):
                i["state"]["x"] = {"list": [1]}
                i["env"]["CM_X"] = "made"
                return {"return": 0, "version": "1.2"}
        """,
    )
    for what in ("made", "reused"):
        answer = home.run_cm("get,x", "--env.CM_GIVEN=1").answer
        assert answer["return"] == 0, answer
        assert answer["new_env"] == {"CM_X": "made"}, what
        assert answer["env"]["CM_GIVEN"] == "1"
        assert answer["env"]["CM_X"] == "made"
        assert "CM_Y" not in answer["env"], "a dependency's env leaves a recipe only by new_env_keys"
        assert answer["new_state"] == {"x": {"list": [1]}}
        assert answer["state"]["x"] == {"list": [1]}
        assert answer["version"] == "1.2"
        assert Path(answer["cache_entry"]["path"]).name == answer["cache_entry"]["uid"]
    assert isinstance(answer["deps"], list)


# --- requests that cannot be answered ---


def test_a_wrong_variation_ends_with_16_and_lists_the_known_ones(home: TemporaryHome) -> None:
    home.recipe("get-widget", {"variations": {"large": {}, "small": {}}})
    told(plain_error(home.run_cm("get,widget,_smal"), 16), "has no variation _smal", "close: _small", "_large, _small")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--lock_timeout=abc",), ("lock_timeout", "'abc'", "number of seconds")),
        (("--new", "--renew"), ("--new and --renew contradict", "hint:")),
        (("--env=x",), ("--env needs a key", "'x'", "--env.NAME=VALUE")),
        (("--state=x",), ("--state needs a key", "'x'")),
        (("--env.+PATH.a=x",), ("'+PATH' must contain a list", "'x'")),
        (("--adr=x",), ("--adr", "x")),
        (("--only_execute_from_cache",), ("not in the cache", "without --only_execute_from_cache")),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused_with_the_value_and_a_way_out(
    home: TemporaryHome, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    folder = home.recipe("get-x", {"cache": True}, run_sh='touch "$CM_TMP_CURRENT_SCRIPT_PATH/ran"')
    told(plain_error(home.run_cm("get,x", *words), 1), *parts)
    assert not (folder / "ran").exists()


# --- failures ---


def test_a_failing_script_deep_down_is_told_with_chain_log_and_last_lines(home: TemporaryHome) -> None:
    home.recipe("get-c", {"cache": True}, run_sh="for n in $(seq 40); do echo line-$n-end; done; exit 7")
    home.recipe("get-b", {"cache": True, "deps": [{"tags": "get,c"}]})
    home.recipe("get-a", {"deps": [{"tags": "get,b"}]})
    error = plain_error(home.run_cm("get,a"), 2)
    told(error, "get-c: run.sh failed with exit code 7", "chain: get-a -> get-b -> get-c", "line-40-end", "line-30-end")
    assert "line-1-end" not in error
    log = next(line.partition("log:")[2].strip() for line in error.splitlines() if line.strip().startswith("log:"))
    assert "line-1-end" in Path(log).read_text(encoding="utf-8")
    assert all("tmp" in entry["tags"] for entry in home.entries())


NESTED = """
    def preprocess(i):
        r = i["automation"].cmind.access(
            {"action": "run", "automation": "script", "tags": "get,inner", "env": {"CM_IN": "5"}, "quiet": True}
        )
        if r["return"] > 0:
            return r
        i["env"]["CM_OUTER"] = r["new_env"]["CM_INNER"]
        return {"return": 0}
"""


def test_a_recipe_may_run_another_through_cmind(home: TemporaryHome) -> None:
    home.recipe("get-inner", {"new_env_keys": ["CM_INNER"]}, run_sh='echo "CM_INNER=$CM_IN" > tmp-run-env.out')
    home.recipe("get-outer", {"new_env_keys": ["CM_OUTER"]}, customize=NESTED)
    done = home.run_cm("get,outer")
    assert done.answer["new_env"] == {"CM_OUTER": "5"}


def test_runs_through_cmind_fill_the_env_and_the_state_of_their_caller(home: TemporaryHome) -> None:
    meta = {"input_mapping": {"part": "CM_PART"}, "new_env_keys": ["CM_DIR", "+CM_PARTS"], "new_state_keys": ["parts"]}
    inner = """
        def preprocess(i):
            if i["env"]["CM_PART"] == "bad":
                return {"return": 1, "error": "bad part"}
            i["env"].update({"CM_DIR": "/" + i["env"]["CM_PART"], "+CM_PARTS": [i["env"]["CM_PART"]], "CM_OWN": "x"})
            i["state"].setdefault("parts", {})[i["env"]["CM_PART"]] = 1
            return {"return": 0}
    """
    outer = """
        def preprocess(i):
            env, state, const = {"CM_MINE": "1"}, {"mine": 1}, {"CM_CONST": "c"}
            asked = {"action": "run", "automation": "script", "tags": "get,inner", "quiet": True}
            for part in ("a", "b"):
                r = i["automation"].cmind.access({**asked, "part": part, "env": env, "state": state, "const": const})
                assert r["return"] == 0 and r["env"] is env and r["state"] is state, r
            bad = i["automation"].cmind.access({**asked, "part": "bad", "env": env, "state": state})
            assert bad["return"] == 1
            i["state"].update({"env": env, "state": state, "const": const})
            return {"return": 0}
    """
    home.recipe("get-inner", meta, customize=inner)
    home.recipe("get-outer", {"new_state_keys": ["env", "state", "const"]}, customize=outer)
    assert home.run_cm("get,outer").answer["new_state"] == {
        "env": {"CM_MINE": "1", "CM_DIR": "/b", "+CM_PARTS": ["a", "b"]},
        "state": {"mine": 1, "parts": {"a": 1, "b": 1}},
        "const": {"CM_CONST": "c"},
    }


def test_a_hook_sees_the_words_of_the_command_line_also_through_the_input_of_its_caller(home: TemporaryHome) -> None:
    meta = {"new_state_keys": ["cmd", "input"]}
    inner = """
        def preprocess(i):
            i["state"].update({"cmd": i["input"].get("cmd"), "input": i["env"].get("CM_INPUT", "none")})
            return {"return": 0}
    """
    outer = """
        def preprocess(i):
            asked = {"action": "run", "automation": "script", "tags": "get,inner", "input": i["input"], "quiet": True}
            r = i["automation"].cmind.access({**asked, "state": i["state"]})
            return {"return": r["return"], "error": r.get("error")}
    """
    home.recipe("get-inner", meta, customize=inner)
    home.recipe("get-outer", meta, customize=outer)
    home.recipe("get-top", {**meta, "deps": [{"tags": "get,inner"}]})
    words = ["--tags=get,outer", "--quiet", "--out=json"]
    assert home.cm("run", "script", *words).answer["new_state"] == {"cmd": words, "input": "none"}
    assert home.run_cm("get,top").answer["new_state"] == {"cmd": None, "input": "none"}


def test_the_error_of_a_recipe_run_through_cmind_passes_with_its_chain_once(home: TemporaryHome) -> None:
    home.recipe("get-inner", {"cache": True}, run_sh="echo inner trouble; exit 9")
    home.recipe("get-outer", customize=NESTED)
    home.recipe("get-top", {"deps": [{"tags": "get,outer"}]})
    error = plain_error(home.run_cm("get,top"), 2)
    told(error, "failed with exit code 9", "chain: get-top -> get-outer -> get-inner", "inner trouble", "log:")
    assert error.count("chain:") == 1
    assert error.count("hint:") == 1


# --- signals ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_its_children_and_leaves_no_finished_entry(
    home: TemporaryHome, number: signal.Signals, code: int
) -> None:
    home.recipe("get-x", {"cache": True}, run_sh=LEAVES_A_PID)
    child = home.start_run("get,x", env={"PID_FOLDER": str(home.folder)})
    pid_file = home.folder / "sleep.pid"
    wait_until(lambda: pid_file.exists() and pid_file.read_text(encoding="utf-8").strip(), "run.sh to start")
    pids = [int((home.folder / f"{name}.pid").read_text(encoding="utf-8")) for name in ("script", "sleep")]
    assert all(is_alive(pid) for pid in pids)
    os.kill(child.pid, number)
    done = finish(child)
    assert plain_error(done, code).startswith(f"interrupted by {number.name} in get-x. To resume: cm resume script ")
    assert not any(is_alive(pid) for pid in pids)
    assert [entry["tags"][0] for entry in home.entries()] == ["tmp"]


# --- the rest of the door ---


def test_values_from_the_command_line_are_data_and_never_run(home: TemporaryHome) -> None:
    home.write_cmr(values="literal")
    value = "a \"q\" 's' $(touch pwned) `touch pwned` $HOME ; touch pwned # \\ = ü \t|"
    home.recipe("get-x", {"new_env_keys": ["CM_BACK"]}, run_sh="""printf 'CM_BACK=%s\\n' "$CM_V" > tmp-run-env.out""")
    done = home.run_cm("get,x", f"--env.CM_V={value}")
    assert done.answer["new_env"] == {"CM_BACK": value}
    assert not list(home.folder.rglob("pwned"))


def test_find_script_prints_the_folders_of_what_fits(home: TemporaryHome) -> None:
    folder = home.recipe("get-x", {"variations": {"v": {}}})
    for word, found in (("get,x", [folder]), ("get,x,_v", [folder]), ("get,x,_w", [])):
        assert folders(home.cm("find", "script", f"--tags={word}")) == found, word
    assert folders(home.cm("find", "script", "get-x")) == [folder]
