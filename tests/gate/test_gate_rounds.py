"""Each round has its own figures and layout: good trees of a round are accepted by it and refused by the others."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from gate_support import refusing_rules, verdict
from helpers import with_python_path
from tree_builder import SUBMITTER, SYSTEM, build

from crowdperf.gate.rules_run import early_stopping_was_met
from crowdperf.logs.round_tables import ANY_SCENARIO, load_round
from crowdperf.logs.score_lines import EXAMPLES, PATTERNS, parse_counts, parse_hashes, parse_scores
from crowdperf.rules.official_names import canonical_name, checker_name, resolve
from crowdperf.rules.rounds import ROUNDS, rounds_of

FILES = {"v5.0", "v5.1", "v6.0", "v6.1"}


@pytest.mark.parametrize("round_name", ["v3.1", "v4.0", "v4.1", "v5.0", "v5.1", "v6.0"])
def test_a_good_open_tree_of_a_round_is_accepted_by_it_only(round_name: str, tmp_path):
    build(tmp_path, "open", round_name)
    assert refusing_rules(verdict(tmp_path, round_name)) == set()
    assert "RUN-007" in refusing_rules(verdict(tmp_path, "v6.1"))


@pytest.mark.parametrize("round_name", ["v5.1", "v6.0"])
def test_a_good_closed_tree_of_a_round_is_accepted(round_name: str, tmp_path):
    build(tmp_path, "closed", round_name)
    assert refusing_rules(verdict(tmp_path, round_name)) == set()


@pytest.mark.parametrize(
    ("folder", "name", "rule"), [("results", "Results_", "TREE-006"), ("systems", "Systems", "SYS-001")]
)
def test_where_a_folder_is_missing_one_of_almost_that_name_is_told(folder: str, name: str, rule: str, tmp_path: Path):
    build(tmp_path, "open", "v5.1")
    place = tmp_path / "open" / SUBMITTER
    (place / folder).rename(place / name)
    found = [one.found for one in verdict(tmp_path, "v5.1").findings if one.rule == rule]
    assert found and all(text.endswith(f", but there is open/{SUBMITTER}/{name}") for text in found)


def test_before_v5_a_closed_tree_needs_test05_and_mlperf_conf(tmp_path):
    build(tmp_path, "closed", "v4.0")
    for path in tmp_path.glob("closed/*/measurements/*/*/Offline/mlperf.conf"):
        path.unlink()
    found = verdict(tmp_path, "v4.0")
    assert refusing_rules(found) >= {"TEST-001", "MEAS-006"}
    assert {finding.path.rsplit("/", 1)[-1] for finding in found.findings if finding.rule == "TEST-001"} == {"TEST05"}


def test_v0_7_asks_for_60_s_and_five_server_runs(tmp_path):
    build(tmp_path, "closed", "v0.7")
    found = verdict(tmp_path, "v0.7")
    missing = {
        finding.path for finding in found.findings if finding.rule == "RUN-001" and "Server/perf" in finding.path
    }
    assert {path.split("/run_")[1].split("/")[0] for path in missing} == {"2", "3", "4", "5"}
    assert load_round("v0.7").models["resnet"].min_duration_ms == 60_000


@pytest.mark.parametrize("round_name", ROUNDS)
def test_each_round_has_seeds_and_whole_figures_of_its_models(round_name: str):
    table = load_round(round_name)
    assert (table.is_old, table.name) == (round_name not in FILES, round_name)
    assert table.models
    for model in table.models.values():
        assert model.targets_in("Offline")
        assert model.accuracy_samples_in("Offline") > 0
        assert model.performance_samples > 0
        assert all(limit.metric in PATTERNS for limits in model.targets.values() for limit in limits)
        assert set(model.scenarios) <= {"edge", "datacenter", "both"}


@pytest.mark.parametrize(
    ("round_name", "models"),
    [
        ("v3.1", set()),
        ("v4.0", {"llama2-70b-99", "llama2-70b-99.9"}),
        ("v4.1", {"llama2-70b-99", "llama2-70b-99.9", "mixtral-8x7b"}),
    ],
)
def test_rounds_before_v5_have_the_language_models_that_they_had(round_name: str, models: set[str]):
    table = load_round(round_name)
    known = {"llama2-70b-99", "llama2-70b-99.9", "mixtral-8x7b"} & set(table.models)
    assert known == models
    for name in known:
        row = table.models[name]
        assert (row.tests, row.metric_key("Offline"), row.min_duration_ms) == (
            ("TEST06",),
            "result_tokens_per_second",
            600_000,
        )
        assert row.scenarios_in("datacenter") == ("Offline", "Server") and row.needs_token_latencies


@pytest.mark.parametrize(("round_name", "is_refused"), [("v4.1", False), ("v6.0", True)])
def test_descriptions_without_results_and_further_runs_are_as_the_checkers_of_the_round_have_them(
    round_name: str, is_refused: bool, tmp_path: Path
):
    """The checker of tag v5.1 is the first that asks for results of each description."""
    tree = build(tmp_path, "open", round_name)
    tree.system_json("box-2").write_text("{}")
    run = next(tree.results_folder.glob("*/*/Offline/performance/run_1"))
    (run.parent / "run_2").mkdir()
    (run.parent / "run_2" / "mlperf_log_summary.txt").write_text("x\n")
    refusing = refusing_rules(verdict(tmp_path, round_name))
    assert ({"SYS-012", "SCEN-004"} <= refusing) is is_refused
    assert bool({"SYS-012", "SCEN-004"} & refusing) is is_refused


def test_a_mapping_of_round_v4_1_may_name_its_models(tmp_path):
    tree = build(tmp_path, "open", "v4.1")
    for name, is_known in (("mixtral-8x7b", True), ("whisper", False)):
        tree.model_mapping.write_text(json.dumps({"tiny-net": name}))
        assert ("MAP-002" not in refusing_rules(verdict(tmp_path, "v4.1"))) is is_known


def test_a_later_round_of_the_tables_agrees_with_the_projects_own_rules():
    for round_name in sorted(FILES):
        table = load_round(round_name)
        for benchmark, targets in (("resnet50", 75.6954), ("bert-99", 89.96526), ("3d-unet-99.9", 0.8608383)):
            if round_name in rounds_of(benchmark):
                limits = table.models[checker_name(benchmark)].targets[ANY_SCENARIO]
                assert limits[0].value == pytest.approx(targets)


def test_names_of_models_stand_for_the_checkers_names():
    table = load_round("v6.1")
    cases = {"resnet50": "resnet", "mobilenet-v2": "resnet", "bert-99.9-int8": "bert-99.9", "bert-99-x": "bert-99"}
    for name, wanted in cases.items():
        assert resolve(name, table.models, table.aliases) == wanted
    assert resolve("mine", table.models, table.aliases, {"mine": "whisper"}) == "whisper"
    assert (canonical_name("resnet50"), canonical_name("ssd-resnet34", "v2.0")) == ("resnet", "ssd-large")
    assert canonical_name("nothing") == "nothing"


@pytest.mark.parametrize("metric", EXAMPLES)
def test_every_example_of_a_score_line_is_read(metric: str):
    scores = parse_scores(metric, f"chatter\n{EXAMPLES[metric]}\n")
    assert [score.line for score in scores] == [2]
    assert scores[0].value > 0


@pytest.mark.parametrize(
    ("metric", "line"),
    [("acc", "INFO accuracy=76%"), ("acc", "accuracy=1.2.3"), ("F1", '{"f1": 90.4}'), ("AUC", " AUC=80"), ("none", "")],
)
def test_a_line_that_is_not_as_the_checkers_want_it_is_no_score(metric: str, line: str):
    assert parse_scores(metric, line) == ()


def test_hashes_and_counts_are_read_with_their_lines():
    text = "accuracy=86.800%, good=43400, total=50000\nhash=0a\nhash=0a of it\n"
    assert [(one.value, one.line) for one in parse_hashes(text)] == [("0a", 2)]
    assert [(one.good, one.total, one.line) for one in parse_counts(text)] == [(43400, 50000, 1)]


def model_tree(tmp_path: Path, model: str, **fields: str) -> Path:
    """The good open tree with its model mapped to another one, and changed fields of its description."""
    tree = build(tmp_path, "open")
    tree.model_mapping.write_text(json.dumps({"tiny-net": model}))
    path = tree.system_json(SYSTEM)
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return tmp_path


def test_models_of_language_need_token_latencies(tmp_path):
    rules = refusing_rules(verdict(model_tree(tmp_path, "llama3.1-8b", system_type="datacenter")))
    assert {"RUN-019", "ACC-005", "ACC-006", "RUN-008"} <= rules


def test_models_of_films_need_some_of_them(tmp_path):
    assert "ACC-015" in refusing_rules(verdict(model_tree(tmp_path, "wan-2.2-t2v-a14b")))


def test_a_networked_system_needs_its_fields_and_a_sut_of_that_name(tmp_path):
    rules = refusing_rules(verdict(model_tree(tmp_path, "resnet", is_network="true")))
    assert {"SYS-003", "RUN-020"} <= rules


def test_a_closed_score_has_an_upper_limit_where_the_table_says_so(tmp_path):
    tree = build(tmp_path, "closed")
    results = tree.results_folder / SYSTEM
    (results / "resnet50").rename(results / "llama3.1-8b-edge")
    text = "{'rouge1': 99.0, 'rouge2': 99.0, 'rougeL': 99.0, 'rougeLsum': 99.0, 'gen_len': 9999999}\n"
    for path in results.glob("*/*/accuracy/accuracy.txt"):
        path.write_text(text + f"hash={'0' * 64}\n")
    assert "ACC-008" in refusing_rules(verdict(tmp_path))


def test_test06_is_judged_by_its_three_lines(tmp_path):
    tree = build(tmp_path, "closed")
    results = tree.results_folder / SYSTEM
    (results / "resnet50").rename(results / "llama3.1-8b")
    folder = results / "llama3.1-8b" / "Offline" / "TEST06"
    folder.mkdir()
    (folder / "verify_accuracy.txt").write_text("First token check pass: True\nEOS check pass: True\n")
    found = verdict(tmp_path)
    about = {finding.rule for finding in found.findings if "/Offline/TEST06" in finding.path}
    assert about == {"TEST-004", "TEST-006", "TEST-021"}
    assert "TEST-004" in refusing_rules(found) and "TEST-006" not in refusing_rules(found)


def test_a_setting_logged_twice_in_an_accuracy_run_is_found(trees):
    name = f"open/{SUBMITTER}/results/{SYSTEM}/tiny-net/Offline/accuracy/mlperf_log_detail.txt"
    line = ':::MLLOG {"key": "effective_scenario", "value": "Server", "metadata": {"is_error": false}}\n'
    with trees.changed("open") as root:
        text = (root / name).read_text()
        (root / name).unlink()
        (root / name).write_text(text + line)
        assert refusing_rules(verdict(root)) == {"ACC-016"}


def test_a_rule_that_fails_is_a_finding_that_refuses(trees, monkeypatch):
    from crowdperf.gate.rulebook import RULES

    def broken(view):
        raise KeyError("surprise")

    rule = RULES["RUN-011"]
    assert rule.check is early_stopping_was_met
    monkeypatch.setitem(RULES, "RUN-011", dataclasses.replace(rule, check=broken))
    with trees.changed("open") as root:
        found = verdict(root)
    assert refusing_rules(found) == {"GATE-001"}
    assert "RUN-011" in found.findings[0].found


def test_every_rule_says_what_it_asks_and_whose_it_is():
    from crowdperf.gate.rulebook import RULES

    assert len(RULES) > 75
    for rule in RULES.values():
        assert rule.text.endswith(".") and rule.source and rule.step.value


@pytest.mark.full
def test_the_tables_are_those_of_both_official_checkers():
    checkout = official_checkout()
    script = Path(__file__).with_name("record_rounds.py")
    call = [sys.executable, str(script), f"--inference={checkout}", "--check"]
    assert subprocess.run(call, env=with_python_path("src", "tests/support"), check=False).returncode == 0


def official_checkout() -> Path:
    """The checkout of mlcommons/inference that the environment names; skips without."""
    import os

    path = Path(os.environ.get("CROWDPERF_INFERENCE_CHECKOUT", "no checkout"))
    if not (path / "tools" / "submission").is_dir():
        pytest.skip("set CROWDPERF_INFERENCE_CHECKOUT to a checkout of mlcommons/inference")
    return path
