"""Several processes of ``cm`` at once: one makes, all get it; and nobody reads another's scratch files."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers import Finished, TemporaryHome, cm_command, finish, shell_wait, wait_until

TOGETHER = 5
COUNT = 'echo run >> "$CM_TMP_CURRENT_PATH/runs"'


@pytest.fixture(autouse=True)
def settled(home: TemporaryHome) -> None:
    """A home where ``cm`` has run once: cmind's own first start, before it calls the engine, bears no company."""
    assert home.cm("version", "core").code == 0


def runs(home: TemporaryHome) -> int:
    """How many times scripts with ``COUNT`` in them have run."""
    path = home.work / "runs"
    return len(path.read_text().split()) if path.exists() else 0


def all_at_once(home: TemporaryHome, *words: str, **options: Any) -> list[Finished]:
    """Starts the same run many times before any of them has ended, and waits for all."""
    children = [home.start_run("get,x", *words, **options) for _ in range(TOGETHER)]
    return [finish(child) for child in children]


def test_many_processes_that_want_the_same_recipe_run_it_once_and_all_get_it(home: TemporaryHome) -> None:
    wait = shell_wait(f'[ "$(ls "$CM_TMP_CURRENT_PATH/started" | wc -l)" -ge {TOGETHER} ]')
    run_sh = f"{COUNT}\n{wait}\nhead -c 100000 /dev/zero > data; echo CM_X=$RANDOM$RANDOM > tmp-run-env.out"
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['data']}\n"
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_X"]}, run_sh=run_sh, customize=customize)
    home.recipe(
        "mark-start",
        customize="""
        import os, pathlib
        def preprocess(i):
            folder = pathlib.Path(i["env"]["CM_TMP_CURRENT_PATH"], "started")
            folder.mkdir(exist_ok=True)
            (folder / str(os.getpid())).touch()
            return {"return": 0}
    """,
    )
    home.recipe("run-both", {"deps": [{"tags": "mark,start"}, {"tags": "get,x"}], "new_env_keys": ["CM_X"]})
    children = [home.start_run("run,both") for _ in range(TOGETHER)]
    done = [finish(child) for child in children]
    assert [one.code for one in done] == [0] * TOGETHER, done
    assert len(list((home.work / "started").iterdir())) == TOGETHER, "all must have begun before the first could end"
    assert runs(home) == 1
    assert len({json.dumps(one.answer["new_env"]) for one in done}) == 1
    assert done[0].answer["new_env"]["CM_X"]
    (entry,) = home.entries()
    assert [path for path in home.store.iterdir() if path.is_dir() and path.name != ".locks"] == [entry["path"]]
    assert list((home.store / ".locks").iterdir()) == []
    told = [line for one in done for line in one.stderr.splitlines()]
    assert sum("* get-x: running" in line for line in told) == 1
    assert sum("= get-x: reused from the cache" in line for line in told) == TOGETHER - 1


def test_when_the_first_fails_the_next_in_line_tries_and_all_get_its_result(home: TemporaryHome) -> None:
    run_sh = COUNT + '\n[ "$(wc -l < "$CM_TMP_CURRENT_PATH/runs")" -gt 1 ] || exit 3'
    home.recipe("get-x", {"cache": True}, run_sh=run_sh)
    done = all_at_once(home)
    assert sorted(one.code for one in done) == [0] * (TOGETHER - 1) + [2]
    assert runs(home) == 2
    assert len(home.entries()) == 1


def test_different_variations_are_made_side_by_side_and_none_is_lost(home: TemporaryHome) -> None:
    meta = {"cache": True, "variations": {"n.#": {"env": {"CM_N": "#"}}}, "new_env_keys": ["CM_N"]}
    home.recipe("get-x", meta, run_sh=COUNT)
    done = [finish(child) for child in [home.start_run(f"get,x,_n.{number}") for number in range(TOGETHER)]]
    assert [one.answer["new_env"]["CM_N"] for one in done] == [str(number) for number in range(TOGETHER)]
    assert len([entry for entry in home.entries() if "tmp" not in entry["tags"]]) == TOGETHER
    assert runs(home) == TOGETHER


def test_new_asked_for_many_times_at_once_makes_as_many_entries(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True, "new_env_keys": ["CM_PWD"]}, run_sh='echo "CM_PWD=$PWD" > tmp-run-env.out')
    done = all_at_once(home, "--new")
    places = {one.answer["new_env"]["CM_PWD"] for one in done}
    assert len(places) == TOGETHER
    assert places == {str(entry["path"]) for entry in home.entries()}


