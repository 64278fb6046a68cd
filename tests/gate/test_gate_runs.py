"""Rules over several runs: what honest trees share, as the published round v5.1 does, and what none may."""

import hashlib
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from changes import C_ACC, C_MODEL, CLOSED, DETAIL, JSON_LOG, O_MODEL, OPEN, T01, T04, edit, replace, value
from gate_support import refusing_rules, verdict
from mutations_of_runs import T01_LOG, copy_run, counts
from tree_builder import build, logs

from crowdperf.compliance.verdict_lines import missing_lines, printed_counts, printed_scores
from crowdperf.gate import run_fingerprint
from crowdperf.gate.documents import TextFile
from crowdperf.gate.listing import read_listing
from crowdperf.gate.log_view import LogView, log_view
from crowdperf.gate.rules_system import says_changed
from crowdperf.gate.run_fingerprint import RunRegister, place_of, task_of
from crowdperf.gate.user_conf import asked_for
from crowdperf.logs.score_lines import parse_sample_counts, parse_statements

OURS = {"IDENT-001", "IDENT-002", "IDENT-003", "IDENT-005", "IDENT-007"}


@pytest.mark.parametrize(
    ("path", "kind", "test"),
    [
        ("open/A/results/s/resnet50/Offline/accuracy/x", "accuracy", ""),
        ("open/A/results/s/resnet50/Offline/performance/run_1/x", "performance/run_1", ""),
        ("closed/A/results/s/resnet50/Offline/TEST04/performance/run_1/x", "TEST04/performance/run_1", "TEST04"),
        ("closed/A/compliance/s/resnet50/Offline/TEST01/accuracy/x", "TEST01/accuracy", "TEST01"),
        ("closed/A/results/s/resnet50/Offline/performance/ranging/x", None, None),
        ("closed/A/results/s/resnet50/Offline/TEST01/x", None, None),
        ("closed/A/measurements/s/resnet50/Offline/accuracy/x", None, None),
        ("closed/A/results/x", None, None),
    ],
)
def test_the_place_of_a_log_tells_whose_run_it_is(path: str, kind: str | None, test: str | None):
    place = place_of(path)
    assert (place and place.kind, place and place.test) == (kind, test)


@pytest.mark.parametrize(("model", "task"), [
    ("bert-99", "bert"), ("bert-99.9", "bert"), ("yolo-95", "yolo"), ("resnet50", "resnet50"), ("net-199", "net-199"),
])  # fmt: skip
def test_a_task_has_models_of_several_levels_of_accuracy(model: str, task: str):
    assert task_of(model) == task


@pytest.mark.parametrize(
    ("text", "is_changed"),
    [
        ("structured pruning of the attention", True),
        ("2:4 sparsity", True),
        ("no, QAT of the last layer only", True),
        ("no retraining but for LoRA adapters", True),
        ("magnitude pruning; not retrained", True),
        ("no pruning, sparsity or distillation", False),
        ("none (no fine-tuning)", False),
        ("No. Neither retrained nor fine-tuned", False),
        ("int8, calibrated without quantization-aware training", False),
        ("sparsity: none", False),
    ],
)
def test_weights_are_changed_where_a_clause_says_so_and_does_not_deny_it(text: str, is_changed: bool):
    assert says_changed(text) == is_changed


def test_the_register_reads_what_tells_a_run_from_others(trees):
    register = RunRegister(read_listing(trees.folder / "open"), None)
    assert len(register.runs) == 6
    (accuracy,) = register.runs_with("path", f"{O_MODEL}/Offline/accuracy/{DETAIL}")
    assert accuracy.start == ("2026-07-24T17:39:47.375453", "2026-11-21T13:33:29Z", 2622)
    assert re.fullmatch("[0-9a-f]{64}", accuracy.text("loadgen_file_sha1"))
    assert RunRegister(read_listing(trees.folder / "open"), "Other").runs == ()


def test_a_message_whose_key_is_written_with_escapes_is_read_too(trees):
    log = f"{O_MODEL}/Offline/performance/run_1/{DETAIL}"
    change = edit(log, r'"key": "sut_name", "value": "PyFastSUT"', r'"key": "sut\u005fname", "value": "Other"')
    with trees.changed("open", change) as root:
        assert "IDENT-003" in refusing_rules(verdict(root))


