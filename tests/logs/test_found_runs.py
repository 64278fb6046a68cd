"""crowdperf.logs.found_runs and runfacts: runs in every layout, and figures with the place that they stand in."""

import hashlib
import shutil
from pathlib import Path

import pytest

from crowdperf.logs.found_runs import find_runs
from crowdperf.logs.run_facts import read_run
from crowdperf.logs.run_log import LogError
from crowdperf.logs.summary_log import parse_summary
from crowdperf.rules.names import Mode, Scenario

FIXTURES = Path(__file__).parent / "fixtures"


def copy_run(folder: Path, name: str = "valid-offline", accuracy_log: str = "[]\n") -> None:
    shutil.copytree(FIXTURES / name, folder)
    (folder / "mlperf_log_accuracy.json").write_text(accuracy_log)


@pytest.mark.parametrize(
    ("place", "log", "group", "system", "mode", "number"),
    [
        ("2020.09.01/T4x1/resnet50/Offline", "[]\n", "2020.09.01", "T4x1", Mode.PERFORMANCE, None),
        ("2020.09.01/T4x1/resnet50/offline", "[ 1 ]", "2020.09.01", "T4x1", Mode.ACCURACY, None),
        ("sut/resnet50/Offline/performance/run_3", "[ 1 ]", "", "sut", Mode.PERFORMANCE, 3),
        ("sut/resnet50/Offline/accuracy", "[]\n", "", "sut", Mode.ACCURACY, None),
        ("open/Me/results/x/resnet50/Offline/accuracy", "[ 1 ]", "open/Me/results", "x", Mode.ACCURACY, None),
    ],
)
def test_the_folders_of_each_layout_say_what_a_run_is(tmp_path, place, log, group, system, mode, number) -> None:
    copy_run(tmp_path / place, accuracy_log=log)
    (run,), misplaced = find_runs(tmp_path)
    assert misplaced == ()
    assert (run.group, run.system, run.model, run.scenario) == (group, system, "resnet50", Scenario.OFFLINE)
    assert (run.mode, run.number, run.relative.as_posix()) == (mode, number, place)


def test_the_name_of_the_searched_folder_counts_and_what_lies_above_does_not(tmp_path) -> None:
    copy_run(tmp_path / "sut" / "resnet50" / "Offline" / "accuracy")
    (run,), _ = find_runs(tmp_path / "sut")
    assert (run.system, run.group) == ("sut", "")
    runs, (misplaced,) = find_runs(tmp_path / "sut" / "resnet50" / "Offline")
    assert runs == ()
    assert "use the folder that contains" in misplaced.reason


@pytest.mark.parametrize(
    "place", ["s/m/Offline/TEST01/performance/run_1", "compliance/s/m/Offline/x", ".old/s/m/Offline"]
)
def test_compliance_runs_and_hidden_folders_are_left_out(tmp_path, place) -> None:
    copy_run(tmp_path / place)
    assert find_runs(tmp_path) == ((), ())


@pytest.mark.parametrize("name", ["valid-singlestream", "valid-multistream", "valid-offline", "valid-server"])
def test_each_figure_stands_in_the_line_that_it_names(tmp_path, name) -> None:
    scenario = {"valid-singlestream": "SingleStream", "valid-multistream": "MultiStream"}.get(name, name[6:].title())
    copy_run(tmp_path / "s" / "resnet50" / scenario, name)
    facts = read_run(find_runs(tmp_path)[0][0])
    log = tmp_path / "s" / "resnet50" / scenario / "mlperf_log_detail.txt"
    lines = log.read_text().splitlines()
    assert facts.figure is not None
    assert len(facts.latencies) == 8
    for figure in (facts.figure, *facts.latencies):
        assert figure.evidence.sha256 == hashlib.sha256(log.read_bytes()).hexdigest()
        value = figure.value * 1e6 if figure.unit == "ms" else figure.value
        stated = float(lines[figure.evidence.line - 1].split('"value": ')[1].split(",")[0])
        assert stated == pytest.approx(value)
    assert facts.started.startswith("2026-")
    assert facts.round_name == "v6.1"


def test_a_run_without_a_summary_that_can_be_read_is_told(tmp_path) -> None:
    copy_run(tmp_path / "s" / "m" / "Offline")
    summary = tmp_path / "s" / "m" / "Offline" / "mlperf_log_summary.txt"
    summary.write_text("Scenario : Dancing\n")
    (run,), _ = find_runs(tmp_path)
    with pytest.raises(LogError, match="Dancing"):
        read_run(run)


def test_a_summary_of_v07_with_nul_bytes_gives_its_figure() -> None:
    log = parse_summary(
        "\0Scenario : Single Stream\nMode     : Performance\n90th percentile latency (ns) : 5\nResult is : VALID"
    )
    assert (log.scenario, log.mode, log.is_valid) == (Scenario.SINGLE_STREAM, Mode.PERFORMANCE, True)
    assert log.figure is not None
    assert (log.figure.value, log.figure.number, log.figure.text) == ("5", 3, "90th percentile latency (ns) : 5")


def test_an_accuracy_summary_has_neither_figure_nor_verdict() -> None:
    log = parse_summary((FIXTURES / "accuracy-offline" / "mlperf_log_summary.txt").read_text())
    assert (log.figure, log.is_valid) == (None, None)
    log = parse_summary("Scenario : Offline\nMode : AccuracyOnly\nSamples per second: 12.5\nmodel : x")
    assert log.figure is None, "an accuracy run measures nothing"
    assert (log.number("Samples per second"), log.number("model"), log.number("none")) == (12.5, None, None)