def test_the_first_reading_of_the_recipes_may_happen_many_times_at_once(home: TemporaryHome) -> None:
    home.is_indexed = True
    home.recipe("get-x", {"env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    assert [one.answer["new_env"] for one in all_at_once(home)] == [{"CM_X": "1"}] * TOGETHER


# --- the same folder, uncached ---

SLOW_ECHO = """
    echo "CM_MINE=$CM_IN" > tmp-run-env.out
    echo "{\\"mine\\": \\"$CM_IN\\"}" > tmp-run-state.json
    echo "version $CM_IN" > tmp-ver.out
    touch "began-$CM_IN"
    sleep 0.1
"""
READ_VERSION = """
    def postprocess(i):
        return i["automation"].parse_version(
            {"match_text": r"version (.*)", "group_number": 1, "env_key": "CM_FROM_FILE", "which_env": i["env"]}
        )
"""


def test_uncached_recipes_in_one_folder_do_not_mix_their_scratch_files(home: TemporaryHome) -> None:
    meta = {"new_env_keys": ["CM_MINE", "CM_FROM_FILE"], "new_state_keys": ["mine"]}
    home.recipe("get-x", meta, run_sh=SLOW_ECHO, customize=READ_VERSION)
    numbers = [str(number) for number in range(TOGETHER)]
    done = [finish(child) for child in [home.start_run("get,x", f"--env.CM_IN={number}") for number in numbers]]
    assert [one.code for one in done] == [0] * TOGETHER, [one.stdout for one in done]
    assert [one.answer["new_env"]["CM_MINE"] for one in done] == numbers
    assert [one.answer["new_env"]["CM_FROM_FILE"] for one in done] == numbers
    assert [one.answer["new_state"] for one in done] == [{"mine": number} for number in numbers]
    assert sorted(path.name for path in home.work.iterdir()) == [f"began-{number}" for number in numbers]


def test_who_waits_for_a_folder_is_told_and_may_give_up(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="touch began; " + shell_wait("[ -e go ]"))
    first = home.start_run("get,x")
    wait_until((home.work / "began").exists, "the first run")
    impatient = home.run_cm("get,x", "--lock_timeout=0.2")
    assert impatient.code == 1
    said = r"process \d+ since 20\d\d-\S+Z: cm run script --tags=get,x"
    holder = said if Path("/proc/locks").exists() else "another run"
    assert re.search(f"the folder {home.work} is in use by {holder}", impatient.answer["error"])
    assert "run from another folder" in impatient.answer["error"]
    assert re.search(
        f"waiting for the folder {home.work}: in use by {holder}.*\n  hint: wait until it finishes", impatient.stderr
    )
    (home.work / "go").touch()
    assert finish(first).code == 0


def test_recipes_without_scripts_and_other_folders_do_not_wait(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="touch began; " + shell_wait("[ -e go ]"))
    home.recipe("get-y", customize="def preprocess(i):\n    return {'return': 0}\n")
    first = home.start_run("get,x")
    wait_until((home.work / "began").exists, "the first run")
    assert home.run_cm("get,y", "--lock_timeout=0").code == 0
    other = home.folder / "other"
    other.mkdir()
    (other / "go").touch()
    assert home.run_cm("get,x", "--lock_timeout=0", cwd=other).code == 0
    assert first.poll() is None
    (home.work / "go").touch()
    assert finish(first).code == 0


def cm_inside(home: TemporaryHome, tags: str) -> str:
    """A line of bash that runs ``cm`` as a child of a recipe's script, and keeps its answer in a file."""
    words = cm_command(["run", "script", f"--tags={tags}", "--quiet", "--out=json", "--lock_timeout=20"])
    return " ".join(f"'{word}'" for word in words) + f" > '{home.folder}/inner.json'"


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_script_may_run_cm_in_its_own_folder(home: TemporaryHome, is_cached: bool) -> None:
    home.recipe("get-inner", {"new_env_keys": ["CM_PWD"]}, run_sh='echo "CM_PWD=$PWD" > tmp-run-env.out')
    run_sh = cm_inside(home, "get,inner") + "\necho CM_OUTER=1 > tmp-run-env.out"
    home.recipe("get-x", {"cache": is_cached, "new_env_keys": ["CM_OUTER"]}, run_sh=run_sh)
    done = home.run_cm("get,x")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"] == {"CM_OUTER": "1"}
    place = home.entry("get-x") if is_cached else home.work
    assert json.loads((home.folder / "inner.json").read_text())["new_env"] == {"CM_PWD": str(place)}


def test_a_script_that_runs_cm_for_the_entry_it_is_making_is_an_error_and_no_hang(home: TemporaryHome) -> None:
    home.recipe("get-x", {"cache": True}, run_sh=cm_inside(home, "get,x"))
    done = home.run_cm("get,x")
    assert done.code == 2
    inner = json.loads((home.folder / "inner.json").read_text())
    assert inner["return"] == 1
    assert "get-x needs, through a process that it started, the entry it is building" in inner["error"]


def test_a_server_that_a_script_leaves_running_keeps_no_folder_and_no_entry(home: TemporaryHome) -> None:
    run_sh = 'nohup sleep 600 > /dev/null 2>&1 &\necho $! >> "$CM_TMP_CURRENT_PATH/servers"'
    home.recipe("get-x", run_sh=run_sh)
    home.recipe("get-y", {"cache": True}, run_sh=run_sh)
    try:
        for _ in range(2):
            assert home.run_cm("get,x", "--lock_timeout=20").code == 0
            assert home.run_cm("get,y", "--lock_timeout=20", "--renew").code == 0
    finally:
        for pid in (home.work / "servers").read_text().split():
            stop(int(pid))


def stop(pid: int) -> None:
    """Ends a process that a recipe left."""
    assert Path(f"/proc/{pid}").exists(), "the server must still run"
    os.kill(pid, signal.SIGKILL)
