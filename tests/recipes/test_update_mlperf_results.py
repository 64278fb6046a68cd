"""update-mlperf-results: which runs count and are kept, where they go, what is never touched, ends at any moment."""

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import exported, load_module, load_recipe, recipe_meta
from results_builder import RECORDED, accuracy_run, recorded_run, v07_run

from crowdperf.rules.names import STAND_IN_LABEL, SYNTHETIC_LABEL

recipe = load_recipe("update-mlperf-results")
placement = load_module("update-mlperf-results", "placement")
update = load_module("update-mlperf-results", "update")
META = recipe_meta("update-mlperf-results")


@pytest.fixture
def call(preprocessed):
    """Makes an update of build/logs into results in a folder of its own."""
    return partial(preprocessed, recipe, META)


def logs(inside: Path, *parts: str) -> Path:
    return inside.joinpath("build", "logs", *parts)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def figure(folder: Path) -> str:
    lines = (folder / "mlperf_log_summary.txt").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if "per second" in line or "per query" in line)


def test_runs_of_nvidias_layout_get_into_the_tree_and_a_second_call_changes_nothing(inside, call):
    for scenario, recording in RECORDED.items():
        recorded_run(logs(inside, "2020.09.01-10.00.00", "T4x1_TRT", "resnet50", scenario), recording)
        accuracy_run(logs(inside, "2020.09.01-11.00.00", "T4x1_TRT", "resnet50", scenario))
    answer = call(result_id="first")
    assert answer["return"] == 0, answer
    place = inside / "results" / "T4x1_TRT" / "resnet50"
    for scenario in RECORDED:
        assert sorted(os.listdir(place / scenario / "performance" / "run_1")) == [
            "mlperf_log_accuracy.json", "mlperf_log_detail.txt", "mlperf_log_summary.txt",
        ]  # fmt: skip
        assert "accuracy.txt" in os.listdir(place / scenario / "accuracy")
    assert not (inside / "results.update").exists()
    metadata = json.loads((inside / "results_metadata.json").read_text())["T4x1_TRT"]["resnet50"]["Server"]
    assert metadata["accuracy"]["count"] == metadata["performance"]["count"] == 1
    assert metadata["performance"]["result_id"] == ["first"]
    assert metadata["performance"]["last_updated"] == 1
    before = snapshot(inside)
    again = call(result_id="second")
    assert (again["return"], again["env"]["CM_MLPERF_UPDATE_RESULTS_CHANGE_COUNT"]) == (0, "0")
    assert snapshot(inside) == before


def test_runs_of_this_projects_layout_are_called_by_the_system_that_the_harness_found(inside, call):
    run = recorded_run(
        logs(inside, "20261121T010203Z-resnet50-onnxruntime-cpu", "resnet50", "Offline", "performance", "run_1"),
        "valid-offline",
    )
    (run / "metadata.json").write_text('{"system_name": "Xeon_x2_onnxruntime"}')
    assert call()["return"] == 0
    assert (inside / "results" / "Xeon_x2_onnxruntime" / "resnet50" / "Offline" / "performance" / "run_1").is_dir()


@pytest.mark.parametrize(
    ("scenario", "settings", "reason"),
    [
        ("Offline", {"samples": 24_575}, "samples_per_query is 24,575, v0.7 asks for 24,576"),
        ("Server", {"queries": 270_335}, "min_query_count is 270,335, v0.7 asks for 270,336"),
        ("MultiStream", {"queries": 270_335}, "min_query_count is 270,335"),
        ("SingleStream", {"queries": 1023}, "min_query_count is 1,023, v0.7 asks for 1,024"),
        ("Offline", {"valid": False}, "LoadGen did not call it VALID"),
        ("Offline", {"min_duration_ms": 2000}, "requested duration 2 s, v0.7 requires 60 s"),
    ],
)
def test_a_run_with_too_few_queries_or_no_valid_does_not_count(inside, call, scenario, settings, reason):
    v07_run(logs(inside, "1", "T4x1_TRT", "resnet50", scenario), scenario, 100.0, **settings)
    answer = call()
    assert answer["return"] == 0, answer
    assert reason in answer["text"]
    assert not (inside / "results").exists()
    assert any("performance runs that count: 0" in text for text in answer["state"]["mlperf_update_results"]["missing"])


def test_an_invalid_run_of_today_is_left_out_with_its_reason(inside, call):
    recorded_run(logs(inside, "1", "sys", "resnet50", "Offline"), "invalid-offline-too-short")
    answer = call()
    assert answer["return"] == 0
    assert "it is INVALID" in answer["text"]