def with_two_levels(root: Path) -> None:
    """bert-99 and bert-99.9 with the same runs, as 194 logs of v5.1 are of two levels."""
    for name in ("bert-99", "bert-99.9"):
        shutil.copytree(root / C_MODEL, root / C_MODEL.replace("resnet50", name))


def test_one_run_may_be_the_result_of_two_levels_of_accuracy(trees):
    def change(root: Path) -> None:
        with_two_levels(root)
        shutil.rmtree(root / C_MODEL)

    with trees.changed("closed", change) as root:
        assert not refusing_rules(verdict(root)) & OURS


def test_one_run_is_not_the_result_of_two_tasks(trees):
    with trees.changed("closed", with_two_levels) as root:
        assert {"IDENT-001", "IDENT-007"} <= refusing_rules(verdict(root))


def test_a_closed_result_may_be_an_open_one_too(trees):
    with trees.changed("closed") as root:
        shutil.copytree(root / CLOSED, root / OPEN)
        assert not refusing_rules(verdict(root)) & OURS


def infer(source: str, target: str, root: Path) -> None:
    shutil.rmtree(root / f"{O_MODEL}/{target}")
    shutil.copytree(root / f"{O_MODEL}/{source}", root / f"{O_MODEL}/{target}")


def test_an_inferred_scenario_has_the_runs_of_another_where_that_is_asked_for(trees):
    with trees.changed("open", lambda root: infer("SingleStream", "Offline", root)) as root:
        assert not refusing_rules(verdict(root, infer_scenarios=True)) & OURS
        assert {"RUN-015", "ACC-014"} <= refusing_rules(verdict(root))


def test_server_and_interactive_are_two_runs(trees):
    def change(root: Path) -> None:
        shutil.copytree(root / f"{C_MODEL}/Server", root / f"{C_MODEL}/Interactive")

    with trees.changed("closed", change) as root:
        assert "IDENT-001" in refusing_rules(verdict(root))


def test_accuracy_runs_of_two_scenarios_may_have_the_same_responses(trees):
    """A model without chance, answering one by one in both: so do the two runs of the good trees."""
    names = [f"accuracy/{scenario}/{JSON_LOG}" for scenario in ("SingleStream", "Server")]
    assert logs()[names[0]] == logs()[names[1]]
    assert verdict(trees.folder / "closed").is_accepted


def test_two_versions_of_loadgen_in_one_result_are_a_warning(trees):
    def change(root: Path) -> None:
        log = f"{O_MODEL}/Offline/accuracy/{DETAIL}"
        value(log, "loadgen_version", "6.9.16 @ 0123456789")(root)
        for zone in ("utc", "local"):
            value(log, f"loadgen_build_date_{zone}", "2026-07-25T01:02:03.000004")(root)
        edit(log, r'(?<="loadgen_git_log_message", "value": ")[0-9a-f]{40}', "0123456789abcdef")(root)

    with trees.changed("open", change) as root:
        found = verdict(root)
    assert found.is_accepted
    assert [one.rule for one in found.findings] == ["LG-006", "IDENT-004"]
    assert "6.9.16 @ 0123456789" in found.findings[0].found


def test_seeds_of_zero_are_those_of_an_accuracy_run_without_configuration(trees):
    def change(root: Path) -> None:
        for name in ("qsl", "sample_index", "schedule"):
            for kind in ("requested", "effective"):
                value(f"{O_MODEL}/Offline/accuracy/{DETAIL}", f"{kind}_{name}_rng_seed", 0)(root)

    with trees.changed("open", change) as root:
        assert verdict(root).is_accepted


