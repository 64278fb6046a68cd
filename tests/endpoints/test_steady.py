"""The window of steady state follows from the events, and a claim is judged by it."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from curve_tree import count_words, declaration, measured
from report_folder import Setup
from tree_changes import POINT, at, point

from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.findings import Severity
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.readtree import Beside
from crowdperf.endpoints.rules import check_tree
from crowdperf.endpoints.steady import SteadyState, Timing, steady_state
from crowdperf.endpoints.tree import write_tree
from crowdperf.endpoints.trends import Effort, TooLong, has_change_of_level, leading_off_level, trend_of

SIZE = 20
FLAT = (1.0,) * 10


def timings(course: Sequence[float], last: int = SIZE) -> list[Timing]:
    """A sample each second; of each super-pass its factor on times per token. last: samples of the last one."""
    rng = random.Random(3)
    found = []
    for number, factor in enumerate(course):
        for _ in range(last if number == len(course) - 1 else SIZE):
            tpot = 1e7 * factor * rng.uniform(0.95, 1.05)
            found.append(Timing(10**9 * len(found), int(3 * tpot), int(20 * tpot), tpot))
    return found


def found(course: Sequence[float], floor_s: float = 60.0, last: int = SIZE) -> SteadyState:
    state = steady_state(timings(course, last), SIZE, floor_s)
    assert state is not None
    return state


@pytest.mark.parametrize(
    ("course", "status", "verdict", "window"),
    [
        (FLAT, "windowable", "STEADY STATE", (1, 9)),
        ((3.0, 1.5, *FLAT), "windowable", "STEADY STATE", (2, 11)),
        (FLAT[:4], "insufficient_passes", "not found", (None, None)),
        (FLAT[:5], "windowable", "STEADY STATE", (1, 4)),
        ([1.3**number for number in range(10)], "insufficient_passes", "not found", (None, None)),
        ((*FLAT, *FLAT, *(2.0,) * 6), "windowable", "anomaly", (1, 19)),
        ([1 + 0.004 * number for number in range(20)], "windowable", "drifting_up", (1, 15)),
        ([1 - 0.004 * number for number in range(20)], "windowable", "drifting_down", (3, 14)),
    ],
)
def test_the_first_plateau_is_the_window(
    course: Sequence[float], status: str, verdict: str, window: tuple[int | None, int | None]
):
    state = found(course)
    assert (state.status, state.verdict) == (status, verdict)
    assert (state.first_pass, state.last_pass) == window


def test_a_window_has_its_samples_and_the_span_of_their_issue():
    state = found(FLAT, last=7)
    assert (state.pass_size, state.samples, state.duration_s) == (SIZE, 8 * SIZE + 7, 8 * SIZE + 6)
    assert state.fields()["window"] == {
        "super_pass_start": 1, "super_pass_end": 9, "super_pass_size": SIZE, "n_samples": 167, "duration_s": 166.0,
    }  # fmt: skip


def test_a_plateau_shorter_than_the_rules_ask_is_not_official_and_the_first_long_one_is_taken():
    assert found(FLAT, floor_s=600).status == "insufficient_duration"
    later = found((*FLAT[:5], *(1.5,) * 9), floor_s=100)
    assert (later.status, later.first_pass, later.last_pass) == ("windowable", 5, 13)


def test_less_than_a_pass_and_runs_without_tokens_have_no_window():
    assert found((1.0,), last=5).status == "partial_dataset"
    assert steady_state([Timing(1), Timing(2)], 1, 1.0) is None


def test_times_to_the_first_token_do_not_decide_but_are_told():
    slow = [replace(one, ttft_ns=one.issued_ns // 100) for one in timings(FLAT)]
    state = steady_state(slow, SIZE, 60.0)
    assert state is not None and (state.status, state.verdict) == ("windowable", "STEADY STATE")
    assert (state.states["ttft_p90"], state.states["tpot_p90"]) == ("Drifting Up", "Plateau")
    assert state.far == {"ttft_p50", "ttft_p90"}


def test_trends_that_chance_or_correlation_explain_are_none():
    assert trend_of([1, 2, 3, 4, 5, 6, 7, 8], Effort()) == "up"
    assert trend_of([8, 7, 6, 5, 4, 3, 2, 1], Effort()) == "down"
    assert trend_of([1, 2, 3], Effort()) == trend_of([5.0] * 9, Effort()) == trend_of([1, 2, 3, 4], Effort()) == "level"
    assert trend_of([1, 2, 1, 3, 1, 2, 1, 3], Effort()) == "level"
    assert trend_of([2, 1, 2, 1, 1, 2, 1, 2, 2, 2, 3, 3], Effort()) == "up", "equal values take variance away"
    assert has_change_of_level([1.0] * 9 + [2.0] * 9) and not has_change_of_level([1.0, 2.0] * 9)
    assert [leading_off_level(one) for one in ([9, 1], [9, 8, 1, 1, 1, 1], [9, 8, 7, 6, 5, 4], [1, 1, 1, 1])] == [
        1, 2, 3, 1,
    ]  # fmt: skip


def test_a_series_that_would_take_minutes_is_refused():
    with pytest.raises(TooLong):
        trend_of([float(number) for number in range(20)], Effort(steps=100))


EDITION = read_edition()
STEADY = Setup(concurrency=4, samples=32 * 8, dataset_samples=32, span_s=1500.0, words=(6, 6))
DRIFTING = replace(STEADY, course=tuple(1.2**number for number in range(8)))


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Submissions whose r4 is steady, and drifts; the folder of its events by the same name behind a slash."""
    found = {}
    for name, setup in (("steady", STEADY), ("drifting", DRIFTING)):
        folder = tmp_path_factory.mktemp(name)
        declared = declaration(offline=Offline.NONE, dataset_samples=32)
        found[name] = write_tree(folder / "tree", declared, measured(folder / "runs", {4: setup}))
        found[f"{name}/events"] = folder / "runs" / "r4" / "events.jsonl"
    return found


