"""The gate computes TEST08's entropies again from the logs; its file alone is not believed without a word."""

import hashlib
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crowdperf.gate.documents import TextFile
from crowdperf.gate.rulebook import Severity, Violation
from crowdperf.gate.rules_compliance import responses_passed
from crowdperf.gate.rules_testscores import entropies_agree, entropies_follow_from_logs
from crowdperf.gate.views import Options

WHOLE, TESTED = (
    "dlrm-v3/Offline/accuracy/mlperf_log_accuracy.json",
    "dlrm-v3/Offline/TEST08/accuracy/mlperf_log_accuracy.json",
)
LIMITS = {"TEST08": {"tolerance": 0.001}}
CUT = "[\n\n...\n\n]\n"
QUERIES = 3


def log(is_test: bool, predictions: tuple[float, ...] = (0.8, 0.3)) -> str:
    """An accuracy log; the first query is answered with `predictions`."""
    rows = []
    for query in range(QUERIES):
        answer = (90.0, query, *(predictions if query == 0 else (0.8, 0.3)))
        numbers = answer if is_test else (*answer, 1.0, 0.0, 1.0, 1.0, 2.0)
        data = struct.pack(f"<{len(numbers)}f", *numbers).hex()
        rows.append(json.dumps({"seq_id": query, "qsl_idx": 0, "data": data}))
    return "[\n" + ",\n".join(rows) + "\n]\n"


def verdict(**counts: int) -> str:
    """What TEST08's script printed."""
    names = {"num_acc_log_entries": QUERIES, "num_perf_log_entries": QUERIES, "num_matched": QUERIES,
             "num_unmatched": 0, "num_ne_mismatch": 0, **counts}  # fmt: skip
    return "".join(f"{name} = {count}\n" for name, count in names.items()) + "tolerance = 0.10%\n\nTEST PASS\n"


def found(tested: TextFile, whole: TextFile, said: str = verdict(), backup: Path | None = None) -> list[Violation]:
    """What the rule finds in a test's folder."""
    score = TextFile(path="accuracy.txt", text=f"hash={hashlib.sha256(log(False).encode()).hexdigest()}\n")
    scenario = SimpleNamespace(
        accuracy_log=whole, accuracy_text=score, tree=SimpleNamespace(options=Options(backup_folder=backup)),
        model=SimpleNamespace(table=SimpleNamespace(test_limits=LIMITS)),
    )  # fmt: skip
    test: Any = SimpleNamespace(
        test="TEST08", scenario=scenario, responses=tested, responses_score=TextFile(path="a", is_missing=True),
        verify_accuracy=TextFile(path="TEST08/verify_accuracy.txt", text=said),
    )  # fmt: skip
    return list(entropies_follow_from_logs(test))


GOOD, REFERENCE = TextFile(path=TESTED, text=log(True)), TextFile(path=WHOLE, text=log(False))


def test_the_same_answers_are_no_finding() -> None:
    assert found(GOOD, REFERENCE) == []


@pytest.mark.parametrize(
    ("changed", "said", "words"),
    [
        (log(True, (0.7, 0.3)), verdict(), "NE mismatch at (90, 0)"),
        (log(True, (0.8,)), verdict(), "1 predictions for 2 candidates"),
        (log(True), verdict(num_perf_log_entries=4096, num_matched=4096), "num_perf_log_entries = 3, by the logs"),
        (log(True), verdict(num_acc_log_entries=349823), "num_acc_log_entries = 3, by the logs"),
        ("[]\n", verdict(), "num_matched = 0"),
    ],
)
def test_changed_answers_refuse_the_verdict(changed: str, said: str, words: str) -> None:
    findings = found(TextFile(path=TESTED, text=changed), REFERENCE, said)
    assert findings and all(one.severity is None for one in findings)
    assert any(words in one.allowed for one in findings)


def test_logs_that_are_cut_or_left_out_are_read_from_the_backup(tmp_path: Path) -> None:
    missing, cut = TextFile(path=TESTED, is_missing=True), TextFile(path=WHOLE, text=CUT)
    for path, text in ((WHOLE, log(False)), (TESTED, log(True, (0.7, 0.3)))):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    (finding,) = found(missing, cut, backup=tmp_path)
    assert "NE mismatch at (90, 0)" in finding.allowed
    (tmp_path / TESTED).write_text(log(True))
    assert found(missing, cut, backup=tmp_path) == []


@pytest.mark.parametrize(
    ("tested", "whole", "path"),
    [
        (TextFile(path=TESTED, is_missing=True), REFERENCE, TESTED),
        (TextFile(path=TESTED, problem="2000000 bytes"), REFERENCE, TESTED),
        (GOOD, TextFile(path=WHOLE, text=CUT), WHOLE),
    ],
)
def test_a_verdict_without_its_logs_is_a_warning(tested: TextFile, whole: TextFile, path: str) -> None:
    (finding,) = found(tested, whole)
    assert (finding.severity, finding.path) == (Severity.WARNING, path)


def test_a_verdict_that_says_no_pass_is_left_to_its_rule() -> None:
    assert found(GOOD, REFERENCE, "TEST FAIL\n") == []
    for name, file in (("TEST07", "accuracy"), ("TEST08", "accuracy"), ("TEST09", "output_len")):
        for said, expected in (("x\nTEST FAIL\n", ["x\nTEST FAIL"]), ("TEST PASS\n", [])):
            other, source = TextFile(path="other", is_missing=True), TextFile(path=f"verify_{file}.txt", text=said)
            files = (source, other) if file == "accuracy" else (other, source)
            test: Any = SimpleNamespace(test=name, verify_accuracy=files[0], verify_length=files[1])
            findings = list(responses_passed(test))
            assert [one.found for one in findings] == expected and {one.path for one in findings} <= {source.path}


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        (verdict(), []),
        (verdict(num_acc_log_entries=QUERIES - 1), [f"at least {QUERIES}"]),
        (verdict(num_unmatched=1), ["0 to 0"]),
        (verdict(num_matched=QUERIES - 1), [f"{QUERIES} to {QUERIES}"]),
        (verdict().replace("0.10%", "0.20%"), ["0 to 0.1"]),
        (verdict().replace("tolerance", "other"), ["the output of the script"]),
        (verdict().replace("PASS", "FAIL"), []),
    ],
)
def test_what_the_script_printed_is_within_its_limits(said: str, allowed: list[str]) -> None:
    table = SimpleNamespace(test_limits=LIMITS, accuracy_samples_in=lambda scenario: QUERIES)
    scenario = SimpleNamespace(model=SimpleNamespace(table=table), scenario="Offline")
    source = TextFile(path="TEST08/verify_accuracy.txt", text=said)
    test: Any = SimpleNamespace(test="TEST08", scenario=scenario, verify_accuracy=source)
    assert [one.allowed for one in entropies_agree(test)] == allowed
