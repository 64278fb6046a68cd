"""Readers of the client's files: figures and units, and all that is wrong with a file at once."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from report_folder import SEED_SET_A, Setup, write_report
from tree_changes import edited

from crowdperf.endpoints.clientfiles import read_accuracy, read_config, read_run, read_summary
from crowdperf.endpoints.fields import MAX_BYTES, ClientFileError

SETUP = Setup(concurrency=4, samples=16, dataset_samples=8, accuracy_samples=8)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report") / "r4", SETUP)


def test_a_report_folder_gives_its_figures_in_the_rules_units(report: Path):
    run = read_run(report)
    raw = json.loads((report / "performance" / "result_summary.json").read_text())
    assert run.summary.system_tps == pytest.approx(raw["tps"])
    assert run.summary.tps_per_user == pytest.approx(1e9 / raw["tpot"]["percentiles"]["90.0"])
    assert run.summary.ttft_p90_ms == raw["ttft"]["percentiles"]["90.0"] / 1e6
    assert run.accuracy is not None and [one.values for one in run.accuracy.runs] == [{"": 0.84}]
    assert (run.config.concurrency, run.config.scheduler_seed, run.config.sample_seed) == (4, *SEED_SET_A)
    assert run.config.streaming == "on"


def test_a_point_of_a_tree_reads_as_a_report_folder_does(report: Path, tmp_path: Path):
    for name in ("config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json"):
        (tmp_path / Path(name).name).write_bytes((report / name).read_bytes())
    flat = read_run(tmp_path)
    assert flat == replace(read_run(report), folder=tmp_path, events=None)


def changed(report: Path, tmp_path: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> Path:
    path = tmp_path / Path(name).name
    path.write_bytes((report / name).read_bytes())
    edited(path, edit)
    return path


def test_figures_that_the_client_could_not_compute_are_none(report: Path, tmp_path: Path):
    def without_tokens(content: dict[str, Any]) -> None:
        content.update(tpot={}, output_sequence_lengths={}, tps=None, duration_ns=None)
        content["ttft"]["percentiles"]["90.0"] = None

    summary = read_summary(changed(report, tmp_path, "performance/result_summary.json", without_tokens))
    assert (summary.system_tps, summary.tps_per_user, summary.ttft_p90_ms, summary.tps) == (None, None, None, None)


def test_percentiles_are_found_by_number_however_the_key_is_written(report: Path, tmp_path: Path):
    def whole_keys(content: dict[str, Any]) -> None:
        content["tpot"]["percentiles"] = {"90": 2_000_000, "90.0": 2_000_000.0}

    summary = read_summary(changed(report, tmp_path, "performance/result_summary.json", whole_keys))
    assert summary.tps_per_user == 500


def test_all_problems_of_a_file_are_reported_at_once_with_their_key_paths(report: Path, tmp_path: Path):
    def wrong(content: dict[str, Any]) -> None:
        del content["n_samples_failed"]
        content["n_samples_issued"] = -1
        content["duration_ns"] = "long"
        content["ttft"]["percentiles"] = {"90": 1, "90.0": 2, "most": 3}
        content["latency"] = []

    with pytest.raises(ClientFileError) as caught:
        read_summary(changed(report, tmp_path, "performance/result_summary.json", wrong))
    assert str(caught.value).startswith(
        "result_summary.json: n_samples_issued: found -1; allowed: a whole number from 0; "
    )
    assert caught.value.problems[1:] == (
        "n_samples_failed: found nothing; allowed: a whole number from 0",
        'duration_ns: found "long"; allowed: a finite number',
        "ttft.percentiles.90.0: found two values, 1 and 2; allowed: one",
        "ttft.percentiles.most: found a name; allowed: the number of a percentile",
        "latency: found []; allowed: an object",
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "4", [4]])
def test_what_is_no_number_is_refused(report: Path, tmp_path: Path, value: object):
    path = changed(report, tmp_path, "performance/result_summary.json", lambda content: content.update(qps=value))
    with pytest.raises(ClientFileError, match=r"result_summary\.json: qps: found .*; allowed: a finite number"):
        read_summary(path)


def test_scores_may_be_named_and_written_as_texts(report: Path, tmp_path: Path):
    def named(content: dict[str, Any]) -> None:
        content["accuracy_scores"][0]["score"] = {"rouge1": "38.7", "gen_len": 8167644, "rouge2": None}
        inline = {**content["accuracy_scores"][0], "dataset_name": "performance", "dataset_type": "performance"}
        content["accuracy_scores"].append(inline)

    accuracy = read_accuracy(changed(report, tmp_path, "accuracy/accuracy_results.json", named))
    assert [one.values for one in accuracy.runs] == [{"rouge1": 38.7, "gen_len": 8167644.0}]
    assert [one.is_inline for one in accuracy.scores] == [False, True]


def test_scores_that_are_no_numbers_and_a_file_without_scores_are_refused(report: Path, tmp_path: Path):
    def wrong(content: dict[str, Any]) -> None:
        content["accuracy_scores"][0].update(score={"rouge1": "good", "rouge2": "nan"}, dataset_name="")

    named = r'dataset_name: found ""; .*score\.rouge1: found "good"; allowed: a finite number; .*score\.rouge2'
    with pytest.raises(ClientFileError, match=named):
        read_accuracy(changed(report, tmp_path, "accuracy/accuracy_results.json", wrong))
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(ClientFileError, match="accuracy_scores: found nothing"):
        read_accuracy(tmp_path / "empty.json")


def test_a_bare_on_of_yaml_is_streaming(report: Path, tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text((report / "config.yaml").read_text().replace("streaming: 'on'", "streaming: on"))
    assert yaml.safe_load(path.read_text())["model_params"]["streaming"] is True
    assert read_config(path).streaming == "on"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "missing"),
        (b"\xff", "no UTF-8 text"),
        (b"a: [", "not valid YAML"),
        (b"[]", "a YAML list, not a mapping"),
        (b"x" * (MAX_BYTES + 1), "allowed: at most 8,388,608 bytes"),
        (b"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
         b"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n", "more than 10000 values"),
        (b"model_params: {name: m}", "load_pattern.type: found nothing"),
    ],
)  # fmt: skip
def test_what_is_no_config_is_reported(tmp_path: Path, content: bytes | None, words: str):
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ClientFileError, match=words):
        read_config(path)
