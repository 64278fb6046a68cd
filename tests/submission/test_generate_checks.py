"""What is wrong with runs for a submission: each fault planted in real runs is named, with the command that helps."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from generate_support import SCENARIOS, SUT, copy_runs, edit_json, env_of, request_of, run_folder, unpack_light_runs

from crowdperf.kit.whole_file import read_object
from crowdperf.rules.names import Mode
from crowdperf.submission import checks, tree_builder


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_light_runs(tmp_path_factory.mktemp("runs"))


def problems(results: Path, tree: Path, **env: str) -> list[str]:
    gathered = tree_builder.gather(request_of(env_of(results, tree, **env), tree.parent))
    return [f"{problem.text} | {problem.hint}" for problem in gathered.problems]


def test_real_full_runs_have_no_problem(real_runs: Path, tmp_path: Path) -> None:
    gathered = tree_builder.gather(request_of(env_of(real_runs, tmp_path / "tree"), tmp_path))
    assert gathered.problems == ()
    assert gathered.round_name == "v6.1"
    plain = [run for run in gathered.runs if not run.test]
    assert sorted({run.name for run in plain}) == [
        f"resnet50 {scenario} {mode}"
        for scenario in ("MultiStream", "Offline", "SingleStream")
        for mode in ("accuracy", "performance")
    ]


def test_made_data_are_refused_unless_the_user_asks(real_runs: Path, tmp_path: Path) -> None:
    (found,) = problems(real_runs, tmp_path / "tree", CM_MLPERF_ALLOW_SYNTHETIC="")
    assert "made by a program" in found
    assert "resnet50 Offline accuracy" in found


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def replace_line(path: Path, key: str, value: str) -> None:
    """Gives another value to a key of a detail log."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if f'"key": "{key}"' in line)
    start = lines[number].index('"value": ') + len('"value": ')
    end = lines[number].index(', "time_ms"')
    lines[number] = lines[number][:start] + value + lines[number][end:]
    path.write_text("".join(lines), encoding="utf-8")


def make_invalid(folder: Path) -> None:
    replace_line(folder / "mlperf_log_detail.txt", "result_validity", '"INVALID"')
    replace_in(folder / "mlperf_log_summary.txt", "Result is : VALID", "Result is : INVALID")


