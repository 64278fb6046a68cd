"""`cm resume script`: what is kept and what is made again, and when it refuses. The processes are real."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from helpers import Finished, TemporaryHome, wait_until
from recipe_engine.actions.journals import RecordedRun, RunStep, changed_recipes, resume_lines
from recipe_engine.disk.repos import RecipeSource


def story(home: TemporaryHome) -> list[str]:
    """The scripts that ran, in order."""
    path = home.work / "story"
    return path.read_text().split() if path.exists() else []


def note(word: str, then: str = "") -> str:
    """A script that tells the story of its run, then does something."""
    return f'echo {word} >> "$CM_TMP_CURRENT_PATH/story"\n{then}\n'


@pytest.fixture
def chain(home: TemporaryHome) -> TemporaryHome:
    """build-all needs detect-it (not cached), get-part (cached), and get-late, which fails until `go` is there."""
    home.recipe("detect-it", run_sh=note("detect"))
    home.recipe("get-part", {"cache": True}, run_sh=note("part"))
    meta = {"cache": True, "input_mapping": {"size": "CM_SIZE"}, "new_env_keys": ["CM_LATE"]}
    late = note("late", '[ -e "$CM_TMP_CURRENT_PATH/go" ] || exit 9\necho "CM_LATE=$CM_SIZE" > tmp-run-env.out')
    home.recipe("get-late", meta, run_sh=late)
    deps = [{"tags": "detect,it"}, {"tags": "get,part"}, {"tags": "get,late", "names": ["late"]}]
    home.recipe("build-all", {"deps": deps, "new_env_keys": ["CM_LATE"]}, run_sh=note("all"))
    return home


def run_id(home: TemporaryHome) -> str:
    """The id of the newest run."""
    runs = home.cm("runs", "script", "--out=json").answer["runs"]
    return str(runs[-1]["id"])


def resume(home: TemporaryHome, *words: str, cwd: Path | None = None) -> Finished:
    return home.cm("resume", "script", *words, "--out=json", cwd=cwd)


def test_a_failed_run_goes_on_with_the_same_request_in_the_same_folder(chain: TemporaryHome) -> None:
    failed = chain.run_cm("build,all", "--adr.late.size=a b")
    assert failed.code == 2
    assert f"resume: cm resume script {run_id(chain)}" in failed.answer["error"]
    assert story(chain) == ["detect", "part", "late"]
    (chain.work / "go").touch()
    done = resume(chain, cwd=chain.folder)
    assert done.code == 0, done.stderr
    assert done.answer["new_env"]["CM_LATE"] == "a b"
    assert story(chain) == ["detect", "part", "late", "detect", "late", "all"]
    told = done.stderr.splitlines()
    assert told[:5] == [
        told[0],
        "  cm run script --tags=build,all '--adr.late.size=a b' --quiet",
        "  from the cache: get-part",
        "  rerun, because they are not cached: detect-it",
        "  continues with: get-late, build-all",
    ]
    assert "failed (2) in build-all -> get-late" in told[0]


@pytest.mark.parametrize(("number", "state"), [(signal.SIGKILL, "broken off"), (signal.SIGINT, "interrupted (130)")])
def test_a_run_that_was_ended_from_outside_goes_on(home: TemporaryHome, number: signal.Signals, state: str) -> None:
    home.recipe("get-part", {"cache": True}, run_sh=note("part"))
    slow = 'echo $$ > "$CM_TMP_CURRENT_PATH/pid"\n[ -e "$CM_TMP_CURRENT_PATH/go" ] || exec sleep 600'
    home.recipe("get-slow", {"cache": True}, run_sh=note("slow", slow))
    home.recipe("build-all", {"deps": [{"tags": "get,part"}, {"tags": "get,slow"}]})
    child = home.start_run("build,all")
    wait_until(lambda: (home.work / "pid").exists() and (home.work / "pid").read_text().strip(), "the slow script")
    os.kill(child.pid, number)
    child.wait()
    if number == signal.SIGKILL:  # the script goes on alone, and holds its entry
        os.kill(int((home.work / "pid").read_text()), signal.SIGKILL)
    (home.work / "go").touch()
    done = resume(home)
    assert done.code == 0, done.stderr
    assert f"{state} in build-all -> get-slow" in done.stderr
    assert "  from the cache: get-part" in done.stderr
    assert story(home) == ["part", "slow", "slow"]


def test_a_run_that_ended_well_is_not_resumed(chain: TemporaryHome) -> None:
    (chain.work / "go").touch()
    chain.run_cm("build,all")
    refused = resume(chain)
    assert refused.code == 1
    assert "no run to resume" in refused.answer["error"]
    assert "succeeded" in refused.answer["error"]
    assert story(chain) == ["detect", "part", "late", "all"]


def test_without_any_run_there_is_nothing_to_resume(home: TemporaryHome) -> None:
    home.cm("version", "core")
    refused = resume(home)
    assert refused.code == 1
    assert "no run to resume: no run wrote a journal" in refused.answer["error"]


def test_a_run_that_still_works_is_not_resumed(home: TemporaryHome) -> None:
    home.recipe("get-slow", run_sh=note("slow", "sleep 600"))
    child = home.start_run("get,slow")
    wait_until(lambda: "slow" in story(home), "the slow script")
    refused = resume(home)
    assert refused.code == 1
    assert f"is in progress: process {child.pid} on" in refused.answer["error"]


def test_a_recipe_that_changed_is_refused_by_name_unless_forced(chain: TemporaryHome) -> None:
    chain.run_cm("build,all")
    name = run_id(chain)
    script = chain.repo / "script" / "get-part" / "run.sh"
    script.write_text(script.read_text() + "# new\n")
    refused = resume(chain, name)
    assert refused.code == 1
    assert f"run {name} used other recipe versions: get-part has changed ({script.parent})" in refused.answer["error"]
    assert f"cm resume script {name} --force" in refused.answer["error"]
    (chain.work / "go").touch()
    forced = resume(chain, name, "--force")
    assert forced.code == 0, forced.stderr
    assert "! get-part has changed" in forced.stderr


def test_a_secret_must_be_given_again(home: TemporaryHome) -> None:
    home.recipe("get-it", {"input_mapping": {"my_token": "CM_MY_TOKEN"}}, run_sh='[ "$CM_MY_TOKEN" = right-secret ]')
    assert home.run_cm("get,it", "--my_token=wrong-secret").code == 2
    refused = resume(home)
    assert refused.code == 1
    assert "used secrets, which are never stored. Pass them again: --my_token" in refused.answer["error"]
    assert "--my_token=..." in refused.answer["error"]
    assert resume(home, "--my_token=right-secret").code == 0


def test_a_folder_that_is_gone_is_refused(chain: TemporaryHome) -> None:
    other = chain.folder / "other"
    other.mkdir()
    chain.run_cm("build,all", cwd=other)
    shutil.rmtree(other)
    refused = resume(chain)
    assert refused.code == 1
    assert f"the folder {other} in which run" in refused.answer["error"]


@pytest.mark.parametrize(("given", "expected"), [((), "all"), (("--resume=failed",), "failed")])
def test_a_recipe_that_makes_many_runs_is_told_to_keep_those_that_passed(
    home: TemporaryHome, given: tuple[str, ...], expected: str
) -> None:
    run_sh = note('"mode:$CM_RESUME"', '[ -e "$CM_TMP_CURRENT_PATH/go" ]')
    home.recipe("run-many", {"input_mapping": {"resume": "CM_RESUME"}}, run_sh=run_sh)
    assert home.run_cm("run,many", *given).code == 2
    (home.work / "go").touch()
    done = resume(home)
    assert done.code == 0, done.stderr
    assert story(home)[-1] == f"mode:{expected}"
    assert f"--resume={expected}: runs started by the recipe" in done.stderr


# --- in memory ---


def recorded(*steps: RunStep) -> RecordedRun:
    return RecordedRun("2026-ab", Path("/runs/2026-ab"), {"command": "cm run script"}, steps, "broken off")


def test_recipes_are_compared_by_their_digest_once_each(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    steps = [RunStep(("a",), "ran", "a,1", str(tmp_path), "other"), RunStep(("b",), "ran", "b,2", str(gone), "x")]
    source = RecipeSource([], tmp_path)
    assert changed_recipes(recorded(*steps, steps[0]), source) == [
        f"a has changed ({tmp_path})",
        f"b is missing from {gone}",
    ]


def test_a_cache_entry_that_is_gone_is_not_promised(tmp_path: Path) -> None:
    (tmp_path / "_cm.json").write_text("{}")
    steps = [
        RunStep(("a",), "unfinished", "a,1"),
        RunStep(("a", "b"), "ran", "b,2", entry_path=str(tmp_path)),
        RunStep(("a", "c"), "ran", "c,3", entry_path=str(tmp_path / "gone")),
        RunStep(("a", "d"), "skipped", "d,4"),
    ]
    told = list(resume_lines(recorded(*steps), [], ""))
    assert told == [
        "resuming run 2026-ab, broken off",
        "  cm run script",
        "  from the cache: b",
        "  rerun, because they are not cached: c",
        "  continues with: a",
    ]


@pytest.mark.parametrize(("is_cached", "is_resumed"), [(True, True), (False, False)])
def test_a_call_that_is_refused_before_a_step_was_kept_is_not_resumed(
    home: TemporaryHome, is_cached: bool, is_resumed: bool
) -> None:
    home.recipe("get-data", {"cache": is_cached})
    refusal = "def preprocess(i):\n    return {'return': 1, 'error': 'give --file'}\n"
    home.recipe("use-data", {"deps": [{"tags": "get,data"}]}, customize=refusal)
    for is_reused in (False, True):
        error = home.run_cm("use,data").answer["error"]
        assert "give --file" in error
        assert ("resume: " in error) is (is_resumed and not is_reused)