def test_five_server_runs_are_kept_in_v07_and_better_ones_rotate_on(inside, call):
    place = inside / "results" / "T4x8_TRT" / "resnet50" / "Server" / "performance"
    for number in range(7):
        run = logs(inside, f"2020.09.0{number}", "T4x8_TRT", "resnet50", "Server")
        v07_run(run, "Server", 1000.0 + number, p99_ns=100 - number)
    assert call()["return"] == 0
    assert [figure(place / f"run_{n}") for n in range(1, 6)] == ["1002.0", "1003.0", "1004.0", "1005.0", "1006.0"]
    v07_run(logs(inside, "2020.09.08", "T4x8_TRT", "resnet50", "Server"), "Server", 2000.0, p99_ns=1)
    v07_run(logs(inside, "2020.09.09", "T4x8_TRT", "resnet50", "Server"), "Server", 9000.0, p99_ns=5000)  # slow
    assert call()["return"] == 0
    assert [figure(place / f"run_{n}") for n in range(1, 6)] == ["2000.0", "1003.0", "1004.0", "1005.0", "1006.0"]
    entry = json.loads((inside / "results_metadata.json").read_text())["T4x8_TRT"]["resnet50"]["Server"]["performance"]
    assert (entry["count"], entry["last_updated"], len(entry["result_id"])) == (5, 1, 5)


def test_new_runs_go_on_behind_the_place_that_was_written_last(inside, call):
    place = inside / "results" / "T4x8_TRT" / "resnet50" / "Server" / "performance"

    def add(*runs: tuple[str, float, int]) -> None:
        for time, rate, p99_ns in runs:
            v07_run(logs(inside, time, "T4x8_TRT", "resnet50", "Server"), "Server", rate, p99_ns=p99_ns)
        assert call()["return"] == 0

    add(("1", 1, 90), ("2", 2, 50), ("3", 3, 100), ("4", 4, 80), ("5", 5, 50))
    add(("6", 6, 10))  # better than the third
    add(("7", 7, 11), ("8", 8, 12))  # better than the first and the fourth
    assert [figure(place / f"run_{number}") for number in range(1, 6)] == ["8", "2", "6", "7", "5"]


def test_the_best_run_stays_when_its_logs_are_gone_and_a_better_one_takes_its_place(inside, call):
    for time, rate in (("1", 100.0), ("2", 300.0), ("3", 200.0)):
        v07_run(logs(inside, time, "T4x1_TRT", "resnet50", "Offline"), "Offline", rate)
    run = inside / "results" / "T4x1_TRT" / "resnet50" / "Offline" / "performance" / "run_1"
    assert (call()["return"], figure(run)) == (0, "300.0")
    shutil.rmtree(logs(inside, "2"))
    assert (call()["return"], figure(run)) == (0, "300.0")
    v07_run(logs(inside, "4", "T4x1_TRT", "resnet50", "Offline"), "Offline", 400.0)
    assert (call()["return"], figure(run)) == (0, "400.0")


def test_the_last_accuracy_run_is_kept_and_one_without_a_score_is_not(inside, call):
    for time, line in (("1", "accuracy=1.0%"), ("2", "accuracy=2.0%")):
        run = accuracy_run(logs(inside, time, "sys", "resnet50", "Offline"), line, data=time * 2)
        detail = run / "mlperf_log_detail.txt"
        detail.write_text(detail.read_text() + f"# {time}\n")
    unscored = accuracy_run(logs(inside, "3", "sys", "resnet50", "Offline"))
    (unscored / "accuracy.txt").unlink()
    answer = call()
    assert answer["return"] == 0
    assert (inside / "results/sys/resnet50/Offline/accuracy/accuracy.txt").read_text() == "accuracy=2.0%\n"
    assert "process,mlperf,accuracy" in answer["text"]


def test_the_lower_level_of_dlrm_and_3d_unet_gets_the_runs_of_the_higher_one(inside, call):
    for benchmark, rate in (("dlrm-99", 900.0), ("dlrm-99.9", 800.0), ("bert-99", 90.0), ("bert-99.9", 80.0)):
        v07_run(logs(inside, "1", "T4x8_TRT", benchmark, "Offline"), "Offline", rate, samples=30_000)
    assert call()["return"] == 0
    found = {
        name: figure(inside / "results" / "T4x8_TRT" / name / "Offline" / "performance" / "run_1")
        for name in ("dlrm-99", "dlrm-99.9", "bert-99", "bert-99.9")
    }
    assert found == {"dlrm-99": "800.0", "dlrm-99.9": "800.0", "bert-99": "90.0", "bert-99.9": "80.0"}


