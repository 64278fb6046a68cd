"""Changes of logs: of performance and accuracy runs, and of compliance tests; what only the gate sees is among them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from changes import (
    C_ACC,
    C_MODEL,
    C_RUN,
    C_SERVER,
    DETAIL,
    JSON_LOG,
    O_ACC,
    O_MODEL,
    O_RUN,
    O_STREAM,
    O_SYSTEM,
    SUMMARY,
    T01,
    T04,
    Change,
    Mutation,
    both,
    drop,
    edit,
    field,
    line_without,
    put,
    rename,
    replace,
    value,
)  # fmt: skip
from tree_builder import logs

SECOND_VERDICT = ':::MLLOG {"key": "result_validity", "value": "INVALID", "metadata": {"is_error": false}}\n'
IS_ERROR = r'"is_error": false(?=.*"line_no": 53)'


def runs() -> Iterator[Mutation]:
    """What is wrong with a performance run."""
    detail, stream = f"{O_RUN}/{DETAIL}", f"{O_STREAM}/{DETAIL}"
    rows = (
        ("detail log missing", "RUN-001", drop(detail)),
        ("summary missing", "RUN-001", drop(f"{O_RUN}/{SUMMARY}")),
        ("run folder missing", "RUN-001", drop(O_RUN)),
        ("run folder renamed", "RUN-001", rename(O_RUN, f"{O_MODEL}/Offline/performance/run_2")),
        ("performance folder missing", "RUN-001", drop(f"{O_MODEL}/Offline/performance")),
        ("detail log empty", "RUN-003", put(detail, "")),
        ("detail log cut in a line", "RUN-003", edit(detail, r'("key": "result_validity")[\s\S]*\Z', '"key"')),
        ("text before the first message", "RUN-003", edit(detail, r"\A", "hello\n")),
        ("message no JSON", "RUN-003", edit(detail, r'^:::MLLOG \{"key": "loadgen_build_date_utc"', ":::MLLOG {'key")),
        ("message without is_error", "RUN-003", edit(detail, r'"is_error": false, (?=.*"line_no": 53)', "")),
        ("detail log binary", "RUN-003", put(detail, bytes(range(256)))),
        ("console output beside the log", "RUN-002", put(f"{O_RUN}/console.out", "x\n")),
        ("user.conf beside the log", "RUN-002", put(f"{O_RUN}/user.conf", "x\n")),
        ("INVALID", "RUN-004", value(detail, "result_validity", "INVALID")),
        ("no verdict", "RUN-004", line_without(detail, "result_validity")),
        ("an error message", "RUN-006", edit(detail, IS_ERROR, '"is_error": true')),
        ("wrong qsl seed", "RUN-007", value(detail, "effective_qsl_rng_seed", 1)),
        ("wrong sample index seed", "RUN-007", value(detail, "effective_sample_index_rng_seed", 1)),
        ("wrong schedule seed", "RUN-007", value(detail, "effective_schedule_rng_seed", 1)),
        ("seeds of another round", "RUN-007", both(
            value(detail, "effective_qsl_rng_seed", 2465351861681999779),
            value(detail, "effective_sample_index_rng_seed", 14276810075590677512),
            value(detail, "effective_schedule_rng_seed", 3936089224930324775))),
        ("no qsl seed", "RUN-007", line_without(detail, "effective_qsl_rng_seed")),
        ("few samples in memory", "RUN-008", value(detail, "effective_performance_sample_count", 500)),
        ("no count of samples in memory", "RUN-008", line_without(detail, "effective_performance_sample_count")),
        ("short min_duration", "RUN-009", value(detail, "effective_min_duration_ms", 599999)),
        ("min_duration of a test run", "RUN-009", value(detail, "effective_min_duration_ms", 2000)),
        ("min_duration as text", "RUN-009", value(detail, "effective_min_duration_ms", "600000")),
        ("no min_duration", "RUN-009", line_without(detail, "effective_min_duration_ms")),
        ("early stopping not met", "RUN-011", value(stream, "early_stopping_met", False)),
        ("no early stopping", "RUN-011", line_without(stream, "early_stopping_met")),
        ("Offline query too small", "RUN-013", value(detail, "effective_samples_per_query", 24575)),
        ("Offline without queries", "RUN-014", value(detail, "effective_min_query_count", 0)),
        ("log of Server in Offline", "RUN-015", value(detail, "effective_scenario", "Server")),
        ("log of no scenario", "RUN-015", value(detail, "effective_scenario", "Batch")),
        ("no figure", "RUN-017", line_without(detail, "result_samples_per_second")),
        ("figure 0", "RUN-017", value(detail, "result_samples_per_second", 0)),
        ("figure as text", "RUN-017", value(detail, "result_samples_per_second", "many")),
        ("no latency estimate", "RUN-017", line_without(stream, "early_stopping_latency_ss")),
    )  # fmt: skip
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)
    server = f"{C_SERVER}/{DETAIL}"
    yield Mutation("Server latency target loosened", "closed", "RUN-012",
                   value(server, "effective_target_latency_ns", 15000001))  # fmt: skip
    yield Mutation("closed Offline query too small", "closed", "RUN-013",
                   value(f"{C_RUN}/{DETAIL}", "effective_samples_per_query", 24575))  # fmt: skip
    yield Mutation("closed figure 0", "closed", "RUN-017",
                   value(server, "result_completed_samples_per_sec", 0))  # fmt: skip
    yield Mutation("power logs that are none", "open", "RUN-022",
                   put(f"{O_MODEL}/Offline/performance/power/client.json", "{}"))  # fmt: skip


def _hidden_invalid(root: Path) -> None:
    """A three-second run that LoadGen itself calls INVALID, with a long min_duration on paper."""
    for name in (SUMMARY, DETAIL):
        replace(root / O_STREAM / name, logs()[f"invalid/SingleStream/{name}"])


def only_ours() -> Iterator[Mutation]:
    """What at most the older checker refuses, and what neither sees."""
    detail, accuracy = f"{O_RUN}/{DETAIL}", f"{O_ACC}/accuracy.txt"
    label = "synthetic input, not an MLPerf result"
    own = {"format": 1, "is_synthetic": {"model": True, "dataset": False}, "label": label}
    rows = (
        ("hidden INVALID run of three seconds", "RUN-010", _hidden_invalid),
        ("summary INVALID", "RUN-005", edit(f"{O_RUN}/{SUMMARY}", "Result is : VALID", "Result is : INVALID")),
        ("summary empty", "RUN-005", put(f"{O_RUN}/{SUMMARY}", "")),
        ("a second, INVALID verdict", "RUN-021", edit(
            detail, r"\Z", SECOND_VERDICT)),
        ("num_errors 1 without a message", "RUN-006", value(detail, "num_errors", 1)),
        ("ran three seconds", "RUN-010", value(detail, "power_end", "11-21-2026 13:34:30.000")),
        ("no power times", "RUN-010", line_without(detail, "power_begin")),
        ("SingleStream logs in Offline", "RUN-015", lambda root: [
            replace(root / O_RUN / name, (root / O_STREAM / name).read_bytes()) for name in (SUMMARY, DETAIL)]),
        ("accuracy log as performance log", "RUN-016", lambda root: replace(
            root / detail, (root / O_ACC / DETAIL).read_bytes())),
        ("accuracy log of another scenario", "ACC-014", lambda root: replace(
            root / O_ACC / DETAIL, (root / O_MODEL / "SingleStream/accuracy" / DETAIL).read_bytes())),
        ("no hash in open", "ACC-009", edit(accuracy, r"^hash=.*\n", "")),
        ("two hashes", None, edit(accuracy, r"\Z", f"hash={'0' * 64}\n")),
        ("hash no digest", "ACC-009", edit(accuracy, r"^hash=.*$", "hash=yes")),
        ("hash of the cut log", "ACC-010", edit(accuracy, r"^hash=.*$", "hash=" + _cut_digest())),
        ("whole small log with another hash", "ACC-010", put(
            f"{O_ACC}/{JSON_LOG}", '[\n{ "seq_id" : 0, "qsl_idx" : 1, "data" : "0000C842" }\n]\n')),
        ("accuracy log of nothing", "ACC-012", put(f"{O_ACC}/{JSON_LOG}", "[\n]\n")),
        ("accuracy log of a larger data set", "ACC-012", edit(
            f"{O_ACC}/{JSON_LOG}", '"qsl_idx" : 1', '"qsl_idx" : 91')),
        ("counts of a part of the data set", "ACC-013", edit(accuracy, "total=50000", "total=500")),
        ("score that is not good/total", "ACC-013", edit(accuracy, r"accuracy=86\.800", "accuracy=96.800")),
        ("marked as synthetic", "SYN-001", field(f"{O_MODEL}/Offline/measurements.json", "crowdperf", own)),
        ("README says synthetic", "SYN-001", edit(f"{O_MODEL}/Offline/README.md", r"\Z", label + "\n")),
        ("description says synthetic", "SYN-002", field(O_SYSTEM, "sw_notes", label)),
        ("README of a test run", "SYN-003", edit(
            f"{O_MODEL}/Offline/README.md", r"\Z", "test run, not a valid MLPerf result\n")),
        ("a token in a README", "PRIV-001", edit(
            f"{O_MODEL}/Offline/README.md", r"\Z", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8\n")),
        ("a home folder in user.conf", None, edit(
            f"{O_MODEL}/Offline/user.conf", r"\Z", "# /home/jane/model.onnx\n")),
        ("audit.config left in the run's folder", "FILE-005", put(f"{O_MODEL}/Offline/audit.config", "x\n")),
        ("no submission at all", "TREE-001", drop("open")),
        ("division misspelt", "TREE-001", rename("open", "Open")),
    )  # fmt: skip
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)


def _cut_digest() -> str:
    return hashlib.sha256(logs()[f"accuracy/Offline/{JSON_LOG}"]).hexdigest()


def accuracy_runs() -> Iterator[Mutation]:
    """What is wrong with an accuracy run."""
    detail, text = f"{O_ACC}/{DETAIL}", f"{O_ACC}/accuracy.txt"
    rows = (
        ("accuracy.txt missing", "ACC-001", drop(text)),
        ("accuracy log missing", "ACC-001", drop(f"{O_ACC}/{JSON_LOG}")),
        ("accuracy detail log missing", "ACC-001", drop(detail)),
        ("accuracy summary missing", "ACC-001", drop(f"{O_ACC}/{SUMMARY}")),
        ("accuracy folder missing", "ACC-001", drop(O_ACC)),
        ("picture in the accuracy folder", "ACC-002", put(f"{O_ACC}/plot.png", "x")),
        ("console output in the accuracy folder", "ACC-002", put(f"{O_ACC}/console.txt", "x")),
        ("accuracy detail log empty", "ACC-003", put(detail, "")),
        ("error in the accuracy log", "ACC-004", edit(detail, IS_ERROR, '"is_error": true')),
        ("part of the data set", "ACC-005", value(detail, "effective_accuracy_sample_count", 500)),
        ("more than the data set", "ACC-005", value(detail, "effective_accuracy_sample_count", 50001)),
        ("accuracy.txt empty", "ACC-006", put(text, "")),
        ("score in words", "ACC-006", edit(text, r"^accuracy=.*$", "accuracy: high")),
        ("score behind chatter on its line", "ACC-006", edit(text, r"^accuracy=", "INFO accuracy=")),
        ("score of another metric", "ACC-006", edit(text, r"^accuracy=.*$", "mAP=37.5%")),
        ("accuracy log not cut", "ACC-011", put(f"{O_ACC}/{JSON_LOG}", "[\n" + '{ "qsl_idx" : 1 },\n' * 1000)),
    )  # fmt: skip
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)
    text, detail = f"{C_ACC}/accuracy.txt", f"{C_ACC}/{DETAIL}"
    rows = (
        ("closed score below the target", "ACC-007", put(text, _accuracy_text(75.694))),
        ("closed score far below", "ACC-007", put(text, _accuracy_text(10.0))),
        ("closed without a score", "ACC-006", edit(text, r"^accuracy=.*\n", "")),
        ("closed without a hash", "ACC-009", edit(text, r"^hash=.*\n", "")),
        ("closed with text behind the hash", "ACC-009", edit(text, r"^(hash=.*)$", "hash=0123 of the log")),
        ("closed accuracy log not cut", "ACC-011", put(f"{C_ACC}/{JSON_LOG}", "[\n" + '{ "qsl_idx" : 1 },\n' * 1000)),
        ("closed part of the data set", "ACC-005", value(detail, "effective_accuracy_sample_count", 49999)),
    )  # fmt: skip
    yield from (Mutation(name, "closed", rule, change) for name, rule, change in rows)


def _accuracy_text(percent: float) -> str:
    good = round(percent * 500)
    return f"accuracy={percent:.3f}%, good={good}, total=50000\nhash={'5' * 64}\n"


def compliance_tests() -> Iterator[Mutation]:
    """What is wrong with a compliance test."""
    log = f"{T01}/performance/run_1/{DETAIL}"
    rows = (
        ("TEST01 missing", "TEST-001", drop(T01)),
        ("TEST04 missing", "TEST-001", drop(T04)),
        ("TEST01 renamed", "TEST-001", rename(T01, T01.replace("TEST01", "test01"))),
        ("TEST01 verify_accuracy missing", "TEST-002", drop(f"{T01}/verify_accuracy.txt")),
        ("TEST01 verify_performance missing", "TEST-002", drop(f"{T01}/verify_performance.txt")),
        ("TEST04 verify_performance missing", "TEST-002", drop(f"{T04}/verify_performance.txt")),
        ("TEST01 speed failed", "TEST-003", edit(f"{T01}/verify_performance.txt", "TEST PASS", "TEST FAIL")),
        ("TEST04 speed failed", "TEST-003", edit(f"{T04}/verify_performance.txt", "TEST PASS", "TEST FAIL")),
        ("TEST01 responses failed", "TEST-004", edit(f"{T01}/verify_accuracy.txt", "TEST PASS", "TEST FAIL")),
        ("TEST01 verdict not alone on its line", "TEST-004", edit(
            f"{T01}/verify_accuracy.txt", "TEST PASS", "verdict: TEST PASS")),
        ("TEST01 scores too far apart", "TEST-004", _scores(86.8, 80.0)),
        ("TEST01 scores of 0", "TEST-004", _scores(0.0, 0.0)),
        ("TEST01 scores near each other", None, _scores(86.8, 86.5)),
        ("TEST01 accuracy folder missing", "TEST-005", drop(f"{T01}/accuracy")),
        ("TEST01 accuracy.txt missing", "TEST-005", drop(f"{T01}/accuracy/accuracy.txt")),
        ("TEST01 accuracy log missing", "TEST-005", drop(f"{T01}/accuracy/{JSON_LOG}")),
        ("TEST01 stray file in accuracy", "TEST-005", put(f"{T01}/accuracy/notes.txt", "x")),
        ("TEST01 scores without need", "TEST-005", put(f"{T01}/accuracy/baseline_accuracy.txt", "accuracy=86.8%\n")),
        ("TEST01 detail log missing", "RUN-001", drop(log)),
        ("TEST01 summary missing", "RUN-001", drop(f"{T01}/performance/run_1/{SUMMARY}")),
        ("TEST01 run missing", "RUN-001", drop(f"{T01}/performance")),
        ("TEST04 run missing", "RUN-001", drop(f"{T04}/performance")),
        ("TEST01 stray file beside the log", "RUN-002", put(f"{T01}/performance/run_1/console.txt", "x")),
        ("TEST01 run INVALID", "RUN-004", value(log, "result_validity", "INVALID")),
        ("TEST01 short min_duration", "RUN-009", value(log, "effective_min_duration_ms", 60000)),
        ("TEST01 other seeds", "RUN-007", value(log, "effective_schedule_rng_seed", 5)),
        ("TEST04 few samples in memory", "RUN-008", value(
            f"{T04}/performance/run_1/{DETAIL}", "effective_performance_sample_count", 10)),
        ("TEST04 detail log empty", "RUN-003", put(f"{T04}/performance/run_1/{DETAIL}", "")),
        ("TEST04 of Server with a loose target", "RUN-012", value(
            f"{C_MODEL}/Server/TEST04/performance/run_1/{DETAIL}", "effective_target_latency_ns", 10**9)),
    )  # fmt: skip
    yield from (Mutation(name, "closed", rule, change) for name, rule, change in rows)


def _scores(baseline: float, compliance: float) -> Change:
    """TEST01 without equal bits, decided by two scores."""
    return both(
        edit(f"{T01}/verify_accuracy.txt", "TEST PASS", "TEST FAIL"),
        edit(f"{T01}/verify_accuracy.txt", "num_perf_log_data_mismatch = 0", "num_perf_log_data_mismatch = 12"),
        put(f"{T01}/accuracy/baseline_accuracy.txt", f"accuracy={baseline}%\n"),
        put(f"{T01}/accuracy/compliance_accuracy.txt", f"accuracy={compliance}%\n"),
    )