def with_whole_logs(root: Path, backup: Path, sampled_data: str) -> None:
    """The accuracy run and TEST01 cut, with their whole logs in the backup; `sampled_data` is TEST01's response 5."""
    for folder, rows in (
        (C_ACC, [(number, number, "00006144") for number in range(50000)]),
        (f"{T01}/accuracy", [(number, number % 1024, "00006144" if number != 5 else sampled_data)
                             for number in range(500)]),
    ):  # fmt: skip
        lines = (f'{{ "seq_id" : {seq}, "qsl_idx" : {index}, "data" : "{data}" }}' for seq, index, data in rows)
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        path = backup / folder / JSON_LOG
        path.parent.mkdir(parents=True)
        path.write_text(text)
        replace(root / folder / JSON_LOG, f"{text[:4096]}\n\n...\n\n{text[-4096:]}")
        edit(f"{folder}/accuracy.txt", r"^hash=.*$", f"hash={hashlib.sha256(text.encode()).hexdigest()}")(root)
    counts(num_perf_log_entries=500, num_perf_log_qsl_idx_match=500)(root)


@pytest.mark.parametrize(("data", "is_refused"), [("00006144", False), ("0000FA43", True)])
def test_whole_logs_of_the_backup_are_compared_to_the_last_response(trees, tmp_path, data: str, is_refused: bool):
    with trees.changed("closed", lambda root: with_whole_logs(root, tmp_path, data)) as root:
        assert ("TEST-012" in refusing_rules(verdict(root, backup_folder=tmp_path))) is is_refused


def test_a_finding_prints_the_values_that_contradict(trees):
    change = value(f"{T04}/performance/run_1/{DETAIL}", "result_samples_per_second", 81.07)
    with trees.changed("closed", change) as root:
        found = {one.rule: one for one in verdict(root).findings}
    assert found["TEST-008"].found.startswith("reference score = 40.5341; test score = 81.07; tolerance = 10%")
    assert (found["TEST-009"].found, found["TEST-009"].allowed) == ("test score = 40.5351", "81.07, by the log")


def test_test05_has_the_second_seeds(tmp_path):
    build(tmp_path, "closed", "v4.0")
    for offline in tmp_path.glob("closed/*/compliance/*/*/Offline"):
        shutil.copytree(offline / "TEST04", offline / "TEST05")
        rules = {one.rule for one in verdict(tmp_path, "v4.0").findings if "TEST05" in one.path}
        assert {"TEST-007", "IDENT-001"} <= rules
        log = (offline / "TEST05/performance/run_1" / DETAIL).relative_to(tmp_path).as_posix()
        for name in ("qsl", "sample_index", "schedule"):
            value(log, f"effective_{name}_rng_seed", 12345)(tmp_path)
        rules = {one.rule for one in verdict(tmp_path, "v4.0").findings if "TEST05" in one.path}
        assert "TEST-007" not in rules


def test_a_folder_of_a_second_server_run_is_known_in_v07_only(tmp_path):
    build(tmp_path, "closed", "v0.7")
    (run,) = tmp_path.glob("closed/*/results/*/*/Server/performance/run_1")
    shutil.copytree(run, run.with_name("run_2"))
    assert "SCEN-004" not in refusing_rules(verdict(tmp_path, "v0.7"))


STATEMENTS = (
    ("AUC=80.166%, accuracy=96.605%, good=86110748, total=89137319, queries=330067", [True]),
    ("AUC=80.166%, accuracy=97.605%, good=86110748, total=89137319, queries=330067", [False]),
    ("Accuracy: mean = 0.86114, kidney = 0.9347, tumor = 0.7876", [True]),
    ("Accuracy: mean = 0.85300, whole tumor = 0.9141, tumor core = 0.8679, enhancing tumor = 0.7770", [True]),
    ("Accuracy: mean = 0.96114, kidney = 0.9347, tumor = 0.7876", [False]),
    ("Accuracy: mean = 0.86170", []),
    ("Word Error Rate: 2.2262339043738155%, accuracy=97.77376609562619%", [True]),
    ("Word Error Rate: 2.2%, accuracy=99.1%", [False]),
    ("{'rouge1': 44.6, 'gen_len': 27762424, 'gen_num': 24576, 'gen_tok_len': 6982432, 'tokens_per_sample': 284.1}",
     [True]),
    ("{'rouge1': 44.6, 'gen_len': 27762424, 'gen_num': 24576, 'gen_tok_len': 6982432, 'tokens_per_sample': 294.1}",
     [False]),
    ("accuracy=76.456%, good=38228, total=50000", []),
    ("mAP=37.338%", []),
)  # fmt: skip
"""Lines of published files of v5.1 (the three tumours: of v0.7), and the same with another figure."""