def block_of(submission: Path) -> dict[str, Any]:
    block: dict[str, Any] = yaml.safe_load((point(submission, 4) / POINT).read_text())["steady_state"]
    return block


def test_a_tree_says_what_the_events_say(trees: dict[str, Path]):
    block = block_of(trees["steady"])
    assert (block["status"], block["verdict"]) == ("windowable", "STEADY STATE")
    assert block["window"]["super_pass_size"] == 32 and block["window"]["super_pass_end"] == 7
    assert set(block["state"].values()) == {"Plateau"}
    assert block_of(trees["drifting"])["verdict"] == "not found"
    for name in ("steady", "drifting"):
        for beside in (Beside(), Beside(events={"r4": trees[f"{name}/events"]}, count_tokens=count_words)):
            assert check_tree(trees[name], EDITION, beside).errors == ()


def window(**changed: object) -> dict[str, Any]:
    return {"window": changed}


@pytest.mark.parametrize(
    ("tree", "changed", "severity"),
    [
        ("drifting", {"status": "windowable", "verdict": "STEADY STATE"}, Severity.ERROR),
        ("steady", window(duration_s=1900.0), Severity.ERROR),
        ("steady", window(super_pass_start=3), Severity.ERROR),
        ("steady", window(super_pass_size=64), Severity.ERROR),
        ("steady", window(super_pass_end=8), Severity.ERROR),
        ("steady", window(n_samples=150), Severity.ERROR),
        ("steady", window(n_samples=5000), Severity.ERROR),
        ("steady", window(super_pass_end=None), Severity.ERROR),
        ("steady", {"status": "insufficient_duration"}, Severity.WARNING),
        ("steady", {"verdict": "drifting_up"}, Severity.WARNING),
        ("steady", {"state": {"ttft_p90": "Drifting Up"}}, Severity.WARNING),
        ("steady", window(super_pass_start=0, super_pass_end=6), None),
    ],
)
def test_a_claim_that_is_better_than_the_events_is_refused(
    trees: dict[str, Path], tmp_path: Path, tree: str, changed: dict[str, Any], severity: Severity | None
):
    """With the events beside the tree, and without them by the tree's provenance, which does not know the ramp."""
    submission = Path(shutil.copytree(trees[tree], tmp_path / "sub"))
    steady = block_of(trees["steady"])
    claim = {**(steady if tree == "drifting" else {}), **changed}
    claim["window"] = {**steady["window"], **changed.get("window", {})}
    at(4, POINT, lambda content: content["steady_state"].update(claim))(submission)
    for beside in (Beside(events={"r4": trees[f"{tree}/events"]}, count_tokens=count_words), Beside()):
        found = [one.severity for one in check_tree(submission, EDITION, beside).findings if one.rule == "E14"]
        if severity is None:
            assert found == ([] if beside.events else [Severity.ERROR])
        else:
            assert set(found) == {severity}


def test_without_tokens_the_span_of_a_claimed_window_is_compared_and_the_rest_is_told(
    trees: dict[str, Path], tmp_path: Path
):
    submission = Path(shutil.copytree(trees["steady"], tmp_path / "sub"))
    (submission / "docs" / "provenance.json").unlink()
    beside = Beside(events={"r4": trees["steady/events"]})

    def severities(beside: Beside) -> list[Severity]:
        return [one.severity for one in check_tree(submission, EDITION, beside).findings if one.rule == "E14"]

    assert severities(beside) == [Severity.UNCHECKED]
    assert severities(Beside()) == [Severity.ERROR]
    at(4, POINT, lambda content: content["steady_state"]["window"].update(duration_s=1.0))(submission)
    assert severities(beside) == [Severity.ERROR]


def test_a_run_that_is_not_at_a_fixed_concurrency_has_no_window(trees: dict[str, Path], tmp_path: Path):
    submission = Path(shutil.copytree(trees["steady"], tmp_path / "sub"))
    at(4, "config.yaml", lambda one: one["settings"]["load_pattern"].update(type="poisson"))(submission)
    assert {"E14", "E19"} <= {one.rule for one in check_tree(submission, EDITION).errors}
