"""What a run leaves in the folder of the user: nothing of the engine's own, also while it runs and after Ctrl-C."""

import os
import re
import signal
from pathlib import Path

import pytest
from helpers import TemporaryHome, finish, shell_wait, wait_until

WAITING = 'ls -A > "$CM_SEEN"; touch "$CM_SEEN.done"; ' + shell_wait('[ -e "$CM_SEEN.go" ]')


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def temporary(home: TemporaryHome) -> dict[str, str]:
    """A folder of its own for temporary files."""
    folder = home.folder / "tmp"
    folder.mkdir(exist_ok=True)
    return {"TMPDIR": str(folder)}


@pytest.mark.parametrize("values", ["literal", "cm"])
def test_ctrl_c_leaves_no_file_of_the_engine(home: TemporaryHome, values: str) -> None:
    home.write_cmr(values=values)
    home.recipe("get-x", {"env": {"CM_SEEN": str(home.folder / "seen")}}, run_sh=WAITING)
    child = home.start("run", "script", "get x", env=temporary(home))
    wait_until((home.folder / "seen.done").exists, "the script")
    os.kill(child.pid, signal.SIGINT)
    assert finish(child).code == 130
    assert names(home.work) == []
    assert names(home.folder / "tmp") == []
    during = (home.folder / "seen").read_text().split()
    assert during == ([] if values == "literal" else ["tmp-run.sh", "tmp-state.json"])


def test_a_failure_names_a_command_that_runs_the_script_by_hand(home: TemporaryHome) -> None:
    home.write_cmr(values="literal")
    home.recipe("get-x", {"env": {"CM_WORD": "as it was"}}, run_sh='echo "$CM_WORD: $PWD" >&2; exit 3')
    done = home.cm("run", "script", "get x", env=temporary(home))
    assert done.code == 2
    assert names(home.work) == []
    command = re.search(r"^  command: (.*?)   #", done.stderr, re.MULTILINE)
    assert command is not None
    assert os.popen(f"({command[1]}) 2>&1").read() == f"as it was: {home.work}\n"
    assert home.cm("run", "script", "get x", "--dirty", env=temporary(home)).code == 2
    assert "tmp-run.sh" in names(home.work)


def test_a_hook_that_meets_a_refusal_of_the_system_says_so_without_a_traceback(home: TemporaryHome) -> None:
    hook = "import os\ndef preprocess(i):\n    os.makedirs('/proc/no/such')\n"
    home.recipe("get-x", customize=hook)
    done = home.cm("run", "script", "get x")
    assert done.code == 1
    assert "CM error: get-x: /proc/no: No such file or directory (ENOENT)" in done.stderr
    assert "customize.py" not in done.stderr
    assert "Traceback" in home.cm("run", "script", "get x", "--debug").stderr
