"""What a killed or failing recipe leaves running must never write into the entry that the next run makes."""

import os
import signal
from pathlib import Path

import pytest
from helpers import TemporaryHome, finish, is_alive, wait_until

META = {"cache": True, "new_env_keys": ["CM_THING_FILE"]}


def finish_thing(home: TemporaryHome) -> Path:
    """Runs get-thing to the end and gives its file."""
    done = home.run_cm("get,thing", "--lock_timeout=30")
    assert done.code == 0, done.stderr
    return Path(done.answer["new_env"]["CM_THING_FILE"])


SCRIPT = """
    if [ ! -e "$CM_TMP_CURRENT_PATH/second" ]; then
      touch "$CM_TMP_CURRENT_PATH/second"
      ( for turn in $(seq 3000); do [ -e "$CM_TMP_CURRENT_PATH/go" ] && break; sleep 0.02; done
        echo orphan >> thing.txt
        echo $$ > "$CM_TMP_CURRENT_PATH/late" ) &
      echo $! > "$CM_TMP_CURRENT_PATH/orphan"
      %s
    fi
    echo right > thing.txt
    echo "CM_THING_FILE=$PWD/thing.txt" > tmp-run-env.out
"""


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_what_a_failed_script_left_running_is_ended_with_it(home: TemporaryHome, end: str) -> None:
    home.recipe("get-thing", META, run_sh=SCRIPT % end)
    failed = home.run_cm("get,thing")
    assert failed.code == 2
    orphan = int((home.work / "orphan").read_text())
    path = finish_thing(home)
    (home.work / "go").touch()
    wait_until(lambda: not is_alive(orphan), "the end of the orphan")
    assert path.read_text() == "right\n"


HOOK = """
    import os, subprocess

    WAIT = 'echo $$ > orphan.pid; mv orphan.pid "$HOME_WORK/orphan";' \\
        ' for turn in $(seq 3000); do [ -e "$HOME_WORK/go" ] && break; sleep 0.02; done; echo orphan >> thing.txt'

    def preprocess(i):
        work = i["env"]["CM_TMP_CURRENT_PATH"]
        if not os.path.exists(work + "/orphan"):
            subprocess.run(["bash", "-c", WAIT], env={**os.environ, "HOME_WORK": work})
        with open("thing.txt", "w") as file:
            file.write("right\\n")
        i["env"]["CM_THING_FILE"] = os.path.abspath("thing.txt")
        return {"return": 0}
"""


def test_while_a_process_that_a_hook_of_a_killed_run_started_runs_on_nobody_touches_its_entry(
    home: TemporaryHome,
) -> None:
    home.recipe("get-thing", META, customize=HOOK)
    child = home.start_run("get,thing")
    wait_until((home.work / "orphan").exists, "the process of the hook")
    orphan = int((home.work / "orphan").read_text())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    impatient = home.run_cm("get,thing", "--lock_timeout=0.3")
    assert impatient.code == 1
    assert f"get-thing is in use by process {child.pid}" in impatient.answer["error"]
    assert is_alive(orphan)
    second = home.start_run("get,thing")
    (home.work / "go").touch()
    done = finish(second)
    assert done.code == 0, done.stderr
    assert not is_alive(orphan)
    assert Path(done.answer["new_env"]["CM_THING_FILE"]).read_text() == "right\n"
