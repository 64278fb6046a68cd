"""Each curve of an Endpoints tree becomes one result with its points."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "curves"))

from curve_tree import NUMBERS, write_curve
from results_store.importing import import_loaded, load
from results_store.listing import Filter
from results_store.store import Store


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


def test_an_unreadable_point_leaves_its_curve_out_with_the_reason(tmp_path: Path) -> None:
    write_curve(tmp_path)
    next((tmp_path / "tree").rglob("r12/result_summary.json")).write_text("{}")
    with Store.open(tmp_path / "a.db") as store:
        report = import_loaded(store, load(tmp_path / "tree"))
    assert report.added == []
    assert "result_summary.json" in report.left_out[0].reason
