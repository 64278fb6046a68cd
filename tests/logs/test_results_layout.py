"""crowdperf.logs.layout: where everything of a results folder is."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from crowdperf.logs.layout import ResultsPaths, RunPaths, make_run_id
from crowdperf.rules.names import Mode, Scenario


def test_runs_lie_where_a_submission_expects_them() -> None:
    paths = ResultsPaths(Path("results"), "id")
    performance = paths.run("digits", Scenario.SINGLE_STREAM, Mode.PERFORMANCE)
    accuracy = paths.run("digits", Scenario.SINGLE_STREAM, Mode.ACCURACY)
    assert performance.folder == Path("results/id/digits/SingleStream/performance/run_1")
    assert accuracy.folder == Path("results/id/digits/SingleStream/accuracy")
    assert performance.detail_log.name == "mlperf_log_detail.txt"


def test_the_session_files_lie_at_the_top() -> None:
    paths = ResultsPaths(Path("r"), "id")
    files = (paths.results_json, paths.environment_json, paths.summary_text, paths.session_json)
    names = ["results.json", "environment.json", "summary.txt", "session.json"]
    assert [str(file) for file in files] == [f"r/id/{name}" for name in names]


def test_what_a_run_makes_does_not_include_what_it_was_given() -> None:
    paths = RunPaths(Path("out"))
    assert paths.result_json in paths.made_by_a_run
    assert paths.run_json not in paths.made_by_a_run


def test_a_run_id_is_utc_time_and_names() -> None:
    started = datetime(2026, 11, 21, 3, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert make_run_id(started, "digits", "onnxruntime", "cpu") == "20261121T010203Z-digits-onnxruntime-cpu"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "-x"])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="model"):
        make_run_id(datetime(2026, 1, 1, tzinfo=timezone.utc), name, "null", "cpu")


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        make_run_id(datetime(2026, 1, 1), "digits", "null", "cpu")
