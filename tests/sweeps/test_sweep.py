"""Which points a sweep begins, begins again and leaves alone; with an executor that only says what became of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from point_builder import make_point

from crowdperf.sweeps.commands import without_result
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.local import LocalExecutor, LocalOptions
from crowdperf.sweeps.sweep import Conduct, FolderInUse, Sweep, exit_code, locked, to_start, write_point


class ToldExecutor:
    """Each start of a point gives it the next of its states; the last one stays."""

    def __init__(self, told: Mapping[str, list[State]]) -> None:
        self.told = told
        self.now = dict.fromkeys(told, State.PLANNED)
        self.started: list[str] = []
        self.is_interrupted = False

    def problems(self) -> tuple[str, ...]:
        return ()

    def start(self, sweep: SweepFolder, points: Sequence[PointFolder]) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt
        for point in points:
            self.started.append(point.id)
            states = self.told[point.id]
            self.now[point.id] = states.pop(0) if len(states) > 1 else states[0]

    def states(self, sweep: SweepFolder) -> dict[str, State]:
        return dict(self.now)

    def wait(self, sweep: SweepFolder, changed: Callable[[], object]) -> None:
        changed()

    def cancel(self, sweep: SweepFolder) -> tuple[str, ...]:
        raise AssertionError("nobody cancels")

    def hold_back(self, sweep: SweepFolder) -> tuple[str, ...]:
        waiting = tuple(name for name, state in self.now.items() if state is State.SUBMITTED)
        self.now.update(dict.fromkeys(waiting, State.CANCELLED))
        return waiting


def run(tmp_path: Path, executor: Any, ids: Sequence[str], **conduct: Any) -> tuple[dict[str, State], list[Any], str]:
    """The states at the end, what was collected, and what was said."""
    collected: list[Any] = []
    said: list[str] = []
    sweep = Sweep(SweepFolder(tmp_path), executor, Conduct(**conduct), collected.append, said.append)
    return sweep.run(ids), collected, "\n".join(said)


@pytest.mark.parametrize(
    ("rerun", "begun"),
    [
        ((), "pcil"),
        (("failed",), "pcilf"),
        (("invalid",), "pcilv"),
        (("lost",), "pcil"),
        (("all",), "pcilfv"),
    ],
)
def test_points_without_a_result_are_begun_and_others_when_named(rerun: tuple[str, ...], begun: str) -> None:
    states = {"p": State.PLANNED, "c": State.CANCELLED, "i": State.INTERRUPTED, "l": State.LOST, "f": State.FAILED,
              "v": State.INVALID, "d": State.DONE, "s": State.SUBMITTED, "r": State.RUNNING}  # fmt: skip
    assert set(to_start(states, [*states], rerun)) == set(begun)


def test_a_point_that_was_interrupted_or_lost_is_begun_again_and_no_other(tmp_path: Path) -> None:
    executor = ToldExecutor({
        "a": [State.INTERRUPTED, State.DONE], "b": [State.FAILED], "c": [State.LOST], "d": [State.DONE]
    })  # fmt: skip
    states, collected, said = run(tmp_path, executor, "abcd", at_once=1)
    assert executor.started == ["a", "b", "c", "d", "a", "c"]
    assert exit_code(states, "abcd") == 2
    assert "again, because they were interrupted or lost: a, c" in said
    assert collected[-1] == states
    run(tmp_path, executor, "abcd")
    assert executor.started[6:] == ["c", "c"]


def test_no_retries_means_none(tmp_path: Path) -> None:
    executor = ToldExecutor({"a": [State.LOST]})
    run(tmp_path, executor, "a", retries=0)
    assert executor.started == ["a"]


def test_nothing_is_begun_when_all_is_done_or_under_way(tmp_path: Path) -> None:
    executor = ToldExecutor({"a": [State.DONE], "b": [State.DONE]})
    executor.now.update({"a": State.DONE, "b": State.SUBMITTED})
    states, _, said = run(tmp_path, executor, "ab")
    assert executor.started == []
    assert said == "2 points: 1 kept, 0 to run, 1 left as they are"
    assert exit_code(states, "ab") == 3


def test_stop_begins_no_further_point_here_and_holds_back_what_is_queued(tmp_path: Path) -> None:
    here = ToldExecutor({"a": [State.FAILED], "b": [State.DONE]})
    states, _, said = run(tmp_path, here, "ab", stops=True, at_once=1)
    assert (here.started, states["b"]) == (["a"], State.PLANNED)
    assert "1 point not started" in said
    queue = ToldExecutor({"a": [State.FAILED], "b": [State.SUBMITTED], "c": [State.RUNNING]})
    states, _, said = run(tmp_path, queue, "abc", stops=True)
    assert "stopped: 1 point not started (--on_failure=stop)" in said
    assert states == {"a": State.FAILED, "b": State.CANCELLED, "c": State.RUNNING}


def test_a_sweep_that_was_cancelled_begins_no_further_point(tmp_path: Path) -> None:
    executor = ToldExecutor({"a": [State.CANCELLED], "b": [State.DONE]})
    states, _, said = run(tmp_path, executor, "ab", at_once=1)
    assert (executor.started, exit_code(states, "ab")) == (["a"], 2)
    assert "the sweep was cancelled" in said


def test_a_call_that_does_not_wait_says_that_points_are_under_way(tmp_path: Path) -> None:
    executor = ToldExecutor({"a": [State.SUBMITTED]})
    states, _, _ = run(tmp_path, executor, "a", waits=False)
    assert exit_code(states, "a") == 3


def test_each_point_that_is_over_is_said_once(tmp_path: Path) -> None:
    executor, said = ToldExecutor({name: [State.DONE] for name in "abcd"}), list[str]()
    sweep = Sweep(SweepFolder(tmp_path), executor, Conduct(), lambda _: None, said.append)
    executor.now.update(a=State.RUNNING, b=State.SUBMITTED, c=State.FAILED)
    sweep._changed()
    executor.now["a"] = State.DONE
    sweep._changed()
    assert said == ["  c: failed (1 of 4 are over)", "  a: done (2 of 4 are over)"]


def test_what_is_there_is_collected_when_the_user_stops_the_call(tmp_path: Path) -> None:
    executor = ToldExecutor({"a": [State.DONE]})
    executor.is_interrupted = True
    collected: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        Sweep(SweepFolder(tmp_path), executor, Conduct(), collected.append, print).run("a")
    assert collected == [{"a": State.PLANNED}]


def test_ten_points_without_a_result_are_named_and_the_others_counted() -> None:
    states = {f"p{number}": "failed" for number in range(12)}
    told = without_result({**states, "q": "done"})
    assert told["return"] == 2 and "12 of 13 points without a valid result" in told["error"]
    assert "  p9: failed\n  and 2 more\nhint: " in told["error"]
    assert "more" not in without_result({"a": "invalid"})["error"].partition("hint")[0]
    assert without_result({"q": "done"}) == {"return": 0}


def test_a_point_is_written_once(tmp_path: Path) -> None:
    point = SweepFolder(tmp_path).point("a")
    write_point(point, {"id": "a"})  # type: ignore[typeddict-item]
    write_point(point, {"id": "b"})  # type: ignore[typeddict-item]
    assert json.loads(point.point_file.read_text()) == {"id": "a"}
    assert [path.name for path in point.path.iterdir()] == ["point.json"]


def test_two_calls_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "s"), pytest.raises(FolderInUse, match="another run is using"), locked(tmp_path / "s"):
        pass
    with locked(tmp_path / "s"):
        pass


def test_points_that_fail_are_invalid_or_are_killed_stop_no_other(tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path)
    make_point(sweep, "fails", "exit 9")
    make_point(sweep, "invalid", 'echo \'{"verdict": "INVALID"}\' > o.json', outcome="o.json")
    make_point(sweep, "killed", "test -e was-here || { touch was-here; kill -9 $PPID; }")
    executor = LocalExecutor(LocalOptions(exclusive=False))
    ids = ["fails", "invalid", "killed"]
    states, _, _ = run(tmp_path, executor, ids, at_once=1)
    assert states == {"fails": State.FAILED, "invalid": State.INVALID, "killed": State.DONE}
    assert exit_code(states, ids) == 2
    assert len(list(sweep.point("killed").attempts.iterdir())) == 2
    again, _, said = run(tmp_path, executor, ids, at_once=1, rerun=("failed",))
    assert (again["fails"], "1 kept, 1 to run, 1 left" in said) == (State.FAILED, True)
