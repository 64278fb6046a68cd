"""report-mlperf-submission: the summary, the page and its numbers, of results folders and of submission trees."""

import csv
import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import exported, load_module, load_recipe, recipe_meta
from results_builder import RECORDED, accuracy_run, recorded_run, v07_run

from crowdperf.logs.result_rows import read_results

recipe = load_recipe("report-mlperf-submission")

META = recipe_meta("report-mlperf-submission")
SYNTHETIC = "synthetic input, not an MLPerf result"
TEST_RUN = "test run, not a valid MLPerf result"


@pytest.fixture
def call(preprocessed):
    """Makes a report of a folder in a folder of its own."""
    return partial(preprocessed, recipe, META)


def results_folder(inside: Path, system: str = "T4x1_TRT") -> Path:
    for scenario, recording in RECORDED.items():
        recorded_run(inside / "r" / system / "resnet50" / scenario / "performance" / "run_1", recording)
        accuracy_run(inside / "r" / system / "resnet50" / scenario / "accuracy")
    return inside / "r"


def tree(inside: Path, system_facts: dict[str, Any] | None = None, own: dict[str, Any] | None = None,
         division: str = "closed") -> Path:  # fmt: skip
    """A tree with one result; ``own``: the part of measurements.json that is ours."""
    submitter = inside / "tree" / division / "Me"
    place = submitter / "results" / "my_system" / "resnet50" / "Offline"
    recorded_run(place / "performance" / "run_1", "valid-offline")
    accuracy_run(place / "accuracy")
    (submitter / "systems").mkdir()
    (submitter / "systems" / "my_system.json").write_text(json.dumps(system_facts or {"cooling": "air & <water>"}))
    (place / "measurements.json").write_text(json.dumps({"retraining": "no", **({"crowdperf": own} if own else {})}))
    return inside / "tree"


def page(answer: dict[str, Any], number: int = 0) -> str:
    return Path(answer["state"]["mlperf_report"]["reports"][number]).read_text()


def rows(answer: dict[str, Any]) -> list[dict[str, str]]:
    with open(answer["state"]["mlperf_report"]["summary"], newline="") as file:
        return list(csv.DictReader(file))


def test_the_summary_has_every_figure_with_its_validity_and_its_place(inside, call):
    results_folder(inside)
    answer = call(input="r")
    assert answer["return"] == 0, answer
    found = rows(answer)
    assert list(found[0])[:5] == ["system", "benchmark", "scenario", "metric", "value"]
    assert [(row["scenario"], row["value"], row["validity"]) for row in found if row["unit"]] == [
        ("SingleStream", "0.00282", "VALID"),
        ("MultiStream", "0.019035", "VALID"),
        ("Offline", "1612210.0", "VALID"),
        ("Server", "5159.22", "VALID"),
    ]
    for row in found:
        file = inside / "r" / row["file"]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == row["sha256"]
        line = file.read_text().splitlines()[int(row["line"]) - 1]
        value = float(row["value"])
        assert any(text in line for text in (f"{value:g}", str(int(value)), str(round(value * 1e6)), f"{value:.3f}"))
    assert {row["value"] for row in found if row["metric"] == "accuracy acc"} == {"75.92"}


def test_an_invalid_run_is_in_the_summary_and_on_the_page_with_its_reason(inside, call):
    recorded_run(inside / "r" / "s" / "resnet50" / "Server" / "performance" / "run_1", "invalid-server-too-late")
    answer = call(input="r")
    assert rows(answer)[0]["validity"] == "INVALID"
    text = page(answer)
    assert '<td class="bad" data-label="LoadGen">INVALID</td>' in text
    assert "performance constraints not satisfied" in text
    assert "has no accuracy run" in text


def test_a_name_in_a_tree_is_no_formula_of_a_spreadsheet(inside, call):
    recorded_run(inside / "r" / "=1+1" / "resnet50" / "Offline" / "performance" / "run_1", "valid-offline")
    (row,) = rows(call(input="r"))
    assert (row["system"], row["value"]) == ("'=1+1", "1612210.0")


def test_every_number_of_the_page_leads_to_its_file_line_and_digest(inside, call):
    results_folder(inside)
    text = page(call(input="r"))
    links = re.findall(r'<a href="#(log-\d+)">', text)
    assert len(links) >= 4 * 3, "the result, the accuracy and the latencies of each scenario"
    assert all(f'<span id="{name}">' in text for name in links)
    assert text.count('<span id="log-') >= 4 * 8
    for log in sorted((inside / "r").rglob("performance/run_1/mlperf_log_detail.txt")):
        assert hashlib.sha256(log.read_bytes()).hexdigest() in text
        assert log.relative_to(inside / "r").as_posix() in text


