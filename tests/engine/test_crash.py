"""Processes of ``cm`` killed at every moment that matters, and the run after it. All processes are real."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, finish, is_alive, shell_wait, wait_until
from recipe_engine.actions.cache_actions import gc_action
from recipe_engine.disk import locks
from recipe_engine.disk.locks import is_locked

KILLER = """
    import json, os, signal
    _replace = os.replace
    _plan = json.loads(os.environ["KILL_PLAN"])
    _count = 0

    def replace(source, target, **options):
        global _count
        if not str(target).startswith(_plan["below"]):
            return _replace(source, target, **options)
        _count += 1
        with open(_plan["log"], "a") as log:
            log.write(os.path.basename(target) + "\\n")
        if _plan["at"] == f"before {_count}":
            os.kill(os.getpid(), signal.SIGKILL)
        _replace(source, target, **options)
        if _plan["at"] == f"after {_count}":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace
"""
"""A sitecustomize.py: kills its process before or after the n-th file that it puts in place below a folder."""

WRITES = (
    "README.md",
    "CACHEDIR.TAG",
    "_cm.json",
    "tmp-run.sh",
    "tmp-state.json",
    "tmp-env.sh",
    "tmp-env-all.sh",
    "cm-cached-state.json",
    "entry.json",
    "_cm.json",
)
"""Every file that making one entry in an empty cache puts in place, in order."""


def moments(count: int) -> list[Any]:
    """Before and after each of the first writes; right after one, most files are as they are before the next."""
    before = [pytest.param(f"before {number}", marks=pytest.mark.full) for number in range(2, count + 1)]
    return ["before 1", *before, *(f"after {number}" for number in range(1, count + 1))]


THING_META: dict[str, Any] = {"cache": True, "new_env_keys": ["CM_THING_*"]}
THING_HOOKS = """
    import os

    def postprocess(i):
        i["env"]["CM_THING_FILE"] = os.path.abspath("thing.txt")
        return {"return": 0, "version": "1.2"}
"""
THING_RUN = """
    echo run >> "$CM_TMP_CURRENT_PATH/runs"
    [ ! -e junk ] || exit 9
    echo half > junk
    mkdir folder
    echo right > thing.txt
    rm -r junk folder