@pytest.mark.parametrize(
    ("category", "left"),
    [
        ("edge", ["resnet50/MultiStream", "resnet50/Offline", "resnet50/SingleStream", "ssd-mobilenet/Offline"]),
        ("datacenter", ["bert-99.9/Offline", "dlrm-99.9/Offline", "resnet50/Offline", "resnet50/Server"]),
    ],
)
def test_a_category_leaves_out_what_it_does_not_submit(inside, call, category, left):
    for scenario in RECORDED:
        v07_run(logs(inside, "1", "s", "resnet50", scenario), scenario, 10.0)
    for benchmark in ("ssd-mobilenet", "dlrm-99.9", "bert-99.9"):
        v07_run(logs(inside, "1", "s", benchmark, "Offline"), "Offline", 10.0)
    assert call(category=category)["return"] == 0
    found = sorted(
        path.relative_to(inside / "results" / "s").as_posix() for path in (inside / "results" / "s").glob("*/*")
    )
    assert found == left


def test_a_dry_run_says_what_a_real_one_then_does(inside, call):
    v07_run(logs(inside, "1", "T4x1_TRT", "resnet50", "Offline"), "Offline", 100.0)
    before = snapshot(inside)
    dry = call(dry_run="yes")
    text = dry["text"]
    assert (dry["return"], snapshot(inside)) == (0, before)
    assert (
        "add      T4x1_TRT/resnet50/Offline/performance/run_1: 100 samples/s, from 1/T4x1_TRT/resnet50/Offline" in text
    )
    assert "would change: 1 run " in text
    assert call()["state"]["mlperf_update_results"]["changes"] == dry["state"]["mlperf_update_results"]["changes"]


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("abort_insufficient_runs", ["1 of 5"]),
        ("abort_missing_accuracy", ["no accuracy run"]),
        ("abort_on_missing", ["1 of 5", "no accuracy run"]),
    ],
)
def test_what_is_missing_aborts_before_anything_changes(inside, call, switch, expected):
    v07_run(logs(inside, "1", "T4x8_TRT", "resnet50", "Server"), "Server", 100.0)
    answer = call(**{switch: "yes"})
    assert answer["return"] == 1
    assert all(text in answer["error"] for text in expected)
    assert sorted(os.listdir(inside)) == ["build"]


def test_what_no_update_made_or_somebody_changed_is_never_replaced(inside, call):
    run = inside / "results" / "s" / "resnet50" / "Offline" / "performance" / "run_1"
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    v07_run(run, "Offline", 1.0)
    before = snapshot(inside)
    answer = call()
    assert answer["return"] == 1
    assert "was not made by this recipe" in answer["error"]
    assert snapshot(inside) == before
    shutil.rmtree(inside / "results")
    assert call()["return"] == 0
    (run / "notes.txt").write_text("mine")
    v07_run(logs(inside, "2", "s", "resnet50", "Offline"), "Offline", 200.0)
    before = snapshot(inside)
    answer = call()
    assert "was changed since (notes.txt)" in answer["error"]
    assert snapshot(inside) == before


