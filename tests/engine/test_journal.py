"""The journal of a run: when there is one, what stands in it, what a crash leaves, what `cm runs script` tells."""

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, wait_until
from recipe_engine.actions.journals import (
    SHOWN_IDS,
    SHOWN_RUNS,
    find_run,
    list_lines,
    parse_rows,
    read_run,
    recorded_runs,
    run_lines,
    steps_of,
)
from recipe_engine.rules.errors import Interrupted, RecipeError, ScriptFailed
from recipe_engine.running import journal
from recipe_engine.running.journal import end_row, iso, thin

PART = {"cache": True, "new_env_keys": ["CM_PART"]}


def journals(home: TemporaryHome) -> list[Path]:
    """The folders of all journals, the oldest first."""
    return sorted((home.path / "runs").glob("*"))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def build_all(home: TemporaryHome, run_sh: str = "true") -> None:
    home.recipe("get-part", PART, run_sh="echo CM_PART=1 > tmp-run-env.out")
    skipped = {"tags": "get,never", "enable_if_env": {"CM_NEVER": ["yes"]}}
    home.recipe("build-all", {"deps": [{"tags": "get,part"}, skipped]}, run_sh=run_sh)


# --- what is written ---


def test_a_run_is_written_down_as_it_happens(home: TemporaryHome) -> None:
    build_all(home)
    home.run("build,all", size="3")
    (folder,) = journals(home)
    request = json.loads((folder / "request.json").read_text())
    assert request["command"] == "cm run script --tags=build,all --quiet --size=3"
    assert request["inputs"] == {"tags": "build,all", "quiet": True, "size": "3"}
    assert (request["folder"], request["pid"]) == (str(home.work), os.getpid())
    written = rows(folder)
    assert [(row["event"], row.get("step", [""])[-1]) for row in written] == [
        ("start", "build-all"), ("run", "build-all"), ("start", "get-part"), ("run", "get-part"), ("done", "get-part"),
        ("skip", "get,never"), ("done", "build-all"), ("end", ""),
    ]  # fmt: skip
    part = written[4]
    assert part["step"] == ["build-all", "get-part"]
    assert part["status"] == "ran"
    assert part["entry_path"] == str(home.entry("get-part"))
    assert len(written[1]["digest"]) == 64
    assert written[-1]["code"] == 0
    assert all(row["at"].endswith("Z") for row in written)


def test_a_run_that_only_reuses_leaves_no_journal(home: TemporaryHome) -> None:
    build_all(home)
    home.run("get,part")
    home.run("get,part")
    assert len(journals(home)) == 1
    home.run("build,all")
    assert [row.get("status") for row in rows(journals(home)[1]) if row["event"] == "done"] == ["reused", "ran"]


def test_a_request_that_is_refused_before_anything_runs_leaves_no_journal(home: TemporaryHome) -> None:
    with pytest.raises(RecipeError) as caught:
        home.run("get,nothing")
    assert caught.value.run_id == ""
    assert journals(home) == []


def test_a_failure_is_written_with_the_step_and_the_error_names_its_journal(home: TemporaryHome) -> None:
    home.recipe("get-bad", {"cache": True}, run_sh="exit 7")
    home.recipe("build-all", {"deps": [{"tags": "get,bad"}]})
    with pytest.raises(ScriptFailed) as caught:
        home.run("build,all")
    (folder,) = journals(home)
    assert caught.value.run_id == folder.name
    end = rows(folder)[-1]
    assert (end["code"], end["step"]) == (2, ["build-all", "get-bad"])
    assert end["again"] == "cm run script --tags=get,bad --quiet"
    run = read_run(folder)
    assert run is not None
    assert (run.state, run.failing) == ("failed", ("build-all", "get-bad"))
    assert [(step.label, step.status) for step in run.steps] == [("build-all", "failed"), ("get-bad", "failed")]


def test_secrets_are_in_no_journal_but_named(home: TemporaryHome) -> None:
    build_all(home)
    env = {"CM_API_KEY": "hunter2-hunter2", "CM_A": "1"}
    home.run("build,all", env=env, hf_token="hunter2-hunter2", url="https://me:hunter2-hunter2@host/x")
    (folder,) = journals(home)
    assert "hunter2" not in "".join(path.read_text() for path in folder.iterdir())
    request = json.loads((folder / "request.json").read_text())
    assert request["secrets"] == ["env.CM_API_KEY", "hf_token", "url"]
    assert request["inputs"]["env"] == {"CM_A": "1"}


def test_runs_that_a_recipe_starts_belong_to_the_journal_of_the_run(home: TemporaryHome) -> None:
    home.recipe("get-inner", run_sh="true")
    hook = """
        def preprocess(i):
            return i["automation"].cmind.access({"action": "run", "automation": "script", "tags": "get,inner"})
    """
    home.recipe("run-many", customize=hook)
    assert home.run_cm("run,many").code == 0
    (folder,) = journals(home)
    assert ["run-many", "get-inner"] in [row.get("step") for row in rows(folder)]