"""


class KilledHome:
    """A home with the recipe get-thing, and ``cm`` processes that kill themselves as planned."""

    def __init__(self, home: TemporaryHome) -> None:
        self.home = home
        home.recipe("get-thing", THING_META, customize=THING_HOOKS, run_sh=THING_RUN)
        self.site = home.folder / "site"
        self.site.mkdir()
        from textwrap import dedent

        (self.site / "sitecustomize.py").write_text(dedent(KILLER), encoding="utf-8")
        self.log = home.folder / "writes"

    def run(self, at: str, *words: str) -> tuple[int, list[str]]:
        """The exit code of ``cm`` with this plan, and the names that it wrote (the fatal one too)."""
        self.log.unlink(missing_ok=True)
        plan = {"below": str(self.home.store), "log": str(self.log), "at": at}
        env = {"PYTHONPATH": str(self.site), "KILL_PLAN": json.dumps(plan)}
        done = self.home.run_cm("get,thing", *words, env=env)
        return done.code, self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def killed(home: TemporaryHome) -> KilledHome:
    return KilledHome(home)


def runs(home: TemporaryHome) -> int:
    """How often run.sh began."""
    path = home.work / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def assert_right(home: TemporaryHome, *words: str) -> Path:
    """Runs get-thing to the end: the right result, one entry, nothing left of broken-off attempts. Its folder."""
    done = home.run_cm("get,thing", *words)
    assert done.code == 0, done.stderr
    entry = home.entry("get-thing")
    assert done.answer["new_env"] == {"CM_THING_FILE": str(entry / "thing.txt")}
    assert (entry / "thing.txt").read_text() == "right\n"
    assert [meta["path"] for meta in home.entries()] == [entry]
    assert folders(home) == [entry], "a folder of a broken-off attempt is left"
    assert [lock for lock in (home.store / ".locks").iterdir() if lock.suffix != ".lock" or is_locked(lock)] == []
    assert not (entry / "junk").exists()
    return entry


def folders(home: TemporaryHome) -> list[Path]:
    """The folders of the store but that of the locks and an empty trash."""
    kept = [path for path in home.store.iterdir() if path.is_dir() and path.name != ".locks"]
    return [path for path in kept if path.name != ".trash" or any(path.iterdir())]


def scratch_files(folder: Path) -> list[str]:
    """What a broken-off write leaves beside its target."""
    return [path.name for path in folder.rglob(".*.new")]


def test_the_moments_below_are_all_there_are(killed: KilledHome) -> None:
    code, written = killed.run("never")
    assert code == 0
    assert tuple(written) == WRITES


@pytest.mark.parametrize("moment", moments(len(WRITES)))
def test_a_process_killed_at_a_write_of_the_store_leaves_nothing_that_is_trusted_half_made(
    killed: KilledHome, moment: str
) -> None:
    home = killed.home
    code, written = killed.run(moment)
    assert code == -signal.SIGKILL
    assert len(written) == int(moment.split()[1])
    was_finished = moment == f"after {len(WRITES)}"
    entry = assert_right(home)
    assert scratch_files(entry) == []
    had_run = len(written) > WRITES.index("tmp-state.json") + 1
    assert runs(home) == (1 if was_finished or not had_run else 2)


@pytest.mark.parametrize("moment", moments(len(WRITES) - 2))
def test_a_renewal_killed_at_any_write_leaves_the_old_entry_answering_and_after_the_last_one_the_new_entry(
    killed: KilledHome, moment: str
) -> None:
    home = killed.home
    entry = Path(home.run("get,thing")["new_env"]["CM_THING_FILE"]).parent
    code, written = killed.run(moment, "--renew")
    assert code == -signal.SIGKILL
    assert written == list(WRITES[2 : 2 + int(moment.split()[1])])
    n_runs = runs(home)
    answered = Path(home.run("get,thing")["new_env"]["CM_THING_FILE"]).parent
    assert runs(home) == n_runs, "made again"
    assert (answered == entry) is (moment != f"after {len(WRITES) - 2}")
    home.run("get,thing", renew=True)
    gc_action({"f": True}, home.engine_home)
    assert assert_right(home) not in (entry, answered)


@pytest.mark.parametrize("victim", ["process", "group"])
@pytest.mark.parametrize("place", ["run.sh", "preprocess", "postprocess"])
def test_a_kill_in_the_middle_of_a_recipe_is_made_good_by_the_next_run(
    home: TemporaryHome, place: str, victim: str
) -> None:
    wait = f'[ -e "$CM_TMP_CURRENT_PATH/go" ] || {{ echo $$ > "{home.work}/at"; {shell_wait("false")}; }}'
    hook = f"""
        import os, time

        def pause(name):
            with open("{home.work}/order", "a") as order:
                order.write(name + "\\n")
            if name == "{place}" and not os.path.exists("{home.work}/go"):
                open("junk", "w").close()
                open("{home.work}/at", "w").close()
                time.sleep(600)

        def preprocess(i):
            pause("preprocess")
            return {{"return": 0}}

        def postprocess(i):
            pause("postprocess")
            i["env"]["CM_THING_FILE"] = os.path.abspath("thing.txt")
            return {{"return": 0}}
    """
    script = f"{wait if place == 'run.sh' else ':'}\n[ ! -e junk ] || exit 9\necho right > thing.txt\n"
    home.recipe("get-thing", THING_META, customize=hook, run_sh=script)
    child = home.start_run("get,thing")
    wait_until((home.work / "at").exists, f"the recipe in {place}")
    script_pid = wait_until((home.work / "at").read_text, "its pid") if place == "run.sh" else ""
    (home.work / "go").touch()
    if victim == "group":
        if script_pid:  # run.sh leads a group of its own; a shell or a container that dies takes all of them
            os.killpg(os.getpgid(int(script_pid)), signal.SIGKILL)
        os.killpg(child.pid, signal.SIGKILL)
    else:
        os.kill(child.pid, signal.SIGKILL)
        if script_pid:
            os.kill(int(script_pid), signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL or victim == "group"
    unfinished = home.entries("get-thing")
    assert ["tmp" in meta["tags"] for meta in unfinished] == [True]
    assert assert_right(home) == unfinished[0]["path"], "the folder of the broken-off attempt is used again"


def test_half_loaded_files_of_a_killed_attempt_stay_and_all_else_of_it_goes(home: TemporaryHome) -> None:
    run_sh = """
        if [ -e big.bin.part ]; then
          ls -A > "$CM_TMP_CURRENT_PATH/seen"
          cat big.bin.part > thing.txt
          exit 0
        fi
        echo right > big.bin.part
        echo half > other.bin
        mkdir -p folder/below
        kill -9 $PPID $$
    """
    home.recipe("get-thing", THING_META, customize=THING_HOOKS, run_sh=run_sh)
    home.run_cm("get,thing")
    assert (home.entries("get-thing")[0]["path"] / "other.bin").exists()
    done = home.run_cm("get,thing")
    assert done.code == 0, done.stderr
    assert "cleaning up after an attempt that did not finish" in done.stderr
    seen = (home.work / "seen").read_text().split()
    assert "big.bin.part" in seen
    assert not {"other.bin", "folder"} & set(seen)
    assert (home.entry("get-thing") / "thing.txt").read_text() == "right\n"


def test_a_script_that_outlives_its_killed_cm_keeps_the_entry_locked_and_the_next_run_waits_for_it(
    home: TemporaryHome,
) -> None:
    run_sh = f"""
        echo begin >> "{home.work}/story"
        if [ ! -e "{home.work}/pid" ]; then
          echo $$ > "{home.work}/pid"
          {shell_wait(f'[ -e "{home.work}/go" ]')}
          echo orphan > thing.txt
        else
          echo right > thing.txt
        fi
        echo end >> "{home.work}/story"
    """
    home.recipe("get-thing", THING_META, customize=THING_HOOKS, run_sh=run_sh)
    first = home.start_run("get,thing")
    wait_until(lambda: (home.work / "pid").exists() and (home.work / "pid").read_text().strip(), "run.sh")
    orphan = int((home.work / "pid").read_text())
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert is_alive(orphan)

    late = home.run_cm("get,thing", "--lock_timeout=0.2")
    assert late.code == 1
    assert "get-thing is in use by process" in late.stderr + late.stdout
    assert "--lock_timeout" in late.stderr + late.stdout

    second = home.start_run("get,thing")
    said = wait_for_line(second, "waiting for get-thing: in use by")
    assert f"process {first.pid} of" in said
    assert (home.work / "story").read_text().split() == ["begin"]
    (home.work / "go").touch()
    done = finish(second)
    assert done.code == 0, done.stderr
    assert (home.work / "story").read_text().split() == ["begin", "end", "begin", "end"]
    assert (home.entry("get-thing") / "thing.txt").read_text() == "right\n"


def wait_for_line(child: subprocess.Popen[bytes], text: str) -> str:
    """The line of standard error that holds ``text``; ends the test's wait when the process ends without it."""
    assert child.stderr is not None
    for line in child.stderr:
        if text.encode() in line:
            return line.decode()
    pytest.fail(f"the process ended without saying: {text}")


def test_a_removal_that_was_killed_leaves_no_entry(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:

    home.recipe("get-thing", THING_META, customize=THING_HOOKS, run_sh=THING_RUN)
    old = Path(home.run("get,thing")["new_env"]["CM_THING_FILE"]).parent
    die: Callable[[Path], None] = lambda path: (_ for _ in ()).throw(KeyboardInterrupt)  # noqa: E731
    monkeypatch.setattr(locks, "remove_tree", die)
    opened = home.open_store()
    with pytest.raises(KeyboardInterrupt):
        opened.remove(opened.entries()[0])
    assert home.entries() == []
    monkeypatch.undo()
    assert Path(home.run("get,thing")["new_env"]["CM_THING_FILE"]).parent != old