def test_the_page_needs_nothing_from_elsewhere_and_escapes_everything(inside, call):
    own = {"label": "<script>alert(1)</script>", "is_synthetic": {"model": False, "dataset": False},
           "versions": {"<b>": '"&'}}  # fmt: skip
    tree(inside, own=own)
    text = page(call(input="tree"))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "air &amp; &lt;water&gt;" in text
    assert "default-src 'none'" in text
    assert not any(word in text for word in ("http://", "https://", "src=", "@import", "url("))
    assert text.count("<svg") == text.count('role="img" aria-label=') == text.count("<desc>") > 0
    assert text.count("<table") == text.count("<thead><tr><th scope=")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (
            {"label": SYNTHETIC, "is_synthetic": {"model": True, "dataset": True}},
            f"All results on this page: {SYNTHETIC}",
        ),
        ({"label": "full-length run", "is_synthetic": {"model": False, "dataset": False}}, None),
        (None, "It is unknown whether model and data of these results are real or synthetic"),
    ],
)
def test_what_a_result_is_made_with_is_said_in_plain_words(inside, call, own, words):
    tree(inside, own=own)
    text = page(call(input="tree"))
    assert ('<p class="label">' in text) == (words is not None)
    assert words is None or words in text
    assert ("are synthetic: the results show" in text) == (own is not None and own["label"] == SYNTHETIC)


def test_a_run_that_was_asked_to_be_short_is_called_a_test_run(inside, call):
    run = inside / "r" / "s" / "resnet50" / "Offline" / "performance" / "run_1"
    recorded_run(run, "valid-offline", min_duration_ms=2000)
    answer = call(input="r")
    assert rows(answer)[0]["label"] == TEST_RUN
    assert f"not compared: {TEST_RUN}" in page(answer)


def test_a_result_stands_beside_the_published_one_of_the_same_system_only(inside, call):
    results_folder(inside, "T4x1_TRT")
    text = page(call(input="r"))
    assert "mlcommons/inference_results_v0.7: closed/NVIDIA/results/T4x1_TRT/resnet50/Offline" in text
    assert f"{1612210 / 6035.6:.2f}" in text
    assert "Times published" in text
    for system in ("T4x2_TRT", "t4x1_trt"):
        results_folder(inside / system, system)
        other = page(call(input=f"{system}/r", output=f"out-{system}"))
        assert "no published result of this system is known here" in other
        assert "inference_results" not in other


def test_the_same_processors_count_as_the_same_system(inside, call):
    facts = {"accelerators_per_node": "0", "host_processor_model_name": "Intel(R) Xeon(R) Platinum 8480+",
             "host_processors_per_node": "2", "number_of_nodes": "1"}  # fmt: skip
    tree(inside, facts, {"label": "", "is_synthetic": {"model": False, "dataset": False}})
    assert "closed/Intel/results/1-node-2S-SPR-PyTorch-INT8/resnet50/Offline" in page(call(input="tree"))
    file = inside / "tree/closed/Me/systems/my_system.json"
    file.write_text(json.dumps({**facts, "host_processors_per_node": "1"}))
    assert "no published result" in page(call(input="tree"))


def test_a_made_result_is_not_compared(inside, call):
    results_folder(inside, "T4x1_TRT")
    for run in (inside / "r").rglob("run_1"):
        (run / "result.json").write_text(json.dumps({"label": SYNTHETIC, "is_synthetic": {"model": True}}))
    text = page(call(input="r"))
    assert f"not compared: {SYNTHETIC}" in text
    assert "inference_results" not in text


def test_the_closed_division_has_targets_and_the_open_one_has_none(inside, call):
    tree(inside, division="closed")
    tree(inside, division="open")
    answer = call(input="tree")
    names = [Path(name).name for name in answer["state"]["mlperf_report"]["reports"]]
    assert names == ["report-closed-Me.html", "report-open-Me.html"]
    assert "75.695" in page(answer, 0)
    assert '<td class="good" data-label="Accuracy met">passed</td>' in page(answer, 0)
    assert "75.695" not in page(answer, 1)
    assert "Me, closed division" in page(answer, 0)


