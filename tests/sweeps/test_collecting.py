"""What is written of a sweep: JSON, CSV, the table, the page."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crowdperf.kit.csv_cells import guarded
from crowdperf.sweeps.collecting import Figures, Row, best_of, figures_of, summary_text, sweep_content, sweep_csv
from crowdperf.sweeps.commands import under_way
from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.local import LocalExecutor
from crowdperf.sweeps.page import page
from crowdperf.sweeps.planning import (
    LOADGEN_RECIPE,
    LoadgenRun,
    Plan,
    PlannedPoint,
    loadgen_runs,
    plan_json,
    plan_text,
    with_earlier,
)
from crowdperf.sweeps.report import NoSweep, Report, read_report
from crowdperf.sweeps.slurm import SlurmExecutor
from crowdperf.sweeps.states import PointStatus, status

PLAN = Plan(name="s", command="cm run <b>", recipe="run,x")
RESULTS: dict[str, Any] = {
    "scenarios": [
        {
            "scenario": "Offline",
            "passed": True,
            "performance": {"metric": {"name": "throughput", "value": 10.5, "unit": "samples/s",
                                       "higher_is_better": True}, "latency": {"p99_ns": 7}},
            "accuracy": {"metrics": [{"name": "acc", "value": 99.1, "target": 98.0, "passed": True}]},
        },
        {"scenario": "Server", "passed": False, "performance": None, "accuracy": None},
    ]
}  # fmt: skip


def point(number: int, repeat: int = 1, **more: str) -> PlannedPoint:
    """A point with two axes."""
    axes = {"batch": str(number), "kind": "a" if number < 3 else "b", **more}
    inputs = {"model": "m", **axes}
    return PlannedPoint(id=f"p{number}-r{repeat}", variant="base", inputs=inputs, varied=axes, axes=axes,
                        repeat=repeat, tags=(), command=f"cm {number}", planned_s=60.0)  # fmt: skip


def shown_page(rows: Sequence[Row]) -> str:
    return page(PLAN, rows, "2026-11-23T00:00:00Z")


def row(number: int, value: float, state: State = State.DONE, *, higher: bool = True, **more: Any) -> Row:
    """A row whose figure is `value`."""
    metric = {"name": "t", "value": value, "unit": "u/s", "higher_is_better": higher}
    figures = Figures(scenario="Offline", metric=metric, accuracy=(), latency={}, is_passed=state is State.DONE)
    status = PointStatus(state, attempts=2, reason="exit code 9" if state is State.FAILED else "", duration_s=100.0)
    return Row(point=point(number, more.pop("repeat", 1)), status=status, figures=(figures,), **more)


def test_the_figures_of_each_scenario_are_taken_from_results_json() -> None:
    first, second = figures_of(RESULTS)
    assert (first.scenario, first.metric and first.metric["value"], first.latency) == ("Offline", 10.5, {"p99_ns": 7})
    assert [score["value"] for score in first.accuracy] == [99.1]
    assert (second.metric, second.is_passed) == (None, False)


def test_the_best_point_is_valid_and_by_the_metrics_own_direction() -> None:
    rows = [row(1, 5.0), row(2, 9.0, State.INVALID), row(3, 7.0)]
    assert best_of(rows) is rows[2]
    assert best_of([row(1, 5.0, higher=False), row(2, 7.0, higher=False)]) is not None
    assert best_of([row(1, 5.0, higher=False), row(2, 7.0, higher=False)]).point.id == "p1-r1"  # type: ignore[union-attr]


def test_a_labelled_point_is_no_best_valid_one() -> None:
    test_runs = [row(1, 5.0, label="test run"), row(2, 9.0, label="test run")]
    assert "best point (test run): batch=2, kind=a: 9 u/s" in summary_text(PLAN, test_runs)
    mixed = [*test_runs, row(3, 7.0)]
    assert "best valid point: batch=3, kind=b: 7 u/s" in summary_text(PLAN, mixed)


def test_there_is_no_best_of_figures_that_cannot_be_compared() -> None:
    other = row(2, 9.0)
    figures = replace(other.figures[0], scenario="Server")
    assert best_of([row(1, 5.0), replace(other, figures=(figures,))]) is None
    assert best_of([replace(other, figures=other.figures * 2)]) is None
    assert best_of([]) is None


def test_json_has_states_figures_and_totals() -> None:
    content = sweep_content(PLAN, [row(1, 5.0), row(2, 6.0, State.FAILED)])
    assert content["totals"] == {"points": 2, "done": 1, "failed": 1}
    assert content["points"][0]["metric"]["value"] == 5.0
    assert content["points"][1]["reason"] == "exit code 9"


def test_csv_has_a_line_for_each_scenario_and_no_formulas() -> None:
    several = Row(point=point(1), status=PointStatus(State.DONE), label="=cmd()", figures=tuple(figures_of(RESULTS)))
    rows = list(csv.DictReader(io.StringIO(sweep_csv([several, row(2, 6.0)]))))
    assert [(line["id"], line["scenario"], line["value"]) for line in rows] == [
        ("p1-r1", "Offline", "10.5"), ("p1-r1", "Server", ""), ("p2-r1", "Offline", "6.0")]  # fmt: skip
    assert rows[0]["label"] == "'=cmd()"
    assert rows[0]["in_batch"] == "1"


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta", "\ra"])
def test_a_cell_is_no_formula(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert guarded("a=1") == "a=1"


def test_times_of_tokens_stand_in_csv_table_and_page() -> None:
    text = {
        "tokens_per_second": 99.0,
        "ttft_ms": {"p50": 11.5, "p90": 20.0, "p99": 30.25}, "tpot_ms": {"p50": 2.5, "p99": 1234.5},
        "client": {"requests_per_s": 3.5, "input_tokens_per_s": 70.0, "goodput": {"requests_per_s": 3.25},
                   "itl_ms": {"p50": 2.25, "p99": 44.5}, "end_to_end_ms": {"p50": 61.0, "p99": 72.0}},
    }  # fmt: skip
    performance = {"metric": {"name": "tokens per second", "value": 99.0, "unit": "tokens/s"}, "text": text}
    performance |= {"energy": {"j_per_output_token": 0.75}, "cost": {"per_million_output_tokens": 12.0}}
    scenario = {"scenario": "Server", "passed": True, "performance": performance, "accuracy": None}
    own = replace(row(1, 5.0), figures=tuple(figures_of({"scenarios": [scenario]})))
    first, second = csv.DictReader(io.StringIO(sweep_csv([own, row(2, 6.0)])))
    names = ("requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "ttft_p50_ms", "ttft_p99_ms",
             "tpot_p50_ms", "tpot_p99_ms", "e2e_p50_ms", "e2e_p99_ms", "itl_p99_ms",
             "goodput_requests_per_s", "ttft_p90_ms", "energy_per_output_token_j",
             "cost_per_million_output_tokens")  # fmt: skip
    assert [first[name] for name in names] == [
        "3.5", "70.0", "99.0", "11.5", "30.25", "2.5", "1234.5", "61.0", "72.0", "44.5", "3.25", "20.0", "0.75",
        "12.0",
    ]  # fmt: skip
    assert [second[name] for name in names] == [""] * 14 and list(first) == list(second)
    _, _, heading, line, *_ = summary_text(PLAN, [own]).splitlines()
    words = ("99 tokens/s", "3.5", "70", "11.5", "30.2", "2.5", "1,234", "61", "72")
    assert (
        "Requests/s" in heading
        and "End-to-end p99, ms" in heading
        and "energy per output token, J" in heading
        and all(word in line for word in words)
    ), line


def test_a_label_of_all_points_is_printed_once_below_a_wide_table() -> None:
    text = {"tokens_per_second": 99.0}
    performance = {"metric": {"name": "tokens per second", "value": 99.0, "unit": "tokens/s"}, "text": text}
    scenario = {"scenario": "Offline", "passed": True, "performance": performance, "accuracy": None}
    rows = [replace(row(number, 5.0), label="own data", figures=tuple(figures_of({"scenarios": [scenario]})))
            for number in (1, 2)]  # fmt: skip
    shown = summary_text(PLAN, rows)
    assert shown.count("own data") == 1 and "label of all points: own data" in shown
    assert "label of all points" not in summary_text(PLAN, [rows[0], replace(rows[1], label="")])


def test_the_page_shows_times_of_tokens() -> None:
    text = {"ttft_ms": {"p50": 11.5, "p99": 30.25}, "tpot_ms": {"p50": 2.5, "p99": 1234.5}}
    performance = {"metric": {"name": "tokens per second", "value": 99.0, "unit": "tokens/s"}, "text": text}
    scenario = {"scenario": "Server", "passed": True, "performance": performance, "accuracy": None}
    own = replace(row(1, 5.0), figures=tuple(figures_of({"scenarios": [scenario]})))
    shown = shown_page([own, row(2, 6.0)])
    assert "TTFT p99, ms" in shown and "1,234" in shown and "TTFT" not in shown_page([row(2, 6.0)])


def test_the_table_names_the_best_point_and_why_others_have_none() -> None:
    text = summary_text(PLAN, [row(1, 5.0), row(2, 9.0, State.FAILED)])
    assert "s: 2 points of run,x: 1 done, 1 failed" in text
    assert "best valid point: batch=1, kind=a: 5 u/s" in text
    assert "p2-r1 failed: exit code 9, see points/p2-r1/attempts/002/out.txt" in text


def test_the_page_escapes_what_it_shows_and_draws_valid_points_only() -> None:
    evil = row(1, 5.0, label="<script>alert(1)</script>")
    rows = [evil, row(1, 8.0, repeat=2), row(2, 99.0, State.INVALID), row(3, 7.0)]
    text = shown_page(rows)
    assert "<script" not in text
    assert "cm run &lt;b&gt;" in text
    assert text.count('role="img"') == 2, "one chart, for a page and for a phone"
    assert "Offline t over batch: kind a 1 6.5 u/s, kind b 3 7 u/s" in text
    assert ">best<" in text and text.count('<tr class="best">') == 1


def test_the_page_shows_the_plot_first_shades_of_two_axes_and_no_empty_column() -> None:
    rows = [row(1, 5.0), row(2, 6.0), row(3, 7.0)]
    text = shown_page(rows)
    assert text.index("<svg") < text.index("<h2>Points</h2>")
    assert not re.search(">(Accuracy|Label|Node)</th>", text)
    assert ">Label</th>" in shown_page([replace(rows[0], label="x"), *rows[1:]])
    assert re.search(
        r'kind \\ batch.*<td class="number heat-1">5</td>.*<td class="number heat-5">7</td>', text, re.DOTALL
    )
    slower = shown_page([row(1, 5.0, higher=False), row(3, 7.0, higher=False)])
    assert '<td class="number heat-5">5</td>' in slower and "lower is better" in slower


def test_a_plan_counts_node_hours_and_points_by_axis() -> None:
    points = tuple(replace(point(number), runs=(LoadgenRun("offline", "performance", 60.0),)) for number in (1, 2, 3))
    plan = Plan(
        name="s", recipe="run,x", command="c", points=points, executor={"kind": "slurm"}, nodes=2, max_parallel=3
    )
    content = plan_json(plan, {"p1-r1": "done"})
    assert (content["node_hours"], content["wall_hours"]) == (0.1, 0.017)
    assert content["counts"]["kind"] == {"a": 2, "b": 1}
    assert [row["state"] for row in content["points"]] == ["done", "planned", "planned"]
    assert content["points"][0]["limit_min"] == 12
    assert "2. p2-r1: planned, 1 LoadGen run, about 60 s" in plan_text(plan, {})


def test_the_runs_of_a_point_are_found_in_its_plan_with_their_mode() -> None:
    def step(*variations: str) -> dict[str, Any]:
        rows = [{"name": name} for name in variations]
        return {"recipe": f"{LOADGEN_RECIPE},1", "action": "run", "variations": rows, "inputs": {}}

    found = loadgen_runs({"children": [step("offline", "accuracy"), {"children": [step("server")]}, {"recipe": "x"}]})
    assert [(one.scenario, one.mode) for one in found] == [("offline", "accuracy"), ("server", "performance")]


@pytest.mark.parametrize("wrong", [{"planned_s": "soon"}, {"inputs": ["a"]}, {"runs": [{"scenario": 1}]}, {"id": None}])
def test_a_plan_is_read_back_whole_or_said_to_be_damaged(tmp_path: Path, wrong: dict[str, Any]) -> None:
    points = (replace(point(1), runs=(LoadgenRun("offline", "performance", 60.0),)), point(2))
    plan = Plan(name="s", recipe="run,x", command="c", points=points, executor={"kind": "local"})
    content, file = plan_json(plan, {"p1-r1": "done"}), SweepFolder(tmp_path).plan_file
    file.write_text(json.dumps(content))
    report = read_report(tmp_path)
    assert report.plan == plan
    kinds = ({"kind": "local"}, LocalExecutor), ({"kind": "slurm"}, SlurmExecutor), ({"kind": "lost"}, LocalExecutor)
    for settings, executor in (*kinds, ({}, LocalExecutor)):
        assert type(replace(report, plan=replace(plan, executor=settings)).executor(print)) is executor
    content["points"][1] |= wrong
    file.write_text(json.dumps(content))
    with pytest.raises(NoSweep, match=r"plan\.json is damaged"):
        read_report(tmp_path)


@pytest.mark.parametrize("files", [5, [5], [{"name": "a"}], ["x"]])
def test_a_result_whose_list_of_files_is_none_is_damaged(tmp_path: Path, files: object) -> None:
    folder = SweepFolder(tmp_path).point("p")
    folder.path.mkdir(parents=True)
    folder.done_file.write_text(json.dumps({"verdict": "VALID", "files": files}))
    assert status(folder).state is State.PLANNED


@pytest.mark.parametrize(
    "wrong",
    [[["performance"], [5]], [["accuracy"], 5], [["performance", "metric", "value"], "fast"],
     [["performance", "metric", "value"], [5]], [["accuracy", "metrics", 0, "value"], [5]], [["scenario"], "\ud800"]],
)  # fmt: skip
def test_results_of_any_shape_end_no_report(tmp_path: Path, wrong: Any) -> None:
    folder, content = SweepFolder(tmp_path).point("p1-r1"), json.loads(json.dumps(RESULTS))
    place, inner = wrong[0], content["scenarios"][0]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = wrong[1]
    (folder.results / folder.id).mkdir(parents=True)
    (folder.results / folder.id / "results.json").write_text(json.dumps(content))
    folder.done_file.write_text("{}")
    (row_of_it,) = Report(SweepFolder(tmp_path), replace(PLAN, points=(point(1),))).write({})
    assert row_of_it.status.state is State.DONE and (tmp_path / "sweep.html").is_file()


@pytest.mark.parametrize("content", ['{"state": "sleeping"}', '{"state": 3, "node": ["a"]}'])
def test_an_attempt_whose_file_does_not_tell_is_lost(tmp_path: Path, content: str) -> None:
    folder = SweepFolder(tmp_path).point("p")
    (folder.attempts / "001").mkdir(parents=True)
    (folder.attempts / "001" / "state.json").write_text(content)
    assert status(folder) == PointStatus(State.LOST, 1)


def test_points_of_an_earlier_file_are_kept_behind_those_of_this_one() -> None:
    assert [(each.id, each.is_wanted) for each in with_earlier([point(2)], [point(1), point(2)])] == [
        ("p2-r1", True), ("p1-r1", False)]  # fmt: skip


def test_while_points_are_not_over_the_line_that_makes_them_is_named() -> None:
    rows = [row(1, 5.0, State.PLANNED), row(2, 5.0, State.RUNNING), row(3, 5.0)]
    answer = under_way(PLAN, rows)
    assert answer["return"] == 3
    assert answer["error"].startswith("unfinished: 2 points, about 2 min left\nhint: cm run <b>   # runs")
    together = under_way(replace(PLAN, command="", max_parallel=2), rows)["error"]
    assert "about 60 s left" in together and "hint" not in together


def test_files_that_are_passed_on_do_not_name_the_home_folder(tmp_path: Path) -> None:
    plan = replace(PLAN, command=f"cm run --file={Path.home()}/s.yaml", points=(point(1),))
    report = Report(SweepFolder(tmp_path), plan)
    rows = report.write({})
    for name in ("sweep.json", "sweep.html"):
        assert str(Path.home()) not in (tmp_path / name).read_text() and report.plan == plan
    assert report.content(rows)["command"].endswith("/s.yaml")


def repeated(*values: float, batch: int, first: int) -> list[Row]:
    rows = [row(first + place, value) for place, value in enumerate(values)]
    inputs = {**rows[0].point.inputs, "batch": str(batch)}
    return [replace(one, point=replace(one.point, repeat=number, inputs=inputs, varied={"batch": str(batch)}))
            for number, one in enumerate(rows, start=1)]  # fmt: skip


def test_repeats_have_median_and_spread_in_csv_summary_and_page_and_decide_the_best_point() -> None:
    steady, lucky = repeated(9.0, 10.0, 11.0, batch=1, first=1), repeated(2.0, 4.0, 30.0, batch=2, first=4)
    rows = [*steady, *lucky]
    lines = list(csv.DictReader(io.StringIO(sweep_csv(rows))))
    assert [(one["repeats"], one["median"], one["spread_percent"]) for one in lines] == [("3", "10.0", "10.0")] * 3 + [
        ("3", "4.0", "350.0")
    ] * 3
    text = summary_text(PLAN, rows)
    assert text.count("median of batch=1, Offline: 10 u/s ±10 % (n=3)") == 1 and "±350 % (n=3)" in text
    assert best_of(rows) in steady, "one lucky repeat is not the best point"
    shown = shown_page(rows)
    assert "Median of repeats" in shown and "10 ±10 % (n=3)" in shown
    once = [row(1, 5.0), row(2, 6.0)]
    assert "each point was made once: set n_repeats" in summary_text(PLAN, once)
    assert "Median of repeats" not in shown_page(once)
