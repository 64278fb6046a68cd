"""TEST06 from its logs to the verdict of the gate: a closed tree of GPT-J for v5.0, made of runs of another model.

The runs are those of the tiny ResNet-50, with the numbers, seeds and answers exchanged, and labelled as synthetic: what
is shown is that the file of the verdict, the tree's maker and the gate agree.
"""

import json
import random
import re
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from generate_support import (
    PROGRAM,
    SUT,
    FakeRecipes,
    copy_runs,
    edit_json,
    env_of,
    request_of,
    unpack_runs,
    with_old_seeds,
)

from crowdperf.compliance.answer_checks import verify_answers
from crowdperf.gate import gate
from crowdperf.gate.documents import TextFile
from crowdperf.gate.loadgen_random import log_value
from crowdperf.gate.log_view import log_view
from crowdperf.gate.rules_testlogs import sampled_share
from crowdperf.gate.views import Options
from crowdperf.logs.run_log import parse_detail_log
from crowdperf.logs.seeds import SEEDS
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import parse_scenario
from crowdperf.submission import tree_builder

SAMPLES, ROUND, MODEL = 13368, "v5.0", "gptj-99"
RECORD = record_of(MODEL)
SCORES = {"ROUGE1": 42.99, "ROUGE2": 20.12, "ROUGEL": 29.99, "GEN_LEN": 4016878.0}
LINE = "{'rouge1': '42.99', 'rouge2': '20.12', 'rougeL': '29.99', 'gen_len': 4016878, 'gen_num': 13368}"
TOKENS_PER_SAMPLE = 69
"""token_latency_scaling_factor of gptj in LoadGen's mlperf.conf."""

ENV = {"CM_MLPERF_SUBMISSION_DIVISION": "closed", "CM_MLPERF_SUBMISSION_VERSION": ROUND}


def tokens(*numbers: int) -> str:
    """Tokens as a log has them."""
    return struct.pack(f"<{len(numbers)}q", *numbers).hex().upper()


def answers(test: Path, scenario: str) -> list[dict[str, Any]]:
    """Good answers of three tokens and the end to the samples that LoadGen chose in the run of a test, about 100."""
    text = (test / "performance/run_1/mlperf_log_detail.txt").read_text(encoding="utf-8")
    log = log_view(TextFile(path="", text=text))
    share, seed = sampled_share(log), log.values["effective_accuracy_log_rng_seed"]
    issued = log.values["result_query_count"] * log.values["generated_samples_per_query"]
    loaded = log.values["loaded_qsl_set"]
    rows = []
    for number in range(issued):
        if log_value(number, seed) > share:
            continue
        row = {
            "seq_id": number,
            "qsl_idx": loaded[number % len(loaded)],
            "data": tokens(number, 11, 12, RECORD.end_token),
            "token_count": 4,
        }
        rows.append(row if scenario == "Offline" else {**row, "token_data": tokens(number)})
    return rows


def as_log(rows: list[dict[str, Any]]) -> str:
    """An accuracy log as LoadGen writes it."""
    lines = ",\n".join(json.dumps(row, separators=(", ", " : ")).replace("{", "{ ").replace("}", " }") for row in rows)
    return f"[\n{lines}\n]\n"


