"""The rules E1 to E19: each fires on the change that it is there for, and on nothing else."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from curve_tree import NUMBERS, SAMPLES, count_words, declaration, measured, setup_of, write_curve
from report_folder import Setup
from tree_changes import MUTATIONS, POINT, SUMMARY, Mutation, at, edited, everywhere, point, put

from crowdperf.endpoints.clientfiles import read_summary
from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.findings import Finding, Severity, grouped
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.readtree import Beside, NoTree, read_curves
from crowdperf.endpoints.rules import check_tree
from crowdperf.endpoints.tree import write_tree

EDITION = read_edition()
NOTHING = Beside()


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_curve(tmp_path_factory.mktemp("curve"))


@pytest.fixture
def submission(passing: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(passing, tmp_path / "sub"))


def by_name(findings: Sequence[Finding], severity: Severity) -> dict[str, int]:
    return dict(Counter(one.rule for one in findings if one.severity is severity))


def errors_of(folder: Path, beside: Beside = NOTHING) -> dict[str, int]:
    return by_name(check_tree(folder, EDITION, beside).findings, Severity.ERROR)


def percentiles(key: str, **changed: float) -> Callable[[dict[str, Any]], object]:
    """Change percentiles of a quantity, p90=VALUE."""
    return lambda content: content[key]["percentiles"].update(
        {f"{name[1:]}.0": value for name, value in changed.items()}
    )


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_single_change_is_found_by_its_rule_and_by_no_other(submission: Path, mutation: Mutation):
    mutation.apply(submission)
    assert set(errors_of(submission)) == set(mutation.ours)


def test_each_change_that_the_official_checker_accepts_is_refused_but_one_that_the_rules_allow():
    accepted = [one for one in MUTATIONS if not one.official and not one.ours]
    assert [one.name for one in accepted] == ["unchanged", "accuracy at r40, too, with r64 as Offline"]


def test_an_organizations_folder_is_checked_as_well_as_a_submissions(passing: Path):
    report = check_tree(passing.parent, EDITION)
    assert report.passed and report.points == len(NUMBERS)
    assert all(one.path.startswith("sub-0001/") for one in report.findings)


def test_a_folder_without_a_submission_says_what_was_looked_for(tmp_path: Path):
    with pytest.raises(NoTree, match="results/"):
        check_tree(tmp_path, EDITION)


def test_an_unknown_data_set_is_a_warning(passing: Path):
    warnings = by_name(check_tree(passing, EDITION).findings, Severity.WARNING)
    assert warnings == {"E17": len(NUMBERS)}


def test_a_tree_without_provenance_names_what_could_not_be_checked(submission: Path):
    (submission / "docs" / "provenance.json").unlink()
    report = check_tree(submission, EDITION)
    assert by_name(report.findings, Severity.UNCHECKED) == {"E6": len(NUMBERS), "E19": len(NUMBERS)}
    assert report.passed


def test_few_failed_requests_are_named_and_many_refused(submission: Path):
    at(64, SUMMARY, lambda one: one.update(n_samples_failed=1))(submission)
    assert "E5" not in errors_of(submission)
    assert by_name(check_tree(submission, EDITION).findings, Severity.WARNING)["E5"] == 1
    at(64, SUMMARY, lambda one: one.update(n_samples_failed=3))(submission)
    assert errors_of(submission) == {"E5": 1}


def test_an_accuracy_run_of_a_part_of_a_known_data_set_is_refused(submission: Path):
    at(4, "accuracy_results.json", lambda one: one["accuracy_scores"][0].update(dataset_name="math500::gptoss"))(
        submission
    )
    assert errors_of(submission) == {}
    counts = {"issued": 64, "scored": 64, "empty": 0, "missing": 0}
    part = {"unit_samples": 64, "total_samples": 64, "response_counts": counts}
    at(4, "accuracy_results.json", lambda one: one["accuracy_scores"][0].update(part))(submission)
    assert errors_of(submission) == {"E9": 1}


def test_agentic_models_have_a_longer_floor_and_no_offline_point(tmp_path: Path):
    setups = {number: replace(setup_of(number), model="moonshotai/Kimi-K3", accuracy_samples=0) for number in NUMBERS}
    declared = declaration(model="kimi-k3", offline=Offline.NONE)
    tree = write_tree(tmp_path / "tree", declared, measured(tmp_path / "runs", setups))
    everywhere("config.yaml", put("settings/load_pattern/type", "agentic_inference"))(tree)
    everywhere(POINT, put("runtime_settings/load_pattern", "agentic_inference"))(tree)
    report = check_tree(tree, EDITION)
    assert [(one.rule, one.found, one.allowed) for one in report.errors] == [
        ("E12", "issued over: 2116.3 s", "at least 2400 s")
    ]
    assert by_name(report.findings, Severity.UNCHECKED) == {"E6": len(NUMBERS)}


def test_a_linked_folder_is_refused_and_not_read(submission: Path, passing: Path):
    shutil.rmtree(point(submission, 4))
    (submission / "results" / "lab-vm" / "gpt-oss-120b" / "r4").symlink_to(point(passing, 4))
    report = check_tree(submission, EDITION)
    assert [one.rule for one in report.errors] == ["E16"]
    assert report.points == len(NUMBERS) - 1


def test_a_label_and_answers_that_are_their_prompts_are_no_model(tmp_path: Path):
    setups = {number: replace(setup_of(number), is_echo=number == 4) for number in NUMBERS}
    points = measured(tmp_path / "runs", setups)
    echo = write_tree(tmp_path / "a", declaration(), points)
    assert errors_of(echo) == {"E17": 1}
    labelled = write_tree(tmp_path / "b", declaration(label="test run"), points[:1] + points[2:])
    assert errors_of(labelled)["E17"] == len(NUMBERS) - 1


def test_short_runs_negative_times_and_unknown_clients_are_refused(tmp_path: Path):
    setups = {number: replace(setup_of(number), span_s=3.0, git_sha=None, started_at=0) for number in NUMBERS}
    tree = write_tree(tmp_path / "tree", declaration(), measured(tmp_path / "runs", setups))
    at(4, SUMMARY, lambda one: one["tpot"].update(min=-9.0))(tree)
    assert by_name(check_tree(tree, EDITION).findings, Severity.WARNING)["E18"] == 1
    at(4, SUMMARY, percentiles("tpot", p10=-2.0, p5=-3.0, p1=-4.0))(tree)
    assert errors_of(tree) == {"E12": 7, "E13": 14, "E18": 1}


def test_the_wrong_number_of_requests_under_way_is_refused(tmp_path: Path):
    """The client says 64, its events 40."""
    setups = {number: setup_of(number) for number in NUMBERS}
    points = list(measured(tmp_path / "runs", setups))
    lazy = measured(tmp_path / "lazy", {64: replace(setups[64], concurrency=40)})[0]
    run = replace(lazy.run, config=points[-1].run.config)
    edited(run.folder / "config.yaml", lambda one: one["settings"]["load_pattern"].update(target_concurrency=64))
    points[-1] = replace(lazy, run=run)
    tree = write_tree(tmp_path / "tree", declaration(), points)
    assert errors_of(tree) == {"E19": 1}


def test_events_beside_the_tree_show_figures_that_do_not_follow(passing: Path, submission: Path):
    files = {f"r{number}": passing.parents[2] / "runs" / f"r{number}" / "events.jsonl" for number in NUMBERS}
    beside = Beside(events=files, count_tokens=count_words)
    assert errors_of(submission, beside) == {}
    measured_p90 = read_summary(point(submission, 4) / SUMMARY).ttft.percentile(90.0)
    at(4, SUMMARY, percentiles("ttft", p90=(measured_p90 or 0) + 1))(submission)
    found = check_tree(submission, EDITION, beside).errors
    assert [one.rule for one in found] == ["E8"]
    assert "ttft.percentiles.90.0" in found[0].found


def test_a_dedicated_offline_run_has_neither_concurrency_nor_latency(tmp_path: Path):
    points = measured(tmp_path / "runs")
    burst = Setup(concurrency=128, samples=128, is_offline=True, accuracy_samples=4395)
    offline = measured(tmp_path / "offline", {128: burst})
    tree = write_tree(tmp_path / "tree", declaration(offline=Offline.DEDICATED), points + offline)
    at(128, SUMMARY, lambda one: one["tpot"].update(min=-9.0))(tree)
    assert errors_of(tree) == {}
    assert SAMPLES[64] == 192


def test_an_unreadable_file_is_named_and_the_rest_is_checked(submission: Path):
    (point(submission, 4) / SUMMARY).write_text('{"n_samples_issued": "many"}')
    at(12, POINT, lambda one: one.update(region="margin"))(submission)
    report = check_tree(submission, EDITION)
    assert {one.rule for one in report.errors} == {"E0", "E10"}
    assert any('n_samples_issued: found "many"; allowed: a whole number' in one.found for one in report.errors)


def test_a_link_and_the_name_of_the_machine_are_refused(submission: Path):
    (point(submission, 4) / "server_configs").symlink_to("/etc")
    for address in ("http://gpu-node-17.lab:8000/v1", "http://[::1:8000/v1"):
        change = {"endpoints": [address]}
        at(4, "config.yaml", lambda one, change=change: one["endpoint_config"].update(change))(submission)
        assert errors_of(submission) == {"E15": 1, "E16": 1}


def test_findings_that_differ_in_numbers_only_are_one_line(tmp_path: Path):
    setups = {number: replace(setup_of(number), span_s=3.0) for number in NUMBERS}
    tree = write_tree(tmp_path / "tree", declaration(), measured(tmp_path / "runs", setups))
    lines = grouped(check_tree(tree, EDITION).errors)
    assert len(lines) == 1
    assert lines[0].startswith("E12 error: results/lab-vm/gpt-oss-120b/r1/result_summary.json: issued over: ")
    assert lines[0].endswith("allowed: at least 600 s (and 6 more like it)")


HOSTILE = (b"", b"\xff\xfe", b"null", b"[]", b"{", b"a: *b", b"[" * 600)


@pytest.mark.parametrize("name", ["point.yaml", "config.yaml", SUMMARY, "accuracy_results.json", "system_desc.json"])
def test_whatever_a_file_holds_it_is_a_finding_and_no_exception(submission: Path, name: str):
    for number in NUMBERS[1:]:
        shutil.rmtree(point(submission, number))
    for content in HOSTILE:
        (point(submission, 1) / name).write_bytes(content)
        assert "E0" in errors_of(submission), content[:20]


@pytest.mark.parametrize("value", [10**400, -1, 1e308, "x" * 200, [], {"a": 1}, True])
def test_whatever_a_number_is_it_is_a_finding_or_allowed_and_no_exception(submission: Path, value: object):
    for number in NUMBERS[1:]:
        shutil.rmtree(point(submission, number))
    for name in (SUMMARY, POINT, "config.yaml"):
        original = (point(submission, 1) / name).read_bytes()

        def spoil(content: dict[str, Any]) -> None:
            for key, one in content.items():
                if isinstance(one, dict):
                    spoil(one)
                elif isinstance(one, int | float):
                    content[key] = value

        at(1, name, spoil)(submission)
        assert errors_of(submission)
        (point(submission, 1) / name).write_bytes(original)


def test_curves_are_read_for_others_as_well(passing: Path):
    (curve,), problems = read_curves(passing, EDITION)
    assert problems == ()
    assert (curve.path, curve.is_agentic) == ("results/lab-vm/gpt-oss-120b", False)
    assert [one.number for one in curve.points] == list(NUMBERS)
    assert curve.points[0].summary.system_tps