def cut_log(folder: Path) -> None:
    log = folder / "mlperf_log_detail.txt"
    log.write_text("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:30]), encoding="utf-8")


def detail(key: str, value: str) -> Callable[[Path], None]:
    return lambda folder: replace_line(folder / "mlperf_log_detail.txt", key, value)


def change_setting(name: str, value: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        run = read_object(folder / "result.json")["run"]
        edit_json(folder / "result.json", run={**run, name: {"value": value, "origin": "user"}})

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


FAULTS: list[tuple[str, str, Callable[[Path], None], str]] = [
    ("Offline", "performance", shutil.rmtree, "resnet50 Offline has no performance run"),
    ("Offline", "accuracy", shutil.rmtree, "resnet50 Offline has no accuracy run"),
    ("Offline", "performance", make_invalid, "resnet50 Offline performance is INVALID"),
    ("SingleStream", "performance", cut_log, "did not finish or is damaged"),
    ("SingleStream", "performance", remove("mlperf_log_summary.txt"), "did not finish or is damaged"),
    ("SingleStream", "performance", remove("result.json"), "has no usable result.json"),
    ("SingleStream", "performance", remove("user.conf"), "has no user.conf"),
    ("SingleStream", "accuracy", remove("accuracy.txt"), "has no score (accuracy.txt)"),
    ("SingleStream", "accuracy", remove("accuracy.json"), "has no score (accuracy.txt)"),
    ("SingleStream", "accuracy", remove("mlperf_log_accuracy.json"), "has no mlperf_log_accuracy.json"),
    ("Offline", "performance", detail("effective_min_duration_ms", "3000"), "requested 3 s"),
    ("Offline", "performance", detail("power_end", '"11-21-2026 00:00:00.000"'), "the round requires 600 s"),
    (
        "Offline",
        "performance",
        detail("generated_samples_per_query", "100"),
        "had 100 samples, the round requires 24,576",
    ),
    ("Offline", "performance", detail("effective_performance_sample_count", "500"), "used 500 samples"),
    ("Offline", "accuracy", detail("effective_accuracy_sample_count", "5000"), "the data set has 50,000"),
    ("Offline", "performance", detail("effective_scenario", '"SingleStream"'), "its folder Offline"),
    ("Offline", "performance", detail("effective_qsl_rng_seed", "1"), "seeds of several rounds, or of none"),
    ("Offline", "performance", change_setting("compliance_test", "TEST01"), "under the settings of TEST01"),
    ("Offline", "performance", change_setting("find", True), "a search for the highest rate"),
    ("Offline", "accuracy", change_setting("precision", "int8"), "differ in precision: fp32 and int8"),
    (
        "Offline",
        "accuracy",
        lambda folder: edit_json(folder / "result.json", model_sha256={"model": "0" * 64}),
        "differ in model_sha256",
    ),
    (
        "Offline",
        "accuracy",
        lambda folder: edit_json(folder / "result.json", versions={"onnxruntime": "1.0", "loadgen": "6.0.17"}),
        "version of onnxruntime",
    ),
]


@pytest.mark.parametrize(("scenario", "mode", "fault", "words"), FAULTS, ids=[row[3] for row in FAULTS])
def test_a_fault_in_one_run_is_named_with_what_helps(
    real_runs: Path, tmp_path: Path, scenario: str, mode: str, fault: Callable[[Path], None], words: str
) -> None:
    results = copy_runs(real_runs, tmp_path)
    fault(run_folder(results, scenario, mode))
    found = problems(results, tmp_path / "tree")
    assert any(words in text for text in found), found
    assert all(text.rpartition(" | ")[2] for text in found)


def test_all_problems_are_named_at_once_and_nothing_is_written(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    make_invalid(run_folder(results, "Offline"))
    shutil.rmtree(run_folder(results, "SingleStream", "accuracy"))
    found = problems(results, tmp_path / "tree", CM_MLPERF_ALLOW_SYNTHETIC="")
    assert len(found) == 3
    assert not (tmp_path / "tree").exists()


def test_an_empty_folder_is_refused_with_the_command_that_makes_runs(tmp_path: Path) -> None:
    (tmp_path / "results" / "run_1").mkdir(parents=True)
    for folder in (tmp_path / "results", tmp_path / "results" / "run_1"):
        (folder / "mlperf_log_detail.txt").touch()
    (found,) = problems(tmp_path / "results", tmp_path / "tree")
    assert "contain no runs" in found
    assert "generate-run-cmds,inference" in found


def test_another_round_than_that_of_the_seeds_is_refused_with_both_names(real_runs: Path, tmp_path: Path) -> None:
    found = problems(real_runs, tmp_path / "tree", CM_VERSION="v6.0")
    assert len(found) == 1
    assert "--version is v6.0, but the logs have the seeds of v6.1" in found[0]


def test_closed_demands_all_scenarios_of_its_category(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    shutil.rmtree(run_folder(results, "MultiStream", "accuracy").parent)
    found = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    assert any("closed, edge: resnet50 has no run of MultiStream" in text for text in found)
    assert problems(results, tmp_path / "tree") == [], "open does not"


def test_closed_demands_the_accuracy_that_open_does_not(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    metric = {"name": "acc", "value": 50.0, "reference": 76.46, "target": 75.0, "upper_limit": None, "passed": False}
    edit_json(run_folder(results, "Offline", "accuracy") / "accuracy.json", metrics=[metric])
    assert problems(results, tmp_path / "tree") == []
    found = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    assert any("has acc 50, expected at least 75.6954" in text for text in found)


def test_a_score_above_its_upper_limit_is_told_the_range():
    limited = SimpleNamespace(metric="GEN_LEN", target=100.0, upper_limit=120.0)
    run = SimpleNamespace(
        mode=Mode.ACCURACY, test="", name="run", result={}, accuracy={"metrics": [{"name": "GEN_LEN", "value": 130.0}]}
    )
    (found,) = checks._scores([run], SimpleNamespace(targets=(limited,)))
    assert found.text == "closed: run has GEN_LEN 130, expected 100 to 120"


def test_closed_demands_compliance_tests_for_each_scenario(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    for folder in sorted(results.rglob("TEST0*")):
        shutil.rmtree(folder, ignore_errors=True)
    found = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    wanted = [
        f"closed: resnet50 {scenario} has no {test}"
        for scenario in ("MultiStream", "Offline", "SingleStream")
        for test in ("TEST01", "TEST04")
    ]
    assert [text.partition(" | ")[0] for text in found] == wanted


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda test: [path.unlink() for path in test.glob("verify_*.txt")], "was not verified"),
        (
            lambda test: (test / "verify_performance.txt").write_text("TEST FAIL\n", encoding="utf-8"),
            "verify_performance.txt does not say TEST PASS",
        ),
    ],
)
def test_closed_demands_the_verdicts_of_compliance_tests(
    real_runs: Path, tmp_path: Path, fault: Callable[[Path], object], words: str
) -> None:
    results = copy_runs(real_runs, tmp_path / "my runs")
    fault(run_folder(results, "Offline", "TEST04"))
    (found,) = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    assert "closed: resnet50 Offline TEST04" in found
    assert words in found
    assert f"run,mlperf,compliance --results_dir='{results}/{SUT}/resnet50/Offline' --test=TEST04" in found


def with_other_bits(results: Path, baseline: str, compliance: str) -> None:
    """TEST01 of a model that does not repeat itself, with two files that stand for its responses."""
    test = run_folder(results, "Offline", "TEST01")
    (test / "verify_accuracy.txt").write_text("num_perf_log_data_mismatch = 3\nTEST FAIL\n", encoding="utf-8")
    for name, text in (("baseline", baseline), ("compliance", compliance)):
        (test / "accuracy" / f"{name}_accuracy.txt").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("baseline", "compliance", "is_accepted"),
    [
        ("accuracy=86.800%, good=868, total=1000\n", "accuracy=86.600%, good=866, total=1000\n", True),
        ("accuracy=86.800%, good=868, total=1000\n", "accuracy=80.000%, good=800, total=1000\n", False),
        ("accuracy=0.000%, good=0, total=1000\n", "accuracy=0.000%, good=0, total=1000\n", False),
        ("mAP=37.3%\n", "mAP=37.3%\n", False),
        ("", "", False),
    ],
)
def test_other_responses_are_excused_by_equal_scores_only(
    real_runs: Path, tmp_path: Path, baseline: str, compliance: str, is_accepted: bool
) -> None:
    results = copy_runs(real_runs, tmp_path)
    with_other_bits(results, baseline, compliance)
    found = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    words = ["closed: resnet50 Offline TEST01: verify_accuracy.txt does not say TEST PASS"]
    assert [text.partition(" | ")[0] for text in found] == ([] if is_accepted else words)


LIST = {"name": "imagenet/cal_image_list_option_1.txt", "sha256": "1" * 64, "is_official": True}


@pytest.mark.parametrize(
    ("calibration", "is_synthetic", "words"),
    [
        (LIST, False, None),
        ({**LIST, "name": "64 samples, seed 0", "is_official": False}, False, "calibrated with 64 samples, seed 0"),
        (None, False, "calibrated with no calibration that result.json names"),
        (None, True, None),
    ],
)
def test_closed_demands_the_official_calibration_of_int8_weights(
    real_runs: Path, tmp_path: Path, calibration: object, is_synthetic: bool, words: str | None
) -> None:
    results = copy_runs(real_runs, tmp_path)
    for scenario in SCENARIOS:
        for mode in ("performance", "accuracy"):
            change_setting("precision", "int8")(run_folder(results, scenario, mode))
            path = run_folder(results, scenario, mode) / "result.json"
            edit_json(path, calibration=calibration, is_synthetic={"model": is_synthetic, "dataset": is_synthetic})
    env = {"CM_MLPERF_SUBMISSION_DIVISION": "closed"}
    found = problems(results, tmp_path / "tree", **env)
    assert len(found) == (0 if words is None else 2 * len(SCENARIOS))
    assert all(words in text for text in found)
    assert problems(results, tmp_path / "tree") == []


@pytest.mark.parametrize(
    ("division", "origin", "data", "told"),
    [
        ("closed", "own", "given", ["an own model, not with the published file"]),
        ("closed", "published", "own", ["own data, not with the benchmark's"]),
        ("closed", "published", "given", []),
        ("closed", "server", "given", []),
        ("open", "own", "own", []),
    ],
)
def test_closed_refuses_weights_and_data_that_are_not_the_published_ones(
    real_runs: Path, tmp_path: Path, division: str, origin: str, data: str, told: list[str]
) -> None:
    results = copy_runs(real_runs, tmp_path)
    facts = {"model": origin, "dataset": data, "sample_count": 50_000, "benchmark_sample_count": 50_000}
    edit_json(run_folder(results, SCENARIOS[0], "performance") / "result.json", provenance=facts)
    found = problems(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION=division)
    assert [text.split(" was made with ")[1].split(" | ")[0] for text in found if " made with " in text] == told


def test_a_category_that_does_not_have_the_benchmark_is_refused(real_runs: Path, tmp_path: Path) -> None:
    env = {"CM_MLPERF_SUBMISSION_DIVISION": "closed", "CM_MLPERF_SUBMISSION_CATEGORY": "datacenter"}
    found = problems(real_runs, tmp_path / "tree", **env)
    assert any("resnet is not in category datacenter" in text for text in found)


@pytest.mark.parametrize(
    ("maps", "division", "words"),
    [
        ("", "open", "not mapped to one | open division"),
        ("own-net:yolo9000", "open", "that is not a benchmark of v6.1"),
        ("own-net:rnnt", "open", "that is not a benchmark of v6.1"),
        ("own-net:resnet", "closed", "the closed division only allows the official models"),
    ],
)
def test_a_model_that_is_no_benchmark_needs_a_mapping(
    real_runs: Path, tmp_path: Path, maps: str, division: str, words: str
) -> None:
    results = copy_runs(real_runs, tmp_path)
    model = run_folder(results, "Offline", "accuracy").parents[1]
    model.rename(model.with_name("own-net"))
    env = {"CM_MLPERF_MODEL_MAPS": maps, "CM_MLPERF_SUBMISSION_DIVISION": division}
    found = problems(results, tmp_path / "tree", **env)
    assert any(words in text for text in found), found


def test_a_mapping_of_a_benchmark_to_itself_changes_nothing(real_runs: Path, tmp_path: Path) -> None:
    env = {"CM_MLPERF_SUBMISSION_DIVISION": "closed", "CM_MLPERF_SUBMISSION_CATEGORY": "datacenter"}
    mapped = problems(real_runs, tmp_path / "tree", **env, CM_MLPERF_MODEL_MAPS="resnet50:resnet")
    assert mapped == problems(real_runs, tmp_path / "tree", **env) != []


def test_a_benchmark_of_older_rounds_is_named_with_them(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    model = run_folder(results, "Offline", "accuracy").parents[1]
    model.rename(model.with_name("rnnt"))
    assert any("rnnt is not a benchmark of v6.1, only of v0.7" in text for text in problems(results, tmp_path / "tree"))


def test_missing_edge_scenarios_are_inferred_only_when_asked(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    for scenario in ("MultiStream", "Offline"):
        shutil.rmtree(run_folder(results, scenario, "accuracy").parent)

    def scenarios(**env: str) -> list[tuple[str, str]]:
        gathered = tree_builder.gather(request_of(env_of(results, tmp_path / "tree", **env), tmp_path))
        assert gathered.problems == ()
        return sorted({(run.place.scenario, run.scenario.value) for run in gathered.runs})

    assert scenarios() == [("SingleStream", "SingleStream")]
    assert scenarios(CM_MLPERF_DUPLICATE_SCENARIO_RESULTS="yes") == [
        ("MultiStream", "SingleStream"),
        ("Offline", "SingleStream"),
        ("SingleStream", "SingleStream"),
    ]


def test_of_two_runs_for_one_place_the_valid_newer_one_is_taken(real_runs: Path, tmp_path: Path) -> None:
    second = copy_runs(real_runs, tmp_path / "second")
    make_invalid(run_folder(second, "Offline"))
    edit_json(run_folder(second, "Offline") / "result.json", started_utc="2027-01-01T00:00:00+00:00")
    edit_json(run_folder(second, "SingleStream") / "result.json", started_utc="2027-01-01T00:00:00+00:00")
    gathered = tree_builder.gather(request_of(env_of(f"{real_runs},{second}", tmp_path / "tree"), tmp_path))
    taken = {(run.scenario.value, run.mode.value): run.folder for run in gathered.runs if not run.test}
    assert taken["Offline", "performance"].is_relative_to(real_runs)
    assert taken["SingleStream", "performance"].is_relative_to(second)
    assert len(tree_builder.story_of_left_out(gathered)) == len(gathered.left_out) > 0


def test_the_command_that_makes_a_missing_run_repeats_how_the_others_were_made(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    made = run_folder(results, SCENARIOS[0], "performance")
    edit_json(made / "result.json", command=["<cache>/mlperf-cuda/bin/python3", "-m", "crowdperf.harness"])
    shutil.rmtree(run_folder(results, SCENARIOS[0], "accuracy"))
    (found,) = [text for text in problems(results, tmp_path / "tree") if "has no accuracy run" in text]
    for words in ("_accuracy-only", "--backend=", "--device=", "--adr.python.name=mlperf-cuda", "--results_dir=/"):
        assert words in found, found
    assert "RESULTS" not in found and "..." not in found