def with_numbers_of_gptj(log: Path) -> None:
    """Give a detail log, and the summary beside it, the numbers of GPT-J's data set."""
    text = log.read_text(encoding="utf-8")
    counts = "qsl_reported_(?:total|performance)_count|effective_(?:accuracy|performance)_sample_count"
    counts += "|requested_performance_sample_count_override"
    text = re.sub(rf'("key": "(?:{counts})", "value": )\d+', rf"\g<1>{SAMPLES}", text)
    text = re.sub(r'("key": "\w+_accuracy_log_sampling_target", "value": )4096', r"\g<1>100", text)
    is_accuracy = log.parent.name == "accuracy"
    whole = json.dumps(list(range(SAMPLES)) if is_accuracy else random.Random(0).sample(range(SAMPLES), SAMPLES))
    if is_accuracy:  # all samples, loaded at once
        text = re.sub(
            r'("key": "generated_(?:query_count|samples_per_query)", "value": )1024', rf"\g<1>{SAMPLES}", text
        )
        if f'"key": "generated_query_count", "value": {SAMPLES}' in text:  # queries at fixed intervals
            interval = r'(?<="key": "generated_query_duration", "value": )\d+'
            text = re.sub(interval, lambda found: str(int(found[0]) * SAMPLES // 1024), text)
    text = re.sub(r'("key": "loaded_qsl_set", "value": )\[[^\]]*\]', rf"\g<1>{whole}", text, count=1)
    head, loaded, rest = text.partition(whole)
    text = head + loaded + re.sub(r'^:::MLLOG \{"key": "loaded_qsl_set".*\n', "", rest, flags=re.MULTILINE)
    throughput = re.search(r'^:::MLLOG \{"key": "result_samples_per_second", "value": ([\d.]+).*\n', text, re.MULTILINE)
    if throughput:
        line = throughput[0].replace("result_samples_per_second", "result_inferred_tokens_per_second")
        value = f"{float(throughput[1]) * TOKENS_PER_SAMPLE:.6g}"
        text = text.replace(throughput[0], throughput[0] + line.replace(throughput[1], value, 1))
    log.write_text(text, encoding="utf-8")
    summary = log.with_name("mlperf_log_summary.txt")
    text = summary.read_text(encoding="utf-8")
    for name in ("qsl", "sample_index", "schedule"):
        text = text.replace(str(getattr(SEEDS["v6.1"], name)), str(getattr(SEEDS[ROUND], name)))
    text = re.sub(r"^((?:performance|accuracy)_sample_count : )\d+", rf"\g<1>{SAMPLES}", text, flags=re.MULTILINE)
    text = re.sub(r"^(accuracy_log_sampling_target : )4096", r"\g<1>100", text, flags=re.MULTILINE)
    summary.write_text(text, encoding="utf-8")


def verify(test: Path, scenario: str) -> bool:
    """Write what run,mlperf,compliance writes of TEST06; return whether it passed."""
    log = (test / "accuracy/mlperf_log_accuracy.json").read_text()
    verdict = verify_answers(log.split("\n"), parse_scenario(scenario), RECORD.end_token, RECORD.response_type)
    (test / "verify_accuracy.txt").write_text(verdict.text)
    return verdict.is_passed


def edit_result(path: Path, test: str) -> None:
    """Say in a result.json that the run is one of GPT-J."""
    run = json.loads(path.read_text())["run"]
    run["model"] = {"value": "gptj-99", "origin": "user"}
    run["compliance_test"] = {"value": test or None, "origin": "user"}
    edit_json(path, run=run, sample_counts={"dataset": SAMPLES, "performance": SAMPLES, "accuracy": SAMPLES})


def make_runs(results: Path) -> Path:
    """Turn the real runs into such of GPT-J in two scenarios, with TEST06 instead of TEST01 and TEST04."""
    model = (results / SUT / "resnet50").rename(results / SUT / MODEL)
    shutil.rmtree(model / "MultiStream")
    with_old_seeds(results, ROUND)
    for scenario in ("SingleStream", "Offline"):
        folder = model / scenario
        shutil.rmtree(folder / "TEST04")
        test = (folder / "TEST01").rename(folder / "TEST06")
        for name in ("verify_performance.txt", "accuracy/accuracy.txt", "performance/run_1/accuracy.txt"):
            (test / name).unlink()
        for log in folder.rglob("mlperf_log_detail.txt"):
            with_numbers_of_gptj(log)
            edit_result(log.with_name("result.json"), "TEST06" if test in log.parents else "")
        (test / "accuracy/mlperf_log_accuracy.json").write_text(as_log(answers(test, scenario)))
        assert verify(test, scenario)
        rows = [{"seq_id": one, "qsl_idx": one, "data": tokens(one, 50256)} for one in range(SAMPLES)]
        (folder / "accuracy/mlperf_log_accuracy.json").write_text(as_log(rows))
        (folder / "accuracy/accuracy.txt").write_text(LINE + "\n")
        metrics = [{"name": name, "value": value, "reference": None, "target": None, "upper_limit": None,
                    "passed": True} for name, value in SCORES.items()]  # fmt: skip
        edit_json(folder / "accuracy/accuracy.json", metrics=metrics, line=LINE, response_count=SAMPLES)
    return results


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(unpack_runs(tmp_path_factory.mktemp("gptj")))


def gathered(results: Path, tree: Path) -> tree_builder.Gathered:
    return tree_builder.gather(request_of(env_of(results, tree, **ENV), tree.parent))


@pytest.fixture(scope="module")
def tree(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree") / "tree"
    found = gathered(runs, folder)
    systems, questions = tree_builder.describe_systems(found, FakeRecipes())
    assert [problem.text for problem in (*found.problems, *questions)] == []
    tree_builder.make(found, systems, PROGRAM, lambda line: None)
    return folder


def rules_of(tree: Path) -> set[str]:
    found = gate.check(tree, ROUND, Options(allow_synthetic=True))
    return {one.rule for one in found.findings if one.severity is gate.Severity.ERROR}


def changed(tree: Path, folder: Path, change: Callable[[list[dict[str, Any]]], Any], scenario: str) -> Path:
    copied = Path(shutil.copytree(tree, folder / "tree"))
    (log,) = copied.glob(f"closed/*/compliance/*/{MODEL}/{scenario}/TEST06/accuracy/mlperf_log_accuracy.json")
    rows = json.loads(log.read_text())
    change(rows)
    log.write_text(as_log(rows))
    return copied


def test_the_tree_of_gptj_is_made_and_accepted_as_a_pipeline_proof(tree: Path) -> None:
    found = gate.check(tree, ROUND, Options(allow_synthetic=True, backup_folder=tree.with_name("tree_logs")))
    assert [(one.rule, one.path, one.found) for one in found.findings if one.severity is gate.Severity.ERROR] == []
    assert found.text == "accepted as a pipeline proof only: synthetic"
    (verdict,) = tree.glob(f"closed/*/compliance/*/{MODEL}/Offline/TEST06/verify_accuracy.txt")
    assert verdict.read_text().splitlines() == [
        "First token check pass: Skipped",
        "EOS check pass: True",
        "Sample length check pass: True",
        "TEST06 verification complete",
    ]


CASES: Mapping[str, tuple[str, Callable[[list[dict[str, Any]]], Any]]] = {
    "a first token that is not the first": ("SingleStream", lambda rows: rows[3].update(token_data=tokens(999))),
    "two ends": ("Offline", lambda rows: rows[3].update(data=tokens(3, 11, 50256, 50256))),
    "a length that is not the answer's": ("Offline", lambda rows: rows[3].update(token_count=128)),
    "an answer without its length": ("Offline", lambda rows: rows[3].pop("token_count")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_answer_is_refused_whatever_the_verdict_file_says(tree: Path, tmp_path: Path, case: str) -> None:
    scenario, change = CASES[case]
    assert rules_of(changed(tree, tmp_path, change, scenario)) == {"TEST-013"}


def test_no_answer_at_all_verifies_nothing(tree: Path, tmp_path: Path) -> None:
    assert rules_of(changed(tree, tmp_path, lambda rows: rows.clear(), "Offline")) == {"TEST-011"}


LISTS: Mapping[str, tuple[str, str, set[str]]] = {
    "LoadGen's empty list": ("[\n]\n", "", set()),
    "no list": ("", "", {"TEST-011"}),
    "a list of other things": ("[\n{}\n]\n", "", {"TEST-011"}),
    "answers that were cut out": ("[\n\n...\n\n]\n", "", {"TEST-011", "TEST-026"}),
    "a check that failed": ("[\n]\n", "EOS check pass: False\nTEST06 verification failed\n", {"TEST-004"}),
}


@pytest.mark.parametrize("case", LISTS)
def test_an_empty_log_without_the_log_of_its_run_warns_as_in_the_published_round(
    tree: Path, tmp_path: Path, case: str
) -> None:
    """Twelve results of round v5.1 have LoadGen's empty list, three lines that passed, and no other file."""
    text, verdict, refusing = LISTS[case]
    copied = Path(shutil.copytree(tree, tmp_path / "tree"))
    (test,) = copied.glob(f"closed/*/compliance/*/{MODEL}/Offline/TEST06")
    shutil.rmtree(test / "performance")
    (test / "accuracy/mlperf_log_accuracy.json").write_text(text)
    if verdict:
        (test / "verify_accuracy.txt").write_text(verdict)
    found = gate.check(copied, ROUND, Options(allow_synthetic=True)).findings
    assert {one.rule for one in found if one.severity is gate.Severity.ERROR} == refusing
    warnings = [one for one in found if one.rule == "TEST-011" and one.severity is gate.Severity.WARNING]
    assert bool(warnings) is ("TEST-011" not in refusing)
    for one in warnings:
        assert "passed without an answer, so TEST06 has no evidence" in one.found
        assert "audit.config" in one.allowed and "repeat the test" in one.allowed


def test_answers_of_another_run_are_refused(tree: Path, tmp_path: Path) -> None:
    other = changed(tree, tmp_path, lambda rows: rows[3].update(qsl_idx=20000), "SingleStream")
    assert rules_of(other) == {"TEST-011"}


def test_the_maker_refuses_a_bad_answer_by_the_line_that_its_verdict_lacks(runs: Path, tmp_path: Path) -> None:
    results = copy_runs(runs, tmp_path)
    test = results / SUT / MODEL / "Offline" / "TEST06"
    rows = answers(test, "Offline")
    rows[0]["token_count"] = 5
    (test / "accuracy/mlperf_log_accuracy.json").write_text(as_log(rows))
    assert not verify(test, "Offline")
    found = gathered(results, tmp_path / "tree")
    words = "closed: gptj-99 Offline TEST06: verify_accuracy.txt does not say Sample length check pass: True"
    assert [problem.text for problem in found.problems] == [words]


def test_the_figure_of_gptj_is_tokens_per_second(tree: Path) -> None:
    (log,) = tree.glob(f"closed/*/results/*/{MODEL}/Offline/performance/run_1/mlperf_log_detail.txt")
    found = parse_detail_log(log.read_text())
    figure = found.published
    assert (figure.metric.unit, found.metric.metric.unit) == ("tokens/s", "samples/s")
    assert figure.value == pytest.approx(TOKENS_PER_SAMPLE * found.metric.value, rel=1e-5)
    (readme,) = tree.glob(f"closed/*/measurements/*/{MODEL}/Offline/README.md")
    assert f"| inferred tokens per second | {figure.value:.6g} tokens/s |" in readme.read_text()