@pytest.mark.parametrize(("line", "wanted"), STATEMENTS)
def test_figures_on_a_line_agree(line: str, wanted: list[bool]):
    assert [one.is_true for one in parse_statements(f"chatter\n{line}\n")] == wanted


def test_numbers_of_samples_are_read_by_their_names():
    text = "AUC=80.1%, queries=330067\n{'gen_num': 24576}\n{'exact_match': 81.4, 'num-samples': 4388}\n"
    found = [(one.name, one.count, one.line) for one in parse_sample_counts(text)]
    assert found == [("queries", 330067, 1), ("gen_num", 24576, 2), ("num-samples", 4388, 3)]


@pytest.mark.parametrize(("printed", "score", "is_of"), [
    ("28.47", 28.4651, True), ("28.47", 28.4801, False), ("19.129213340751644", 1e9 / 52276065, True),
    ("40.5341", 40.5343, True), ("40.5341", 40.54, False), ("454.058", 458.511, False), ("5e3", 5000.0, True),
])  # fmt: skip
def test_a_printed_score_is_that_of_a_log_by_its_digits(printed: str, score: float, is_of: bool):
    found = printed_scores(f"Verifying performance.\nReference score = {printed}\ntest score = 1\nTEST PASS\n")
    assert found["reference"].is_of(score) is is_of
    assert set(found) == {"reference", "test"}


def test_counts_and_verdicts_are_read_from_their_lines():
    assert printed_counts("num_acc_log_entries = 50000\nno num_x = 7\n") == {"num_acc_log_entries": 50000}
    assert missing_lines("TEST01", "TEST FAIL\n") == ("TEST PASS",)
    assert missing_lines("TEST04", "x TEST PASS\n") == ()
    lines = "First token check pass: Skipped\nEOS check pass: True\nSample length check pass: False\n"
    assert missing_lines("TEST06", lines) == ("Sample length check pass: True",)


def test_every_run_of_a_copied_folder_is_named(trees):
    with trees.changed("closed", copy_run(f"{T01}/performance/run_1", f"{T04}/performance/run_1")) as root:
        found = [one for one in verdict(root).findings if one.rule == "IDENT-001"]
    assert {one.path for one in found} == {T01_LOG, f"{T04}/performance/run_1/{DETAIL}"}
    assert all(one.fix.startswith("cm run script --tags=run,mlperf,compliance") for one in found)


def test_each_detail_log_is_parsed_once(trees, monkeypatch: pytest.MonkeyPatch):
    parsed = []

    def parse(source: TextFile) -> LogView:
        parsed.append(source.path)
        return log_view(source)

    monkeypatch.setattr(run_fingerprint, "log_view", parse)
    root = trees.folder / "closed"
    verdict(root)
    assert sorted(parsed) == sorted(path.relative_to(root).as_posix() for path in root.rglob(DETAIL))


def test_settings_of_a_user_conf_are_in_the_units_of_the_log():
    model: Any = SimpleNamespace(model="resnet50", canonical="resnet50", subject=SimpleNamespace(benchmark="resnet50"))
    text = "*.*.target_latency_percentile = 99\nresnet50.*.target_latency = 15\n*.Server.target_qps = 12.5\n"
    latency = {
        "Server": {"effective_target_latency_ns": 15e6, "requested_server_target_qps": 12.5},
        "SingleStream": {"requested_single_stream_expected_latency_ns": 15e6},
        "MultiStream": {"requested_multi_stream_expected_latency_ns": 15e6},
    }
    for scenario, wanted in latency.items():
        found = {one.key: one.value for one in asked_for(text, model, scenario)}
        assert found == pytest.approx({"effective_target_latency_percentile": 0.99, **wanted}), scenario
    model = SimpleNamespace(model="mine", canonical="llama2-70b-99.9", subject=SimpleNamespace(benchmark=""))
    found = asked_for("llama2-70b.Server.target_qps = 3\nllama2.Server.target_qps = 4\n", model, "Server")
    assert [one.value for one in found if one.key == "requested_server_target_qps"] == [3.0]