def test_other_things_in_the_output_and_in_the_metadata_stay(inside, call):
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    (inside / "results" / "other").mkdir(parents=True)
    (inside / "results" / "other" / "notes.txt").write_text("mine")
    (inside / "results_metadata.json").write_text('{"s": {"bert-99": {"x": 1}}}')
    assert call()["return"] == 0
    assert (inside / "results" / "other" / "notes.txt").read_text() == "mine"
    assert json.loads((inside / "results_metadata.json").read_text())["s"]["bert-99"] == {"x": 1}


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("place", range(12))
def test_an_update_that_ends_at_any_moment_is_finished_by_the_next(inside, call, monkeypatch, place):
    run = inside / "results" / "s" / "resnet50" / "Offline" / "performance" / "run_1"
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    assert call()["return"] == 0
    old = snapshot(inside / "results")
    v07_run(logs(inside, "2", "s", "resnet50", "Offline"), "Offline", 200.0)
    v07_run(logs(inside, "2", "s", "resnet50", "SingleStream"), "SingleStream", 7.0)
    count = 0

    def may_die(function: Any) -> Any:
        def wrapped(*arguments: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == place + 1:
                raise Killed
            return function(*arguments, **more)

        return wrapped

    with monkeypatch.context() as patch, pytest.raises(Killed) if place < 11 else pytest.raises(AssertionError):
        patch.setattr(placement.shutil, "copyfile", may_die(shutil.copyfile))
        replace = os.replace  # what Path.replace calls in some versions of Python
        patch.setattr(Path, "replace", may_die(replace))
        patch.setattr(os, "replace", may_die(replace))
        call()
        raise AssertionError("it was not ended")
    runs = [snapshot(path) for path in (run, *inside.glob("results.update/*/*")) if path.is_dir()]
    wanted = {name.rsplit("/", 1)[1]: content for name, content in old.items()}
    assert wanted in runs or figure(run) == "200.0"  # nothing is lost
    assert call()["return"] == 0
    assert figure(run) == "200.0"
    assert (inside / "results/s/resnet50/SingleStream/performance/run_1/mlperf_log_summary.txt").is_file()
    assert not (inside / "results.update").exists()
    assert call()["env"]["CM_MLPERF_UPDATE_RESULTS_CHANGE_COUNT"] == "0"


@pytest.mark.parametrize("label", [SYNTHETIC_LABEL, STAND_IN_LABEL])
def test_what_was_made_by_a_program_is_still_called_so_when_its_records_stay_behind(inside, call, label):
    made = {"model": label == SYNTHETIC_LABEL, "dataset": False}
    for run in (
        recorded_run(logs(inside, "s", "resnet50", "Offline", "performance", "run_1"), "valid-offline"),
        accuracy_run(logs(inside, "s", "resnet50", "Offline", "accuracy")),
    ):
        (run / "result.json").write_text(json.dumps({"label": label, "is_synthetic": made}))
    refused = call()
    assert refused["return"] == 1 and not (inside / "results").exists()
    assert refused["error"].count(f"{label}, --include_synthetic copies it, with this label") == 2
    taken = call(include_synthetic="yes")
    assert taken["return"] == 0
    assert taken["text"].count(label) == 2
    from crowdperf.logs.result_rows import compare, read_results

    (row,) = read_results(inside / "results").rows
    assert row.label == label and (row.is_synthetic or label == STAND_IN_LABEL)
    assert compare(row).reason == f"not compared: {label}"


def test_a_folder_of_somebody_else_beside_the_output_is_left_alone(inside, call):
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    mine = inside / "results.update" / "new" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert "is in the way" in call()["error"]
    assert mine.read_text() == "mine"
    assert not (inside / "results").exists()


@pytest.mark.parametrize("content", ["{", '{"format": 99, "moves": []}'])
def test_a_plan_of_another_format_is_left_to_its_owner(inside, call, content):
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    plan = placement.Folders(inside / "results", inside / "results_metadata.json").plan_file
    plan.parent.mkdir(parents=True)
    plan.write_text(content)
    assert f"{plan} cannot be read. Look into" in call()["error"]
    assert plan.read_text() == content and not (inside / "results").exists()


def test_two_updates_do_not_work_at_once(inside, call):
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    with placement.locked(placement.Folders(inside / "results", inside / "x.json")):
        answer = call()
    assert answer["return"] == 1
    assert "another update works" in answer["error"]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"round": "v9"}, "unknown round 'v9'"),
        ({"input": "nowhere"}, "is not a folder"),
        ({}, "no run that counts was found"),
    ],
)
def test_wrong_inputs_are_told(inside, call, inputs, expected):
    logs(inside).mkdir(parents=True)
    answer = call(**inputs)
    assert answer["return"] == 1
    assert expected in answer["error"]
    assert "hint:" in answer["error"]


def test_damaged_metadata_is_told_and_kept(inside, call):
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    (inside / "results_metadata.json").write_text("{")
    assert f"cannot read {inside / 'results_metadata.json'}" in call()["error"]
    assert (inside / "results_metadata.json").read_text() == "{"


def test_planning_changes_nothing_and_only_named_keys_leave_the_recipe(inside, call, hook_input):
    assert recipe.plan(hook_input({})) == {"return": 0}
    v07_run(logs(inside, "1", "s", "resnet50", "Offline"), "Offline", 100.0)
    left = exported("update-mlperf-results", call()["env"])
    assert sorted(left) == [
        "CM_MLPERF_UPDATE_RESULTS_CHANGE_COUNT",
        "CM_MLPERF_UPDATE_RESULTS_METADATA",
        "CM_MLPERF_UPDATE_RESULTS_OUTPUT",
    ]
