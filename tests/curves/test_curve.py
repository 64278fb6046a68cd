"""Curves against a server that streams, by a stand-in of the client: made, stopped, resumed, laid out."""

import csv
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from curve_builder import SAMPLES, standin, typed
from result_schemas import problems_below, problems_of
from stub_openai import MODEL, running_stub

from crowdperf.curves import point as point_module
from crowdperf.curves import request as request_module
from crowdperf.curves.curve import Client, CurvePoint, CurveRun, curve_points
from crowdperf.curves.declaration import FORM
from crowdperf.curves.point import Maker, PointError
from crowdperf.curves.request import read_request
from crowdperf.endpoints.clientfiles import Accuracy, Score, read_run
from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.pointfiles import PROVENANCE, read_provenance
from crowdperf.endpoints.rules import check_tree
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.local import LocalExecutor
from crowdperf.sweeps.sweep import Conduct, read_plan

FLOOR_S = 0.1


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_stub() as (_, root):
        yield f"{root}/tokens=6,ttft_ms=20,tpot_ms=4"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(request_module, "FLOORS_S", {"test": FLOOR_S})
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of the lock that keeps sweeps of this machine apart


def curve(folder: Path, url: str, **changed: str) -> tuple[CurveRun, tuple[CurvePoint, ...], list[str]]:
    """A curve in a folder, its points, and the lines that it says."""
    request = read_request(typed(folder, url, **changed), folder)
    client = Client(program=standin(folder), version="0.1.0", commit="ea33275")
    said: list[str] = []
    run = CurveRun(request=request, client=client, folder=folder / "small", submission=None, command="cm ...",
                   say=said.append)  # fmt: skip
    return run, curve_points(request, client, run.folder), said


class StoppingExecutor(LocalExecutor):
    """Runs a number of points, then ends as Ctrl-C does."""

    left = 1

    def start(self, sweep: SweepFolder, points: Sequence[PointFolder]) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        super().start(sweep, points)