def test_the_load_of_a_tree_comes_from_the_results_folder_it_was_made_of(inside, call):
    tree(inside)
    run = recorded_run(inside / "r" / "s" / "resnet50" / "Offline" / "performance" / "run_1", "valid-offline")
    load = {"columns": ["time_s", "rss_bytes"], "rows": [[1.0, 1 << 20], [2.0, 3 << 20], [3.0, 2 << 20]]}
    (run / "load.json").write_text(json.dumps(load))
    assert "No run here recorded its load" in page(call(input="tree"))
    assert "memory of the process 1 to 3 MiB" in page(call(input="tree", results_dir="r"))


def test_origins_of_the_systems_facts_are_shown_where_a_file_has_them(inside, call):
    tree(inside, {"cooling": "air", "status": "available"})
    assert ">Origin</th>" not in page(call(input="tree"))
    (inside / "tree_facts").mkdir()
    facts = {"cooling": {"value": "air", "origin": "answered on the terminal"}}
    content = {"format": 1, "systems": {"my_system": {"facts": facts, "is_this_machine": True}}}
    (inside / "tree_facts" / "systems.json").write_text(json.dumps(content))
    text = page(call(input="tree"))
    assert "answered on the terminal" in text
    assert ">unknown</td>" in text


def test_results_of_v07_are_read_from_their_summaries(inside, call):
    v07_run(inside / "r" / "T4x1_TRT" / "resnet50" / "MultiStream" / "performance" / "run_1", "MultiStream", 136)
    answer = call(input="r")
    assert rows(answer)[0]["metric"] == "samples per query"
    assert (rows(answer)[0]["value"], rows(answer)[0]["unit"]) == ("136.0", "samples")
    text = page(answer)
    assert "only its summary could be read" in text
    assert "136 samples" in text
    assert "1.00" not in text  # T4x1's published MultiStream result is 272
    assert "0.50" in text


@pytest.mark.parametrize("planted", ["/home/jane/models", "/Users/jane/x", "ghp_0123456789abcdefghijABCDEFGHIJ012345"])
def test_a_home_folder_or_a_token_never_gets_into_a_page(inside, call, planted):
    tree(inside, {"hw_notes": f"measured in {planted}"})
    answer = call(input="tree")
    assert answer["return"] == 1
    assert "would reveal" in answer["error"]
    assert planted not in answer["error"]
    assert not list(inside.rglob("*.html"))
    assert not any(planted in path.read_text() for path in inside.glob("mlperf_report/*"))


def test_paths_of_the_runs_records_are_not_on_the_page(inside, call):
    results_folder(inside)
    for run in (inside / "r").rglob("run_1"):
        result = {"label": "", "command": ["/home/jane/venv/bin/python3"], "machine": {"processor": "X"},
                  "run": {"model_path": {"value": "/home/jane/model.onnx", "origin": "user"}}}  # fmt: skip
        (run / "result.json").write_text(json.dumps(result))
    answer = call(input="r")
    assert answer["return"] == 0, answer
    assert "jane" not in page(answer)
    assert str(inside) not in page(answer)


@pytest.mark.parametrize("output", ["tree", "tree/report", "tree/closed/Me", "tree/closed/Me/results/x"])
def test_a_report_does_not_spoil_a_tree(inside, call, output):
    tree(inside)
    before = sorted(inside.rglob("*"))
    answer = call(input="tree", output=output)
    assert answer["return"] == 1
    assert "submission tree" in answer["error"]
    assert sorted(inside.rglob("*")) == before


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [({}, "--input is missing"), ({"input": "x"}, "is not a folder"), ({"input": "."}, "no LoadGen run was found")],
)
def test_wrong_inputs_are_told(inside, call, inputs, expected):
    answer = call(**inputs)
    assert answer["return"] == 1
    assert expected in answer["error"]
    assert "hint:" in answer["error"]


def test_an_empty_output_is_the_usual_folder(inside, call):
    results_folder(inside, "T4x1_TRT")
    answer = call(input="r", output="")
    assert answer["return"] == 0, answer["error"]
    assert (inside / "mlperf_report" / "results_summary.csv").is_file()


def test_runs_of_different_length_are_kept_apart_by_their_folders(inside, call):
    for style, asked_ms in (("test", 2000), ("valid", 600_000)):
        run = inside / "r" / f"{style}_results" / "T4x1_TRT" / "resnet50" / "Offline" / "performance" / "run_1"
        recorded_run(run, "valid-offline", min_duration_ms=asked_ms)
    answer = call(input="r")
    assert [row["label"] for row in rows(answer)] == [TEST_RUN, ""]
    names = [Path(name).name for name in answer["state"]["mlperf_report"]["reports"]]
    assert names == ["report-test_results.html", "report-valid_results.html"]


