"""Each curve of an Endpoints tree becomes one result with its points."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from curve_tree import NUMBERS, write_curve

from crowdperf.store.imports import NothingToImport, import_loaded, load
from crowdperf.store.query import Filter
from crowdperf.store.result_json import result_object
from crowdperf.store.store import Store


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curve")
    write_curve(folder, label="synthetic")
    return folder / "tree"


def test_a_tree_is_one_curve_with_all_its_points(tree: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tree))
        assert (report.kind, len(report.added), report.left_out) == ("endpoints-tree", 1, [])
        found = store.result(report.added[0])
        assert import_loaded(store, load(tree)).known == 1
        assert store.find(Filter(chosen={"suite": ["endpoints"]})).rows[0].submitter == "LabOrg"
    result, place = found.result, found.result.configuration
    assert [point.concurrency for point in result.curve] == list(NUMBERS)
    assert (place.benchmark, place.scenario, place.division, place.precision) == (
        "gpt-oss-120b",
        "Curve",
        "rdi",
        "fp32",
    )
    assert (place.run_class, place.data_kind) == ("valid", "synthetic")
    assert result.labels == ("unofficial", "synthetic")
    assert result.value == max(point.system_tps for point in result.curve)
    for point in result.curve:
        summary = json.loads(next(tree.rglob(f"r{point.concurrency}/result_summary.json")).read_text())
        tps = summary["output_sequence_lengths"]["total"] / summary["duration_ns"] * 1e9
        assert point.system_tps == pytest.approx(tps)
    assert (place.system.nodes, place.system.cores, place.system.memory_gib) == (1, 2, 24)
    assert {point.concurrency for point in result.curve if point.accuracy is not None} == {1, 4, 12, 64}
    assert len(result.files) == 3 * 4 + 2 * 3


def test_a_point_without_figures_is_noted_and_left_out_of_its_curve(tmp_path: Path) -> None:
    write_curve(tmp_path)
    summary = next((tmp_path / "tree").rglob("r12/result_summary.json"))
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "ttft": None}))
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tmp_path / "tree"))
        result = store.result(report.added[0]).result
    assert [point.concurrency for point in result.curve] == [number for number in NUMBERS if number != 12]
    assert "r12: its summary has no tokens per second, TPOT or TTFT" in result.notes


def test_an_unreadable_point_leaves_its_curve_out_with_the_reason(tmp_path: Path) -> None:
    write_curve(tmp_path)
    next((tmp_path / "tree").rglob("r12/result_summary.json")).write_text("{}")
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tmp_path / "tree"))
    assert report.added == []
    assert "result_summary.json" in report.left_out[0].reason


def viewer_bundle() -> dict[str, Any]:
    """What mlperf-viz 2.0.0 exports of two points of a tree."""
    runs = [
        {
            "submission_id": "LabOrg/sub-0001/lab-vm/gpt-oss-120b",
            "label": f"r{number}",
            "run": {
                "direct_fields": {"concurrency": number, "config_region": "low_latency", "measured_run_duration": 61.0},
                "derived_fields": {"system_tps": 10.0 * number, "tps_per_user": 9.5, "ttft": 12.5, "qps": 1},
            },
        }
        for number in (8, 1)
    ]
    combined = {
        "submission_info": {"submitter_org_names": "LabOrg"},
        "sut_metadata": {"system_name": "lab machine"},
        "sut_details": {
            "serving_framework": "Gale 2.1",
            "node_types": [{"number_of_nodes": 2, "accelerator_model_name": "NVIDIA Z9", "accelerators_per_node": 4}],
        },
        "model_metadata": {"division": "Standardized", "model_name": "gpt-oss-120b", "model_precision": "fp4"},
    }
    entry = {"id": runs[0]["submission_id"], "source_path": "/home/anna/tree", "combined_submission": combined}
    return {"bundle_version": 1, "submissions": [entry, {"id": "empty"}], "runs": runs}


def test_a_bundle_of_the_viewer_is_a_curve_without_its_makers_folder(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text(json.dumps(viewer_bundle()))
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tmp_path / "bundle.json"))
        result = store.result(report.added[0]).result
    assert [(one.place, one.reason) for one in report.left_out] == [("submissions[1]", "it has no model")]
    assert re.fullmatch("gpt-oss-120b [0-9a-f]{64}", result.run_id)
    place = result.configuration
    assert [(point.concurrency, point.system_tps) for point in result.curve] == [(1, 10.0), (8, 80.0)]
    assert (place.stack, place.precision, place.run_class, place.division) == ("gale", "fp4", "fast", "standardized")
    assert (place.system.accelerator, place.system.accelerator_count, place.system.nodes) == ("NVIDIA Z9", 8, 2)
    assert place.model_digest == "endpoints:gpt-oss-120b"
    assert "anna" not in json.dumps(result_object(result))


def test_a_curve_with_nan_is_left_out(tmp_path: Path) -> None:
    content = viewer_bundle()
    content["runs"][0]["run"]["derived_fields"]["qps"] = float("nan")
    (tmp_path / "bundle.json").write_text(json.dumps(content))
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tmp_path / "bundle.json"))
    assert report.added == [] and "not JSON compliant" in report.left_out[0].reason


@pytest.mark.parametrize("wrong", [5, "x", [5], None])
def test_nodes_that_are_none_leave_the_curve(tmp_path: Path, wrong: object) -> None:
    content = viewer_bundle()
    content["submissions"][0]["combined_submission"]["sut_details"]["node_types"] = wrong
    (tmp_path / "bundle.json").write_text(json.dumps(content))
    with Store.open(tmp_path / "a.db") as store:
        assert len(import_loaded(store, load(tmp_path / "bundle.json")).added) == 1


@pytest.mark.parametrize("text", ["{}", "[]", "x", '{"bundle_version": 2, "submissions": [], "runs": []}'])
def test_another_json_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bundle.json").write_text(text)
    with pytest.raises(NothingToImport, match=r"bundle\.json"):
        load(tmp_path / "bundle.json")