@pytest.mark.parametrize("broken", ["mkdir", "write"])
def test_a_disk_that_cannot_be_written_ends_the_journal_and_not_the_run(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    build_all(home)
    if broken == "mkdir":
        (home.path / "runs").write_text("a file")
    else:
        real = os.write

        def write(handle: int, block: bytes) -> int:
            if b'"event"' in block:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(handle, block)

        monkeypatch.setattr(os, "write", write)
    home.run("build,all")
    assert [line for line in home.story if "no journal" in line]
    home.entry("get-part")


def test_old_journals_are_thinned_and_those_that_work_stay(tmp_path: Path) -> None:
    import fcntl

    for number in range(5):
        folder = tmp_path / f"2026112{number}T000000.000Z-ab"
        folder.mkdir()
        (folder / "journal.jsonl").write_text("")
    with (tmp_path / "20261120T000000.000Z-ab" / "journal.jsonl").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thin(tmp_path, 2)
        assert [path.name[7:8] for path in sorted(tmp_path.iterdir())] == ["0", "3", "4"]
    thin(tmp_path, 2)
    assert [path.name[7:8] for path in sorted(tmp_path.iterdir())] == ["3", "4"]


def test_a_run_thins_the_journals_before_it(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT_RUNS", 3)
    home.recipe("get-x", run_sh="true")
    for _ in range(5):
        home.run("get,x")
    assert len(journals(home)) == 3


# --- crashes ---


def test_a_run_that_works_is_told_from_one_that_was_killed(home: TemporaryHome) -> None:
    build_all(home, run_sh='touch "$CM_TMP_CURRENT_PATH/begun"; sleep 600')
    child = home.start_run("build,all")
    wait_until((home.work / "begun").exists, "the script")
    (run,) = recorded_runs(home.path / "runs")
    assert (run.state, run.code, run.duration_s) == ("running", None, None)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (run,) = recorded_runs(home.path / "runs")
    assert run.state == "broken off"
    assert run.failing == ("build-all",)
    assert {step.label: step.status for step in run.steps} == {"build-all": "unfinished", "get-part": "ran"}


@pytest.mark.parametrize("cut", range(1, 400, 23))
def test_a_journal_that_was_cut_off_anywhere_can_be_read(home: TemporaryHome, cut: int) -> None:
    build_all(home)
    home.run("build,all")
    (folder,) = journals(home)
    path = folder / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    run = read_run(folder)
    assert run is not None
    assert run.state == ("done" if cut == 1 else "broken off")
    assert list(run_lines(run))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"format": 99}', '"x"', '{"format": 1, "secrets": true}', '{"format": 1, "inputs": ["x"]}'],
)
def test_a_folder_without_a_request_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "request.json").write_text(text)
    assert read_run(tmp_path) is None
    assert recorded_runs(tmp_path / "nowhere") == []


def test_rows_of_any_shape_are_read_without_an_error() -> None:
    text = '{"event": "start", "step": ["a"]}\nnonsense\n[1]\n{"event": "done", "step": 3}\n{"event": "done"}\n{"event"'
    odd = [{"step": [["a"]]}, {"variations": "v"}, {"event": []}, {"path": None}, {"duration_s": "1"}, {"code": [1]}]
    rows = parse_rows("\n".join([*map(json.dumps, odd), "[" * 100_000, text]))
    assert [row["event"] for row in rows] == ["start", "done"]
    assert [(step.label, step.status) for step in steps_of(rows)] == [("a", "unfinished")]


def row(event: str, *step: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "step": list(step), **more}


def test_a_step_that_comes_twice_is_two_steps() -> None:
    steps = steps_of(
        [
            row("start", "a"), row("start", "a", "b"), row("done", "a", "b", status="ran", duration_s=1.5),
            row("start", "a", "b"), row("done", "a", "b", status="reused"), row("skip", "a", "c", reason="no"),
            row("start", "a", "d"), row("again", "a", "d", reason="bounds"), row("again", "a", reason="bounds"),
            row("start", "a"), row("done", "a", status="ran"),
        ]
    )  # fmt: skip
    assert [(step.label, step.status) for step in steps] == [
        ("a", "failed"), ("b", "ran"), ("b", "reused"), ("c", "skipped"), ("d", "failed"), ("a", "ran"),
    ]  # fmt: skip
    assert (steps[1].duration_s, steps[3].reason, steps[4].reason) == (1.5, "no", "bounds")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, {"code": 0}),
        (Interrupted("SIGTERM", 143), {"code": 143, "signal": "SIGTERM", "step": []}),
        (KeyboardInterrupt(), {"code": 130, "signal": "SIGINT"}),
        (ScriptFailed("it\nfailed", trace=("a",)), {"code": 2, "error": "it", "step": ["a"], "again": ""}),
        (ValueError("x"), {"code": 1, "error": "ValueError: x"}),
        (
            ScriptFailed("no clone of https://me:pass@example.org", trace=("a",)),
            {"code": 2, "error": "no clone of https://********@example.org", "step": ["a"], "again": ""},
        ),
        (ValueError("ghp_" + "a1" * 18), {"code": 1, "error": "ValueError: ********"}),
    ],
)
def test_every_end_has_its_row(error: BaseException | None, expected: dict[str, Any]) -> None:
    assert end_row(error) == expected


