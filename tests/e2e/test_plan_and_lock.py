"""The whole MLPerf pipeline: its plan touches nothing and says what the run does; its lock gives the same elsewhere.

Tried with ``--full`` only, because each home installs everything once more.

Needs the package index that pip is set up with, as the run itself does.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT, TemporaryHome, cm_command
from recipe_engine.actions.journals import read_run

NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net")
PATIENCE_S = 900
Step = tuple[str, str]
WORDS = ("--tags=run,mlperf,inference", "--quiet")


def cm(home: TemporaryHome, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, *cm_command(words)],
        cwd=home.work,
        env=home.process_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def tree_of(*folders: Path) -> dict[str, tuple[int, str]]:
    """Every file with its time and content, and every folder; CM's and the engine's own indexes left out."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.name != "index.json" and not {"recipe-index", ".index"} & {*path.parts}:
                content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
                found[str(path)] = (path.lstat().st_mtime_ns if path.is_file() else 0, content)
    return found


def planned_steps(step: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    if step["action"] != "skip":
        yield step["label"], step["action"], step["is_certain"]
    for child in step.get("children", ()):
        yield from planned_steps(child)


def steps_of_last_run(home: TemporaryHome) -> list[Step]:
    """What the newest journal says: every step in the order of their starts, and whether it ran or was reused."""
    run = read_run(max((home.path / "runs").iterdir()))
    assert run is not None
    begun = [step for step in run.steps if step.recipe]  # a dependency that was left out has none
    return [(step.label, "run" if step.digest else "reuse") for step in begun]


def check_plan_and_run(home: TemporaryHome) -> None:
    """Plans without network, checks that nothing changed, runs, and compares."""
    cm(home, "find", "script", "--tags=no-such-tag")  # cmind writes its own files at the first start in a home
    before = tree_of(home.path, home.work)
    plan = cm(home, "plan", "script", *WORDS, "--out=json", before=NO_NETWORK)
    assert plan.returncode == 0, plan.stderr
    assert tree_of(home.path, home.work) == before
    planned = list(planned_steps(json.loads(plan.stdout)["plan"]["steps"]))
    run = cm(home, "run", "script", *WORDS)
    assert run.returncode == 0, run.stderr
    assert [(label, action) for label, action, is_certain in planned if is_certain] == steps_of_last_run(home)
    assert all(is_certain for _, _, is_certain in planned)


@pytest.mark.full
def test_the_plan_of_the_pipeline_needs_no_network_changes_nothing_and_is_what_the_run_does(
    home: TemporaryHome,
) -> None:
    if subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody make a network namespace")
    check_plan_and_run(home)
    check_plan_and_run(home)


@pytest.mark.full
def test_the_lock_gives_the_same_in_another_home(home: TemporaryHome, tmp_path: Path) -> None:
    assert cm(home, "run", "script", *WORDS).returncode == 0
    lock = cm(home, "lock", "script", *WORDS)
    assert lock.returncode == 0, lock.stderr
    other = TemporaryHome(tmp_path / "other")
    other.register(CHECKOUT)
    (other.work / "crowdperf.lock").write_text(lock.stdout, encoding="utf-8")
    frozen = cm(other, "run", "script", *WORDS, "--frozen")
    assert frozen.returncode == 0, frozen.stderr
    again = cm(other, "lock", "script", *WORDS)
    assert json.loads(again.stdout) == json.loads(lock.stdout)
