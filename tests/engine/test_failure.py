"""What a user sees of a failure: chain, command, end in words, last lines, one suggestion, the line to run again."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import Finished, TemporaryHome, finish, is_alive, wait_until
from recipe_engine.disk.locks import is_locked
from recipe_engine.provenance.lockfile import LockMismatch
from recipe_engine.rules.errors import HookFailed, Interrupted, RecipeError, RequestError, ScriptFailed
from recipe_engine.running.failure import script_failure
from recipe_engine.running.process import Ended, MemoryFacts


def failure(ended: Ended, folder: Path, *files: str) -> ScriptFailed:
    return script_failure("get-x", Path("/r/script/get-x/run.sh"), folder, ended, files)


def test_the_last_lines_of_standard_error_are_shown_and_not_the_chatter(tmp_path: Path) -> None:
    error = failure(Ended(3, ("much", "chatter"), ("why",)), tmp_path)
    assert (error.output_title, error.output) == ("last lines of its standard error", ("why",))
    assert error.message == "get-x: run.sh failed with exit code 3"
    silent = failure(Ended(3, ("much", "chatter"), ()), tmp_path)
    assert (silent.output_title, silent.output) == ("last lines of its standard output", ("much", "chatter"))


def test_the_hint_of_another_program_is_not_the_recipes(tmp_path: Path) -> None:
    lines = ("No space left on device", "hint: Updates were rejected", "hint: because the tip is behind")
    error = failure(Ended(1, (), lines), tmp_path)
    assert error.output == lines
    assert error.hint.startswith("free disk space")


def test_a_traceback_is_left_out_where_the_reason_is_known(tmp_path: Path) -> None:
    trace = ("Traceback (most recent call last):", '  File "x.py", line 1, in <module>', "    write()", "    ^^^^^^^")
    full = "OSError: [Errno 28] No space left on device"
    chain = ("", "During handling of the above exception, another exception occurred:", "")
    assert failure(Ended(1, (), ("begins", *trace, full, "ends")), tmp_path).output == ("begins", full, "ends")
    assert failure(Ended(1, (), (*trace[1:], full, *chain, *trace, "E: no")), tmp_path).output == (full, "", "E: no")
    unknown = (*trace, "KeyError: 'x'")
    assert failure(Ended(1, (), unknown), tmp_path).output == unknown


@pytest.mark.parametrize(
    ("ended", "hint"),
    [
        (Ended(-9, (), (), MemoryFacts(True, ("memory: x",))), "out of memory"),
        (
            Ended(137, (), (), MemoryFacts(False)),
            "SIGKILL means out of memory (sent by the kernel), or a limit from outside",
        ),
        (Ended(-9, (), ("No space left on device",)), "SIGKILL means"),
        (Ended(139, (), ()), "crashed on an invalid memory access"),
        (Ended(-4, (), ()), "instructions that this CPU does not have"),
        (Ended(143, (), ("no reason",)), "stopped from outside (kill, a batch system"),
        (Ended(-15, (), ("No space left on device",)), "free disk space"),
        (Ended(127, (), ("run.sh: line 1: cmake: command not found",)), "install the program cmake, or add its folder"),
        (
            Ended(1, (), ("run.sh: line 1: cmake: command not found", "oh")),
            "install the program cmake, or add its folder",
        ),
        (Ended(1, (), ("x: command not found", "No space left on device")), "free disk space"),
        (Ended(127, (), ("bash: line 1: x: command not found", "No space left on device")), "install the program x"),
        (Ended(1, (), ("No space left on device",)), "free disk space"),
        (Ended(1, ("Address already in use",), ()), "another program listens"),
        (Ended(1, (), ("nobody knows",)), "The command above reruns it"),
        (
            Ended(
                1,
                ("harness: error: the server said: out of memory", "harness: hint: check the server's log", "end"),
                (),
            ),
            "check the server's log",
        ),
        (Ended(1, (), ("make_it.py: No space left on device", "hint: buy a disk")), "buy a disk"),
    ],
)
def test_there_is_one_suggestion(ended: Ended, hint: str, tmp_path: Path) -> None:
    error = failure(ended, tmp_path)
    assert hint in error.hint
    assert error.describe().count("hint:") == 1


def test_the_whole_text_has_every_part_in_order() -> None:
    error = RecipeError("it failed", hint="try this", trace=("get-a", "get-b"), log_path="/log.txt")
    error.command, error.notes = "cd /x && bash ./tmp-run.sh", ("memory: 1 GB",)
    error.output, error.output_title = ("why", "so"), "last lines"
    error.rerun, error.left_out, error.run_id = "cm run script --tags=get,b", ("--t (a secret)",), "2026-ab"
    facts = (
        "it failed\n  chain: get-a -> get-b\n  command: cd /x && bash ./tmp-run.sh\n  memory: 1 GB\n  last lines:\n"
        "    why\n    so\n  log: /log.txt\n  hint: try this\n"
    )
    left_out = "    not included: --t (a secret)"
    assert error.describe() == f"{facts}  resume: cm resume script 2026-ab\n{left_out}"
    error.shows_step, error.given, error.given_left_out = True, "cm run script --tags=get,a", ()
    assert error.describe() == (
        f"{facts}  again: cm run script --tags=get,a\n  step alone: cm run script --tags=get,b\n{left_out}\n"
        "  resume: cm resume script 2026-ab"
    )
    assert error.last_words == "so"
    assert RecipeError("a\nb ").last_words == "b"


@pytest.mark.parametrize("kind", [RequestError, LockMismatch])
def test_a_request_that_never_succeeds_is_not_resumed(kind: type[RecipeError]) -> None:
    error = kind("x is not one of its values", hint="give y")
    error.rerun, error.run_id, error.resume = "cm run script --tags=get,b", "2026-ab", "cm run script --resume=all"
    assert error.describe().splitlines()[-2:] == ["  hint: give y", "  again: cm run script --tags=get,b"]
    error.hint, error.left_out = "cm help script get-x", ("--t (a secret)",)
    assert error.describe().splitlines()[-1] == "  hint: cm help script get-x", (
        "no command that lacks anything is shown"
    )


@pytest.mark.parametrize(
    ("hint", "run_id", "resume", "last"),
    [
        ("try this", "", "", "again: cm run script --tags=get,b"),
        ("try this", "2026-ab", "", "resume: cm resume script 2026-ab"),
        ("try this", "2026-ab", "cm run script --tags=all --resume", "resume: cm run script --tags=all --resume"),
        ("cm run script --tags=get,c", "2026-ab", "", "hint: cm run script --tags=get,c"),
        ("", "", "", "again: cm run script --tags=get,b"),
    ],
)
def test_one_command_comes_next(hint: str, run_id: str, resume: str, last: str) -> None:
    error = RecipeError("it failed", hint=hint)
    error.rerun, error.run_id, error.resume = "cm run script --tags=get,b", run_id, resume
    text = error.describe()
    assert text.splitlines()[-1] == f"  {last}"
    assert text.count("cm run script") + text.count("cm resume script") == 1


# --- whole runs in this process ---


CERTIFICATE, NO_FILE = "SSL certificate problem: self-signed", "/x/run.sh: line 3: /opt/tool: No such file or directory"


@pytest.mark.parametrize(
    ("status", "lines", "program"),
    [
        (127, (CERTIFICATE, "bash: cmake: command not found"), "cmake"),
        (1, (CERTIFICATE, "bash: cmake: command not found"), ""),
        (1, ("bash: cmake: command not found",), "cmake"),
        (127, (NO_FILE,), "/opt/tool"),
        (1, (NO_FILE,), ""),
    ],
)
def test_a_missing_program_is_the_reason_where_the_exit_code_says_so_or_nothing_else_is_known(
    tmp_path: Path, status: int, lines: tuple[str, ...], program: str
) -> None:
    error = failure(Ended(status, (), lines), tmp_path)
    assert error.missing_program == program
    assert (error.hint == f"install the program {program}, or add its folder to PATH") == bool(program)


def failing(home: TemporaryHome, tags: str, **i: Any) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        home.run(tags, **i)
    return caught.value


def test_a_missing_program_names_the_recipe_that_gives_it(home: TemporaryHome) -> None:
    home.recipe("get-thing", run_sh="nosuchmake --version")
    error = failing(home, "get,thing")
    assert error.hint == "install the program nosuchmake, or add its folder to PATH"
    assert "failed with exit code 127 (a program was not found)" in error.message
    home.recipe("get-nosuchmake")
    hint = failing(home, "get,thing").hint
    assert hint == "the program nosuchmake is missing. To get it: cm run script --tags=get,nosuchmake"


def test_a_program_that_cannot_be_started_is_said_so(home: TemporaryHome) -> None:
    home.recipe("get-thing", run_sh="echo data > data; ./data")
    error = failing(home, "get,thing")
    assert "failed with exit code 126 (a program was found but could not be started)" in error.message
    assert "ls -ld" in error.hint


VALUES = {
    "CM_QUOTE": 'it\'s "x"',
    "CM_SHELL": "$(touch evil) `touch evil` ;& #",
    "CM_EQUALS": "a=b,c=d",
    "CM_LINES": "one\ntwo",
}


def test_the_line_that_runs_the_failed_part_again_gives_it_the_same_values(home: TemporaryHome) -> None:
    home.recipe("detect-values", {"env": VALUES, "new_env_keys": ["CM_*"]})
    show = "; ".join(f'printf "%s\\n" "${key}"' for key in VALUES)
    run_sh = f'exec > "$CM_TMP_CURRENT_PATH/seen"; {show}; echo "$CM_SIZE"; echo $PATH | cut -d: -f1; exit 3'
    home.recipe("get-thing", {"cache": True, "input_mapping": {"size": "CM_SIZE"}}, run_sh=run_sh)
    deps = [{"tags": "detect,values"}, {"tags": "get,thing", "size": "<<<CM_BIG>>>", "env": {"+PATH": ["/first dir"]}}]
    home.recipe("build-all", {"deps": deps, "input_mapping": {"big": "CM_BIG"}, "default_env": {"CM_BIG": "7 l"}})
    error = failing(home, "build,all")
    assert error.trace == ("build-all", "get-thing")
    first = (home.work / "seen").read_text()
    assert first.splitlines()[-1] == "/first dir"
    (home.work / "seen").unlink()
    words = shlex.split(error.rerun)
    assert words[:4] == ["cm", "run", "script", "--tags=get,thing"]
    again = home.cm(*words[1:])
    assert again.code == 2
    assert (home.work / "seen").read_text() == first
    assert not list(home.folder.rglob("evil"))


def test_a_hook_that_fails_for_a_known_reason_gets_a_suggestion_and_one_with_its_own_hint_keeps_it(
    home: TemporaryHome,
) -> None:
    home.recipe("get-x", customize="def preprocess(i):\n    import no_such_module_at_all\n")
    error = failing(home, "get,x")
    assert "_package.no_such_module_at_all" in error.hint
    assert error.rerun == "cm run script --tags=get,x --quiet"
    answer = '{"return": 1, "error": "No space left on device\\nhint: buy a disk"}'
    home.recipe("get-y", customize=f"def preprocess(i):\n    return {answer}\n")
    error = failing(home, "get,y")
    assert (error.message, error.hint) == ("get-y: No space left on device", "buy a disk")


def test_without_anything_better_the_readme_of_the_recipe_is_the_suggestion(home: TemporaryHome) -> None:
    hook = "def preprocess(i):\n    return {'return': 1, 'error': 'no way'}\n"
    folder = home.recipe("get-x", customize=hook)
    assert failing(home, "get,x").hint == ""
    (folder / "README.md").write_text("# get-x\n")
    assert failing(home, "get,x").hint == f"{folder / 'README.md'} lists the requirements of the recipe"


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        (35072, 137, "SIGKILL"),
        (768, 3, "exit code 3"),
        (256, 1, "1"),
        (99_999_999_999, 231, "(return code 99999999999)"),
    ],
)
def test_a_raw_wait_status_of_a_recipe_is_decoded_and_is_no_success(
    home: TemporaryHome, code: int, exit_code: int, words: str
) -> None:
    home.recipe("get-x", customize=f"def preprocess(i):\n    return {{'return': {code}, 'error': 'child failed'}}\n")
    error = failing(home, "get,x")
    assert isinstance(error, HookFailed)
    assert error.code == exit_code
    assert f"return code {code}" in error.message
    assert words in error.message


def test_a_hint_gives_an_input_by_the_name_that_the_command_has_for_its_env_key(home: TemporaryHome) -> None:
    home.recipe("get-a", {"deps": [{"tags": "get,b"}], "input_mapping": {"size": "CM_SIZE"}})
    home.recipe("get-b", {"deps": [{"tags": "get,c"}]})
    refusal = "def preprocess(i):\n    return {'return': 1, 'error': 'no\\nhint: give --shape=3'}\n"
    home.recipe("get-c", {"input_mapping": {"shape": "CM_SIZE"}}, customize=refusal)
    hints = [failing(home, tags).hint for tags in ("get,a", "get,b", "get,c")]
    assert hints == ["give --size=3", "give --env.CM_SIZE=3", "give --shape=3"]


def test_no_secret_is_in_the_line_or_the_text(home: TemporaryHome) -> None:
    home.recipe("get-x", {"input_mapping": {"my_token": "CM_MY_TOKEN"}}, run_sh='echo "bad $CM_MY_TOKEN" >&2; exit 1')
    error = failing(home, "get,x", my_token="hunter2-hunter2", env={"CM_API_KEY": "0123456789ab"})
    text = error.describe()
    assert "hunter2" not in text
    assert "0123456789ab" not in text
    assert "not included: --my_token (a secret), --env.CM_API_KEY (a secret)" in text
    assert "bad ***" in text


# --- real processes: signals ---

SLOW = 'trap "" TERM; echo $$ > "$CM_TMP_CURRENT_PATH/pid"; sleep 600 & wait'


def interrupted(home: TemporaryHome, number: signal.Signals) -> Finished:
    home.recipe("get-part", {"cache": True}, run_sh="true")
    home.recipe("get-slow", {"cache": True}, run_sh='echo $$ > "$CM_TMP_CURRENT_PATH/pid"; sleep 600 & wait')
    home.recipe("build-all", {"deps": [{"tags": "get,part"}, {"tags": "get,slow"}]})
    child = home.start_run("build,all")
    wait_until(lambda: (home.work / "pid").exists() and (home.work / "pid").read_text().strip(), "run.sh")
    os.kill(child.pid, number)
    return finish(child)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_children_frees_the_locks_and_says_how_to_go_on(
    home: TemporaryHome, number: signal.Signals, code: int
) -> None:
    done = interrupted(home, number)
    assert done.code == code
    text = done.answer["error"]
    assert text.startswith(f"interrupted by {number.name} in build-all -> get-slow. To resume: cm resume script 2")
    assert "\n" not in text
    assert "Traceback" not in done.stderr + done.stdout
    pid = int((home.work / "pid").read_text())
    wait_until(lambda: not is_alive(pid), "the end of the script")
    locks = home.store / ".locks"
    assert [path for path in locks.iterdir() if path.suffix == ".lock" and is_locked(path)] == []
    assert ["tmp" in meta["tags"] for meta in home.entries("get-slow")] == [True]
    assert ["tmp" in meta["tags"] for meta in home.entries("get-part")] == [False]


def test_a_signal_reaches_the_top_through_a_recipe_that_runs_recipes(home: TemporaryHome) -> None:
    hook = """
        def preprocess(i):
            r = i["automation"].cmind.access({"action": "run", "automation": "script", "tags": "build,all"})
            return {"return": 0} if r["return"] > 0 else r
    """
    home.recipe("run-many", customize=hook)
    home.recipe("get-slow", {"cache": True}, run_sh='echo $$ > "$CM_TMP_CURRENT_PATH/pid"; sleep 600 & wait')
    home.recipe("build-all", {"deps": [{"tags": "get,slow"}]})
    child = home.start_run("run,many")
    wait_until(lambda: (home.work / "pid").exists() and (home.work / "pid").read_text().strip(), "run.sh")
    os.kill(child.pid, signal.SIGINT)
    done = finish(child)
    assert done.code == 130
    assert "in run-many -> build-all -> get-slow." in done.answer["error"]


def test_ctrl_c_in_a_terminal_ends_all_that_the_script_started(home: TemporaryHome) -> None:
    import pty

    home.recipe("get-slow", {"cache": True}, run_sh=SLOW)
    controller, terminal = pty.openpty()
    words = ["setsid", "--ctty", "--wait", str(Path(sys.executable).parent / "cm")]
    words += ["run", "script", "--tags=get,slow", "--quiet"]
    child = subprocess.Popen(
        words, cwd=home.work, env=home.process_env(), stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(terminal)
    wait_until(lambda: (home.work / "pid").exists() and (home.work / "pid").read_text().strip(), "run.sh")
    pid = int((home.work / "pid").read_text())
    os.write(controller, b"\x03")
    _, errors = child.communicate(timeout=60)
    os.close(controller)
    assert child.returncode == 130, errors
    assert b"interrupted by SIGINT in get-slow" in errors
    wait_until(lambda: not is_alive(pid), "the end of a script that ignores SIGTERM")


def test_the_traceback_is_shown_on_request_only(home: TemporaryHome) -> None:
    home.recipe("get-x", run_sh="exit 3")
    assert "Traceback" not in home.cm("run", "script", "--tags=get,x").stderr
    assert "Traceback" in home.cm("run", "script", "--tags=get,x", "--debug").stderr


def test_an_interruption_without_a_journal_says_to_give_the_command_again() -> None:
    assert Interrupted("SIGINT", 130).describe() == "interrupted by SIGINT. To resume: give the same command"


@pytest.mark.parametrize(
    ("entry", "flag"),
    [
        ({"names": ["model", "m"]}, "--adr.model.path"),
        ({"names": ["m", "model"]}, "--adr.m.path"),
        ({}, "--env.CM_MODEL_PATH"),
    ],
)
def test_the_hint_of_a_dependency_names_its_input_as_the_users_command_gives_it(
    home: TemporaryHome, entry: dict[str, object], flag: str
) -> None:
    customize = "def preprocess(i):\n    return {'return': 1, 'error': 'no file\\nhint: give --path=FILE'}\n"
    home.recipe("get-model", {"input_mapping": {"path": "CM_MODEL_PATH"}}, customize=customize)
    home.recipe("main-step", {"deps": [{"tags": "get,model", **entry}]})
    with pytest.raises(HookFailed) as caught:
        home.run("main,step")
    assert f"hint: give {flag}=FILE" in caught.value.describe()
    with pytest.raises(HookFailed) as caught:
        home.run("get,model")
    assert "hint: give --path=FILE" in caught.value.describe()


def test_the_name_of_a_dependency_that_the_command_uses_is_the_one_in_the_hint(home: TemporaryHome) -> None:
    customize = "def preprocess(i):\n    return {'return': 1, 'error': 'no file\\nhint: give --path=FILE'}\n"
    home.recipe("get-model", {"input_mapping": {"path": "CM_MODEL_PATH", "size": "CM_SIZE"}}, customize=customize)
    home.recipe("main-step", {"deps": [{"tags": "get,model", "names": ["model", "m"]}]})
    with pytest.raises(HookFailed) as caught:
        home.run("main,step", adr={"m": {"size": "3"}})
    assert "hint: give --adr.m.path=FILE" in caught.value.describe()