def test_a_time_is_written_in_utc_with_milliseconds() -> None:
    assert iso(0.1239) == "1970-01-01T00:00:00.123Z"


# --- cm runs script ---


def test_the_runs_are_listed_and_one_is_shown_by_a_part_of_its_id(home: TemporaryHome) -> None:
    home.recipe("get-good", run_sh="true")
    home.recipe("get-bad", run_sh="echo why >&2; exit 7")
    home.run_cm("get,good")
    home.run_cm("get,bad")
    listed = home.cm("runs", "script")
    assert listed.code == 0, listed.stderr
    title, good, bad, total = listed.stdout.splitlines()
    assert title.split() == ["id", "state", "took", "cm", "run", "script", "..."]
    assert " done " in good
    assert good.endswith("--tags=get,good --quiet")
    assert " failed (2) " in bad
    assert bad.endswith("…")
    assert "--tags=get,bad --quiet: get-bad: run.sh failed with" in bad
    assert len(bad) == 100
    assert total == "2 runs. --last=N lists N, cm runs script ID shows one"
    assert home.cm("runs", "script", "-v").stdout.splitlines()[2].endswith(": run.sh failed with exit code 7")
    newest = home.cm("runs", "script", "--last=1").stdout.splitlines()
    assert newest[1:] == [bad, "the last 1 of 2 runs. --last=N lists N, cm runs script ID shows one"]
    refused = home.cm("runs", "script", "--last=some")
    assert (refused.code, "--last must be a positive integer, got 'some'" in refused.stderr) == (1, True)
    answer = home.cm("runs", "script", "--out=json").answer
    assert [(run["state"], run["code"]) for run in answer["runs"]] == [("done", 0), ("failed", 2)]
    run_id = answer["runs"][1]["id"]
    shown = home.cm("runs", "script", run_id[-9:])
    assert f"run:      {run_id}" in shown.stdout
    assert "  ! get-bad (get-bad: run.sh failed with exit code 7)" in shown.stdout
    detail = home.cm("runs", "script", run_id, "--out=json").answer["run"]
    assert detail["steps"][0]["status"] == "failed"
    assert detail["failing"] == ["get-bad"]


def test_of_many_runs_the_newest_are_listed_and_all_are_in_the_json_answer(home: TemporaryHome) -> None:
    home.recipe("get-good", run_sh="true")
    for _ in range(SHOWN_RUNS + 2):
        home.run("get,good")
    lines = home.cm("runs", "script").stdout.splitlines()
    assert len(lines) == SHOWN_RUNS + 2
    assert lines[-1].startswith(f"the last {SHOWN_RUNS} of {SHOWN_RUNS + 2} runs.")
    assert len(home.cm("runs", "script", "--out=json").answer["runs"]) == SHOWN_RUNS + 2
    assert len(home.cm("runs", "script", "--out=json", "--last=3").answer["runs"]) == 3


def test_an_id_that_nobody_has_is_refused_with_the_nearest(home: TemporaryHome) -> None:
    refused = home.cm("runs", "script", "2026-none")
    assert refused.code == 16
    assert "no run has the id '2026-none'" in refused.stderr
    assert "cm runs script lists" in refused.stderr
    home.recipe("get-x", run_sh="true")
    home.run("get,x")
    home.run("get,x")
    with pytest.raises(RecipeError, match="2 run ids contain '2': 2"):
        find_run(home.path / "runs", "2")


def test_of_many_runs_whose_ids_fit_the_last_ones_are_named(tmp_path: Path) -> None:
    for number in range(SHOWN_IDS + 2):
        (tmp_path / f"2026-{number}").mkdir()
    with pytest.raises(RecipeError, match=r"^7 run ids contain '2026': the last 5 are 2026-2, 2026-3, .*2026-6$"):
        find_run(tmp_path, "2026")


def test_no_runs_are_an_empty_list(home: TemporaryHome) -> None:
    done = home.cm("runs", "script")
    assert (done.code, done.stdout) == (0, "")
    assert "no run wrote a journal" in done.stderr
    assert list(list_lines([], 0, 100)) == []