def test_a_curve_is_made_stopped_and_resumed(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("STANDIN_CALLS", str(calls))
    run, points, said = curve(tmp_path, url)
    with pytest.raises(KeyboardInterrupt):
        run.make(StoppingExecutor(), Conduct(at_once=1))
    first = [point.folder.done_file.is_file() for point in points]
    assert first == [True, False]
    assert [point.id for point in read_plan(SweepFolder(run.folder)).points] == [point.folder.id for point in points]
    before = calls.read_text().splitlines()
    own = f"{(run.folder / FORM).read_text()}# filled in\n"
    (run.folder / FORM).write_text(own)

    states = run.make(LocalExecutor(), Conduct(at_once=1))
    assert list(states.values()) == [State.DONE] * 2, said
    assert "2 points: 1 kept, 1 to run, 0 left as they are" in said
    assert (run.folder / FORM).read_text() == own, "what the user wrote"
    later = calls.read_text().splitlines()[len(before) :]
    assert {line.split()[0] for line in later} == {"gpt-oss-120b_r4"}

    page = run.collect(points)
    assert [row.name for row in page.rows] == ["r1", "r4"]
    for row, point in zip(page.rows, points, strict=True):
        summary = read_run(point.folder.results / "run").summary
        assert row.outcome["verdict"] == "VALID" and row.outcome["steady_s"] >= FLOOR_S
        assert summary.issued % SAMPLES == 0 and row.outcome["client"]["git_sha"] == "ea33275"
    content = json.loads((run.folder / "curve.json").read_text())
    assert [one["state"] for one in content["points"]] == ["done"] * 2 and content["official"] is False
    rows = list(csv.DictReader((run.folder / "curve.csv").read_text().splitlines()))
    assert [row["concurrency"] for row in rows] == ["1", "4"]
    html = (run.folder / "curve.html").read_text()
    assert "Unofficial" in html and "shortened runs (execution mode test)" in html and "<svg" in html
    assert "<script" not in html and "http://" not in html.replace("http://127.0.0.1", "")

    submission = run.tree(points)
    assert read_provenance(submission / PROVENANCE).served_model == MODEL
    assert sorted(path.name for path in (submission / "results/undeclared/gpt-oss-120b").iterdir()) == [
        "r1", "r4",
    ]  # fmt: skip
    found = {one.rule for one in check_tree(submission, read_edition()).errors}
    assert "E12" in found and "E17" in found, "too short, and labelled"
    assert not found & {"E1", "E2", "E6", "E7", "E8", "E11", "E13", "E15", "E18", "E19"}, found


def maker(folder: Path, url: str, **changed: str) -> Maker:
    """The maker of the first point of a curve."""
    run, points, _ = curve(folder, url, **changed)
    return Maker(points[0].inputs, str(run.client.program), folder / "results")


def test_a_slow_start_of_the_client_is_tried_once_more(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_READY_S", "100")
    made, load = maker(tmp_path, url), point_module.Load(concurrency=1, samples=1, least_s=0)
    assert made._call("run", load) == 150
    monkeypatch.setenv("STANDIN_READY_S", "200")
    with pytest.raises(PointError, match=r"exit code 3:(.|\n)*Ready check failed"):
        made._call("run", load)


def test_a_second_attempt_begins_behind_what_has_ended_well(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("STANDIN_CALLS", str(calls))
    made = maker(tmp_path, url)
    made._rate()
    assert calls.read_text().split()[1::3] == ["calibration"]
    (made.results / "run" / "performance").mkdir(parents=True)
    (made.results / "run" / "half").write_text("of a killed attempt")
    assert made.make()["verdict"] == "VALID"
    assert not (made.results / "run" / "half").exists()
    count = len(calls.read_text().splitlines())
    again = made.make()
    assert again["verdict"] == "VALID" and problems_of("outcome.json", again) == []
    assert problems_below(made.results, ["ended.json", "calibration.json"]) == []
    assert len(calls.read_text().splitlines()) == count


def test_a_run_that_was_too_short_is_made_again_with_its_own_rate(tmp_path: Path, url: str) -> None:
    small = maker(tmp_path, url)
    made = replace(small, inputs=replace(small.inputs, floor_s=1.5))
    made.results.mkdir()
    made._note_rate(1, 1.0)
    outcome = made.make()
    short = read_run(made.results / "short_run").summary
    assert short.issued == SAMPLES and outcome["samples"] > SAMPLES
    assert outcome["verdict"] == "VALID", outcome["reasons"]


def test_a_server_that_answers_nothing_fails_the_point(tmp_path: Path) -> None:
    run, points, said = curve(tmp_path, "http://127.0.0.1:9", points="1")
    (row,) = run.collect(points).rows
    assert (row.state, row.reason) == ("planned", "")
    assert set(run.make(LocalExecutor(), Conduct(at_once=1)).values()) == {State.FAILED}, said
    (row,) = run.collect(points).rows
    assert row.state == "failed" and "exit code 1" in row.reason
    made = maker(tmp_path, "http://127.0.0.1:9")
    with pytest.raises(PointError, match="the client ended with exit code 1"):
        made.make()


@pytest.fixture
def measured(tmp_path: Path, url: str) -> Callable[..., list[str]]:
    """Makes a point once, and gives what is wrong with a changed recording of it."""
    made = maker(tmp_path, url)
    ended = made._run()
    recorded, derived = made._recorded("run")

    def reasons(scores: Sequence[Score] | None = None, **changed: object) -> list[str]:
        """scores: of the accuracy run; None for a point without one."""
        inputs = replace(made.inputs, has_accuracy=scores is not None)
        accuracy = Accuracy(average=None, scores=tuple(scores or ()))
        found = replace(recorded, summary=replace(recorded.summary, **changed), accuracy=accuracy)
        return list(point_module.outcome_of(inputs, found, derived, ended)["reasons"])

    return reasons


def test_what_makes_a_point_invalid(measured: Callable[..., list[str]]) -> None:
    assert measured() == []
    assert "an incomplete run" in measured(state="interrupted")[0]
    assert any("samples failed, more than 1%" in one for one in measured(failed=3))
    assert any(one.startswith("events differ: duration_ns") for one in measured(duration_ns=10**9))


def test_a_run_that_sends_all_at_once_says_nothing_of_latencies(tmp_path: Path, url: str) -> None:
    made = maker(tmp_path, url)
    ended = made._run()
    for concurrency in (made.inputs.concurrency, 0):
        inputs = replace(made.inputs, concurrency=concurrency)
        outcome = point_module.outcome_of(inputs, *made._recorded("run"), ended)
        found = {name for name in ("steady_s", "tps_per_user", "ttft_p90_ms") if outcome[name] is not None}
        assert found == ({"steady_s", "tps_per_user", "ttft_p90_ms"} if concurrency else set())


def test_a_point_with_an_accuracy_run_needs_its_complete_result(measured: Callable[..., list[str]]) -> None:
    whole = Score(dataset="d", values={"": 0.9}, unit_samples=4, repeats=1, total_samples=4, is_complete=True,
                  is_inline=False, issued=4, scored=4, empty=0, missing=0)  # fmt: skip
    assert measured([whole]) == []
    for scores in ((), (replace(whole, is_inline=True),), (whole, replace(whole, is_complete=False))):
        assert measured(scores) == ["the accuracy run has no complete result"]


def test_sigterm_ends_the_point_with_its_own_code() -> None:
    with pytest.raises(SystemExit) as caught:
        point_module._stop(signal.SIGTERM, None)
    assert caught.value.code == 143
