"""What a shell or a machine may do to ``cm``: an error in plain words, or no error at all, never "internal error"."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import Finished, TemporaryHome, cm_command, run_to_end, shell_wait
from recipe_engine.actions.adapter import answer_cm
from recipe_engine.actions.cache_actions import gc_action
from recipe_engine.actions.cache_report import show_action
from recipe_engine.explaining.explain import explain_cache_action

LONG = "x" * 5000


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporaryHome]:
    """A home with get-thing in the cache, and a recipe that prints; its indexes are written."""
    home = TemporaryHome(tmp_path_factory.mktemp("circumstances"))
    write_recipes(home)
    assert home.cm("show", "cache").code == 0
    yield home
    home.close()


def write_recipes(home: TemporaryHome) -> None:
    home.recipe("get-thing", {"cache": True, "new_env_keys": ["CM_*"]}, run_sh="echo CM_THING=1 > tmp-run-env.out")
    home.recipe("fail-thing", run_sh="exit 3")
    home.recipe("print-thing", run_sh="echo unusual''-words")
    home.run("get,thing")


def in_shell(home: TemporaryHome, before: str, *words: str, after: str = "") -> Finished:
    """Runs ``cm`` in a shell after some commands, with redirections or a pipe behind it."""
    line = f"{before} {shlex.join(cm_command(words))} {after}"
    return run_to_end(["bash", "-c", line], home.work, home.process_env())


RUN = ("run", "script", "--tags=print,thing", "--quiet")
PLAN = ("plan", "script", "--tags=print,thing")
SHOW = ("show", "cache")
_IGNORE = (
    "import os, signal, sys; signal.signal(signal.SIGCHLD, 1); e = sys.executable; os.execv(e, [e, *sys.argv[1:]])"
)
IGNORING_CHILDREN = shlex.join([sys.executable, "-c", _IGNORE])


def test_in_a_folder_that_was_deleted_the_error_says_so(ready: TemporaryHome) -> None:
    failed = in_shell(ready, 'mkdir gone && cd gone && rmdir "$PWD" &&', *RUN)
    assert failed.code == 1
    assert "the current folder was deleted" in failed.stderr
    assert in_shell(ready, 'mkdir gone && cd gone && rmdir "$PWD" &&', "show", "cache").code == 0


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("words", [RUN, SHOW], ids=["run", "show"])
def test_closed_streams_are_no_error(ready: TemporaryHome, streams: str, words: tuple[str, ...]) -> None:
    assert in_shell(ready, "", *words, after=streams).code == 0


def test_a_failure_is_one_too_where_the_caller_ignores_the_end_of_children(ready: TemporaryHome) -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    failed = in_shell(
        ready, shlex.join([sys.executable, "-c", ignoring]), "run", "script", "--tags=fail,thing", "--quiet"
    )
    assert failed.code == 2 and "failed with exit code 3" in failed.stderr


def test_what_a_script_prints_never_reaches_a_file_that_got_the_number_of_a_closed_stream(ready: TemporaryHome) -> None:
    assert in_shell(ready, "", *RUN, after=">&-").code == 0
    written = [path for path in ready.path.rglob("*") if path.is_file() and b"unusual-words" in path.read_bytes()]
    assert written == []


@pytest.mark.parametrize(
    "words", [PLAN, SHOW, (*RUN, "--out=json"), (*SHOW, "-j")], ids=lambda words: words[0] + words[-1]
)
def test_a_reader_that_ends_early_is_named(ready: TemporaryHome, words: tuple[str, ...]) -> None:
    wait = "set -o pipefail; rm -f closed; { " + shell_wait("[ -e closed ]") + ";"
    failed = in_shell(ready, wait, *words, after="; } | { exec <&-; touch closed; }")
    assert failed.code == 1
    assert "the program that read standard output ended early" in failed.stderr
    assert "BrokenPipeError" not in failed.stderr


@pytest.mark.parametrize(
    "words", [RUN, PLAN, SHOW, (*RUN, "--out=json"), (*SHOW, "-j")], ids=lambda words: words[0] + words[-1]
)
def test_a_full_disk_behind_standard_output_is_named(ready: TemporaryHome, words: tuple[str, ...]) -> None:
    failed = in_shell(ready, "", *words, after="> /dev/full")
    assert failed.code == 1
    assert "cannot write standard output" in failed.stderr and "Traceback" not in failed.stderr


def test_without_bash_the_program_and_the_path_are_named(ready: TemporaryHome) -> None:
    failed = in_shell(ready, "PATH=/nowhere", *RUN)
    assert failed.code == 2
    assert "the program bash was not found, PATH is '/nowhere'" in failed.stderr
    assert "install bash" in failed.stderr


@pytest.mark.parametrize("count", [6, 10])
def test_too_few_descriptors_are_named(ready: TemporaryHome, count: int) -> None:
    failed = in_shell(ready, f"ulimit -n {count};", *RUN)
    assert failed.code == 1
    assert "Too many open files" in failed.stderr
    assert "ulimit -n" in failed.stderr


@pytest.mark.parametrize(
    "words",
    [("diff", "script", LONG, "b"), ("add", "script", LONG, "--tags=a"), ("doc", "script", f"--output_dir={LONG}")],
    ids=lambda words: words[0],
)
def test_a_name_that_is_too_long_is_named_and_cut(ready: TemporaryHome, words: tuple[str, ...]) -> None:
    failed = ready.cm(*words)
    assert failed.code == 1
    assert "File name too long" in failed.stderr
    assert len(failed.stderr) < 600


def deep(path: Path) -> None:
    path.write_text('{"new_env":' * 100_000 + "1" + "}" * 100_000)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def other_types(path: Path) -> None:
    values = {"new_env": [1], "new_state": "x", "files": {"a": 1}, "request": [], "dependencies": {"a": 1}, "deps": 7}
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("damage", [deep, fifo, other_types], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["_cm.json", "entry.json", "cm-cached-state.json"])
def test_a_damaged_file_of_an_entry_stops_no_command(
    home: TemporaryHome, name: str, damage: Callable[[Path], None]
) -> None:
    write_recipes(home)
    damage(home.entry("get-thing") / name)
    for action in (
        lambda _: home.run("get,thing"),
        lambda _: show_action({"env": True, "out": "con"}, home.engine_home),
        lambda _: explain_cache_action({}, home.engine_home),
        lambda _: gc_action({"dry_run": True}, home.engine_home),
    ):
        answer = answer_cm(action, {}, None)
        assert "internal error" not in str(answer.get("error"))
