"""The submission tree: what is in it, what is not, and what makes no curve."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from curve_tree import NUMBERS, declaration, measured, setup_of
from report_folder import Setup

from crowdperf.endpoints.fields import ClientFileError
from crowdperf.endpoints.pointfiles import Offline, read_point, read_provenance, read_system
from crowdperf.endpoints.tree import MeasuredPoint, TreeError, masked_config, write_tree


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> tuple[MeasuredPoint, ...]:
    return measured(tmp_path_factory.mktemp("runs"))


def test_each_point_has_its_files_and_the_clients_bytes(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    submission = write_tree(tmp_path, declaration(), points)
    assert submission == tmp_path / "LabOrg" / "sub-0001"
    folder = submission / "results" / "lab-vm" / "gpt-oss-120b"
    assert sorted(one.name for one in folder.iterdir()) == sorted(f"r{number}" for number in NUMBERS)
    names = ["accuracy_results.json", "config.yaml", "point.yaml", "result_summary.json", "system_desc.json"]
    assert sorted(os.listdir(folder / "r4")) == names
    assert sorted(os.listdir(folder / "r40")) == names[1:]
    source = points[1].run.folder / "performance" / "result_summary.json"
    assert (folder / "r4" / "result_summary.json").read_bytes() == source.read_bytes()


def test_points_declare_region_seeds_and_offline(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    folder = write_tree(tmp_path, declaration(), points) / "results" / "lab-vm" / "gpt-oss-120b"
    declared = {number: read_point(folder / f"r{number}" / "point.yaml") for number in NUMBERS}
    assert [declared[one].region.split("_")[0] for one in NUMBERS] == ["low", "low", "med", *["high"] * 4]
    assert [one for one in NUMBERS if declared[one].offline == "elected"] == [64]
    assert {one.model_seed for one in declared.values()} == {9315206023656308754}
    assert {(one.seed_set, one.target_cohort, one.c_max) for one in declared.values()} == {("A", "2026-11-C1", 64)}


def test_utilization_is_the_share_of_the_greatest_throughput(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    folder = write_tree(tmp_path, declaration(c_min=1), points) / "results" / "lab-vm" / "gpt-oss-120b"
    values = [json.loads((folder / f"r{one}" / "system_desc.json").read_text())["tps_utilization"] for one in NUMBERS]
    assert max(values) == 1 and all(0 < one <= 1 for one in values)
    assert read_system(folder / "r1" / "system_desc.json").c_min_override == 1


def test_provenance_says_what_the_other_files_cannot(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    dated = (replace(points[0], started_utc="2026-11-23T10:00Z", client_commit="ea332753"), *points[1:])
    provenance = read_provenance(write_tree(tmp_path, declaration(label="test run"), dated) / "docs/provenance.json")
    assert (provenance.label, provenance.dataset_samples) == ("test run", 64)
    path = tmp_path / "other.json"
    path.write_text(json.dumps({**json.loads(next(tmp_path.rglob("provenance.json")).read_text()), "format": 99}))
    with pytest.raises(ClientFileError, match="format"):
        read_provenance(path)
    assert provenance.points["r1"].client_commit == "ea332753"
    assert [provenance.points[f"r{one}"].greatest_in_flight for one in NUMBERS] == list(NUMBERS)
    assert all(len(one.events_sha256) == 64 and not one.differences for one in provenance.points.values())


def test_paths_addresses_and_keys_of_the_machine_stay_out():
    config = masked_config(
        "model_params: {name: openai/gpt-oss-120b, tokenizer_name: /home/somebody/tok}\n"
        "datasets: [{path: ~/data/questions.jsonl}]\n"
        "endpoint_config: {api_key: verysecret, endpoints: ['https://user:word@gpu-17.lab:8443/v1', 'http://[gpu']}\n"
        "report_dir: /scratch/somebody/r4\n"
    )
    assert config == {
        "model_params": {"name": "openai/gpt-oss-120b", "tokenizer_name": "tok"},
        "datasets": [{"path": "questions.jsonl"}],
        "endpoint_config": {"endpoints": ["https://endpoint:8443/v1", "http://endpoint"]},
        "report_dir": "r4",
    }


def test_a_name_of_a_model_hub_is_no_path():
    assert masked_config("model_params: {tokenizer_name: openai/gpt-oss-120b}") == {
        "model_params": {"tokenizer_name": "openai/gpt-oss-120b"}
    }


def test_a_second_tree_replaces_the_first_and_leaves_nothing_behind(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    write_tree(tmp_path, declaration(), points)
    submission = write_tree(tmp_path, declaration(readme="# Again\n"), points[:-1] + points[-1:])
    assert (submission / "src" / "stub" / "README.md").read_text() == "# Again\n"
    assert os.listdir(submission.parent) == ["sub-0001"]


def test_a_failure_keeps_the_former_tree_and_removes_the_unfinished(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    former = write_tree(tmp_path / "tree", declaration(), points)
    broken = tmp_path / "broken"
    broken.mkdir()
    lost = replace(points[0], run=replace(points[0].run, folder=broken))
    with pytest.raises(OSError):
        write_tree(tmp_path / "tree", declaration(readme="# New\n"), (lost, *points[1:]))
    assert (former / "src" / "stub" / "README.md").read_text() == "# A made-up server\n"
    assert os.listdir(former.parent) == ["sub-0001"]


def test_a_dedicated_offline_run_is_a_point_of_its_own(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    burst = measured(tmp_path / "burst", {128: Setup(concurrency=128, samples=128, is_offline=True)})
    submission = write_tree(tmp_path, declaration(offline=Offline.DEDICATED), points + burst)
    raw = yaml.safe_load((submission / "results/lab-vm/gpt-oss-120b/r128/point.yaml").read_text())
    assert (raw["concurrency"], raw["offline"], "region" in raw) == (128, "dedicated", False)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"c_max": 32}, "C_max must be greater than 32, got 32"),
        ({"c_max": 100}, "offline=elected needs the point at C_max, r100"),
        ({"c_max": 40}, "r56 is above 44; r64 is above 44"),
        ({"offline": Offline.DEDICATED}, "but 0 runs with load pattern max_throughput"),
        ({"target_cohort": "2027-01-C0"}, "seed set A is for 2026-10-C1, .*, not '2027-01-C0'"),
    ],
)
def test_what_makes_no_curve_is_reported_before_anything_is_written(
    points: tuple[MeasuredPoint, ...], tmp_path: Path, changed: dict[str, object], words: str
):
    with pytest.raises(TreeError, match=words):
        write_tree(tmp_path / "tree", declaration(**changed), points)
    assert not (tmp_path / "tree").exists()


def test_two_runs_for_one_point_are_refused(points: tuple[MeasuredPoint, ...], tmp_path: Path):
    again = measured(tmp_path / "again", {4: setup_of(4)})
    with pytest.raises(TreeError, match="two runs for r4"):
        write_tree(tmp_path / "tree", declaration(), points + again)