def test_logs_that_cannot_be_placed_are_listed(inside, call):
    results_folder(inside)
    recorded_run(inside / "r" / "stray" / "logs" / "here", "valid-offline")
    answer = call(input="r")
    assert "&#x27;here&#x27; is not a scenario" in page(answer)
    assert len(answer["state"]["mlperf_report"]["left_out"]) == 1


def two_backends(inside: Path) -> Path:
    """Three calls on a machine, as run,mlperf,inference leaves them: onnxruntime twice, PyTorch once, half as fast."""
    for run_id, backend in (
        ("20261123T000001Z-resnet50-onnxruntime-cpu", "onnxruntime"),
        ("20261123T000002Z-resnet50-onnxruntime-cpu", "onnxruntime"),
        ("20261123T000003Z-resnet50-pytorch-cpu", "pytorch"),
    ):
        scenario = inside / "r" / run_id / "resnet50" / "Offline"
        run = recorded_run(scenario / "performance" / "run_1", "valid-offline")
        if backend == "pytorch":
            for path in run.iterdir():
                path.write_text(path.read_text().replace("1.61221e+06", "806105").replace("1612210", "806105"))
        accuracy_run(scenario / "accuracy", f"accuracy={75 + int(run_id[14]) / 10:.3f}%, good=1, total=2")
        metadata = {"system_name": f"Xeonx2_{backend}"}
        result = {
            "run": {"backend": {"value": backend}}, "label": TEST_RUN, "duration_s": 60.0,
            "metric": {"name": "throughput"}, "machine": {"core_count": 2},
            "load": {"mean_machine_cpu_percent": 99.8, "mean_process_cpu_percent": 85.6},
        }  # fmt: skip
        for folder in (run, scenario / "accuracy"):
            (folder / "metadata.json").write_text(json.dumps(metadata))
        (run / "result.json").write_text(json.dumps(result))
    return inside / "r"


def test_results_of_several_calls_and_backends_have_names_of_their_own(inside, call):
    two_backends(inside)
    text = page(call(input="r"))
    first, second, third = (
        "resnet50, Offline, onnxruntime, run 20261123T000001Z",
        "resnet50, Offline, onnxruntime, run 20261123T000002Z",
        "resnet50, Offline, pytorch",
    )
    for name in (first, second, third):
        assert f'<th scope="row">{name}</th>' in text  # its latencies
    assert text.count("<title>Latency, Offline</title>") == 2, "one chart for the scenario, for a page and for a phone"
    for name in (first, second, third):
        assert text.count(f"<title>{name} p99: ") == 2, "a line for each run"
    busy = "other programs used 57 % of the CPU during {}: do not compare these results"
    assert busy.format(f"{first}, 57 % during {second}") in text
    assert busy.format(third) in text
    assert f"All results on this page: {TEST_RUN}" in text


def test_a_score_stands_beside_the_run_of_its_call(inside, call):
    two_backends(inside)
    lines = [line for line in page(call(input="r")).splitlines() if ">Offline, run 20261123T00000" in line]
    assert len(lines) == 2
    for line, time, percent in zip(lines, "12", ("75.100", "75.200"), strict=True):
        assert f"Offline, run 20261123T00000{time}Z" in line
        assert percent in line


def test_the_same_model_with_two_backends_is_compared(inside, call):
    two_backends(inside)
    part = page(call(input="r")).partition("<h2>Backends compared</h2>")[2].partition("<h2>")[0]
    cells = [re.findall(r">([^<>]+)</t[hd]>", line) for line in part.splitlines() if 'scope="row"' in line]
    assert cells == [
        ["resnet50, Offline", "onnxruntime", "1,612,210 samples/s", "VALID", "1.00"],
        ["resnet50, Offline", "pytorch", "806,105 samples/s", "VALID", "0.50"],
    ]


def test_one_backend_is_compared_with_nothing(inside, call):
    results_folder(inside)
    assert "Backends compared" not in page(call(input="r"))


def test_labels_name_each_result_once(inside):
    results_folder(inside)
    own = load_module("report-mlperf-submission", "rownames")
    found = read_results(inside / "r").rows
    assert own.Names(found).of([*found, *found[:2]]) == "resnet50: SingleStream, MultiStream, Offline, Server"


def test_planning_changes_nothing_and_only_named_keys_leave_the_recipe(inside, call, hook_input):
    assert recipe.plan(hook_input({})) == {"return": 0}
    results_folder(inside)
    left = exported("report-mlperf-submission", call(input="r")["env"])
    assert sorted(left) == ["CM_MLPERF_REPORT_FILES", "CM_MLPERF_REPORT_SUMMARY_FILE"]
