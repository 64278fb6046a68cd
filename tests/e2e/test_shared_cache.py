"""A cache that two users share, with umask 022: each reads what the other made and adds entries of its own.

Needs root, which is the first user; the second one is 65534 (nobody).
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import Finished, TemporaryHome, cm_command, run_to_end, wait_until, write_indexes

NOBODY = 65534
SLOW = """
    echo $$ > "$CM_TMP_CURRENT_PATH/started"
    [ -e "$CM_TMP_CURRENT_PATH/go" ] || exec sleep 600
    echo CM_SLOW=1 > tmp-run-env.out
"""


class SharedCache:
    """Two homes, one repository of recipes, one cache with an entry of get-thing that the first user made."""

    def __init__(self, folder: Path, mode: int) -> None:
        self.folder = folder
        self.store = folder / "cache"
        self.store.mkdir()
        os.chown(self.store, -1, NOBODY)
        os.chmod(self.store, mode)
        self.first = TemporaryHome(folder / "first")
        self.second = TemporaryHome(folder / "second")
        self.second.register(Path(__file__).resolve().parents[2], self.first.repo)
        self.first.recipe("get-thing", {"cache": True}, run_sh="echo CM_THING=$PWD > tmp-run-env.out")
        self.first.recipe("get-other", {"cache": True}, run_sh="echo CM_OTHER=$PWD > tmp-run-env.out")
        self.first.recipe("get-slow", {"cache": True}, run_sh=SLOW)
        subprocess.run(["chmod", "-R", "a+rX", str(self.first.repo)], check=True)
        write_indexes(self.second.path)
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(folder / "second")], check=True)
        self.env = {"CROWDPERF_CACHE": str(self.store)}
        assert self.first.run_cm("get,thing", env=self.env).code == 0

    def second_cm(self, *words: str) -> Finished:
        """Runs ``cm`` as the second user."""
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *cm_command(words)]
        env = self.second.process_env({**self.env, "HOME": str(self.second.folder)})
        return run_to_end(command, self.second.work, env)

    def second_run(self, tags: str, *words: str) -> Finished:
        """Runs a recipe as the second user."""
        return self.second_cm("run", "script", f"--tags={tags}", "--quiet", "--out=json", *words)

    def owners(self, alias: str) -> list[int]:
        """The owners of the finished entries of a recipe, in order."""
        metas = (path for path in self.store.glob("*/_cm.json") if f'"{alias},' in path.read_text())
        return sorted(path.stat().st_uid for path in metas if '"tmp"' not in path.read_text())


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can be two users, with setpriv")
    made = Path(tempfile.mkdtemp(prefix="shared-cache-"))
    os.chmod(made, 0o755)
    before = os.umask(0o022)
    try:
        yield made
    finally:
        os.umask(before)
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def shared(folder: Path, request: pytest.FixtureRequest) -> Iterator[SharedCache]:
    """A cache of the given mode; the second user's group is that of the cache."""
    cache = SharedCache(folder, request.param)
    if cache.second_cm("version", "core").code:
        pytest.skip("another user of this system cannot run the Python of the tests")
    yield cache
    cache.first.close()


SHARED = pytest.mark.parametrize(
    "shared", [pytest.param(0o1777, id="1777"), pytest.param(0o2775, id="2775", marks=pytest.mark.full)], indirect=True
)
READ_ONLY = pytest.mark.parametrize("shared", [0o755], indirect=True, ids=["755"])


@SHARED
def test_what_another_user_made_is_reused_and_what_is_missing_is_made(shared: SharedCache) -> None:
    hit = shared.second_run("get,thing")
    assert hit.code == 0, hit.stderr
    assert shared.owners("get-thing") == [0]
    for words in ([], ["--new"], ["--renew"]):
        made = shared.second_run("get,other", *words)
        assert made.code == 0, made.stderr
    assert shared.owners("get-other") == [NOBODY, NOBODY]
    assert shared.first.run_cm("get,other", env=shared.env).code == 0
    for words in (["show", "cache"], ["verify", "cache"]):
        assert shared.second_cm(*words).code == 0


@SHARED
def test_an_entry_of_another_user_is_not_renewed_but_made_beside(shared: SharedCache) -> None:
    assert shared.second_run("get,thing", "--renew").code == 0
    assert shared.owners("get-thing") == [0, NOBODY]


@SHARED
def test_an_entry_of_another_user_is_not_removed_and_its_owner_is_named(shared: SharedCache) -> None:
    removed = shared.second_cm("rm", "cache", "--tags=get,thing", "-f")
    assert removed.code == 1
    assert "belongs to root" in removed.stderr
    collected = shared.second_cm("gc", "cache", "--max-size=1", "-f")
    assert collected.code == 0, collected.stderr
    assert "this user has no write permission" in collected.stdout
    assert shared.owners("get-thing") == [0]


@SHARED
def test_a_killed_run_of_another_user_blocks_nobody(shared: SharedCache) -> None:
    child = shared.first.start_run("get,slow", env=shared.env)
    started = shared.first.work / "started"
    wait_until(lambda: started.exists() and started.read_text().strip(), "the start of the script")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    os.kill(int(started.read_text()), signal.SIGKILL)
    assert list((shared.store / ".locks").glob("*.lock")), "this test wants the lock file that a killed run leaves"
    (shared.second.work / "go").touch()
    made = shared.second_run("get,slow", "--lock_timeout=20")
    assert made.code == 0, made.stderr
    assert shared.owners("get-slow") == [NOBODY]


@READ_ONLY
def test_a_cache_that_may_only_be_read_serves_its_entries_and_says_whose_it_is(shared: SharedCache) -> None:
    assert shared.second_run("get,thing").code == 0
    for words in (["show", "cache"], ["verify", "cache"], ["gc", "cache", "--max-size=1", "-f"]):
        assert shared.second_cm(*words).code == 0
    for flags in ([], ["--new"]):
        failed = shared.second_run("get,other", *flags)
        text = failed.answer["error"]
        assert failed.code == 1
        assert f"cannot write to the cache {shared.store} of root" in text
        assert "CROWDPERF_CACHE" in text
    assert shared.second_cm("rm", "cache", "--tags=get,thing", "-f").code == 1
    assert shared.owners("get-thing") == [0]
