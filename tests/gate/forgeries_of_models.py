"""More forged results: logs of tests that were left out, cut or thinned out, and models that the others leave aside."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from changes import DETAIL, JSON_LOG, SUMMARY, Change, both, drop, edit, line_without, put, replace
from forgeries_of_results import ANSWER_TESTS, Forgery, accuracy, fit_summary, in_both_settings, performance, scaled

SUBMITTED_TESTS = ("gpt-oss-120b", "e2e-rag-qna")
"""Models with TEST07 or TEST09, whose text says which logs must be submitted."""

STREAMS, TIMED = ("SingleStream", "MultiStream"), ("Server", "Interactive")
GAP = "[\n\n\n...\n\n\n]\n"


def in_tests(change: Callable[[str], Change], *tests: str) -> Callable[[str], Change]:
    """Change the folder of each of these tests, by default all that log answers, that a result has."""

    def changed(folder: str) -> Change:
        paths = [f"{folder}/{test}" for test in tests or ANSWER_TESTS]
        return lambda root: [change(path)(root) for path in paths if (root / path).is_dir()] and None

    return changed


def file_of(change: Callable[[str], Change], name: str) -> Callable[[str], Change]:
    """Change a file of a test's folder."""
    return lambda folder: change(f"{folder}/{name}")


def shortened(name: str, lines: slice) -> Change:
    """Keep some of the lines of a file."""

    def change(root: Path) -> None:
        rows = (root / name).read_text().splitlines(keepends=True)
        replace(root / name, "".join(rows[lines]))

    return change


def half_of(name: str) -> Change:
    """Cut a file in the middle, within a line."""
    return lambda root: replace(root / name, (root / name).read_bytes()[: (root / name).stat().st_size // 2])


def thinned(name: str, count: int) -> Change:
    """Keep the first responses of an accuracy log."""

    def change(root: Path) -> None:
        rows = [line.rstrip(",") for line in (root / name).read_text().split("\n") if "seq_id" in line]
        replace(root / name, "[\n" + ",\n".join(rows[:count]) + "\n]\n")

    return change


def first_twice(name: str) -> Change:
    """Put the first response of an accuracy log into the place of the second."""

    def change(root: Path) -> None:
        head, first, _, *rest = (root / name).read_text().split("\n")
        replace(root / name, "\n".join((head, first, first, *rest)))

    return change


def of_left_out_logs() -> Iterator[Forgery]:
    """Tests whose verdict stands, but not what it follows from."""
    run, every = "performance/run_1", ("llama2-70b-99.9", *SUBMITTED_TESTS)
    detail, summary, log = f"{run}/{DETAIL}", f"{run}/{SUMMARY}", f"accuracy/{JSON_LOG}"
    score = "accuracy/accuracy.txt"
    rows: Sequence[tuple[str, tuple[str, ...], str, Callable[[str], Change]]] = (
        ("no detail log", SUBMITTED_TESTS, "TEST-021", file_of(drop, detail)),
        ("no summary", SUBMITTED_TESTS, "TEST-021", file_of(drop, summary)),
        ("no logged answers", SUBMITTED_TESTS, "TEST-021", file_of(drop, "accuracy")),
        ("empty detail log", every, "RUN-003", file_of(lambda name: put(name, ""), detail)),
        ("detail log cut within a line", every, "RUN-003", file_of(half_of, detail)),
        ("detail log without its end", every, "LOG-004", file_of(lambda name: shortened(name, slice(-1)), detail)),
        ("empty summary", every, "SUM-001", file_of(lambda name: put(name, ""), summary)),
        ("answers that were all cut out", SUBMITTED_TESTS, "TEST-011", file_of(lambda name: put(name, GAP), log)),
        ("cut answers without a hash", SUBMITTED_TESTS, "TEST-014", file_of(drop, score)),
    )  # fmt: skip
    for name, trees, rule, change in rows:
        yield Forgery(f"logs of an answer test: {name}", trees, rule, in_tests(change))


def with_max_duration(folder: str) -> Change:
    """A limit that the run went beyond, without the error that LoadGen ends it with."""
    run = performance(folder)
    fit: Change = lambda root: fit_summary(root / run)  # noqa: E731
    return both(in_both_settings(run, max_duration_ms=620000), fit)


def verified_on_few(folder: str) -> Change:
    """TEST01 that passed on the ten answers that were left, with their hash."""
    counts = r"(?<=num_perf_log_entries = )\d+|(?<=num_perf_log_qsl_idx_match = )\d+"
    log, score = f"{folder}/accuracy/{JSON_LOG}", f"{folder}/accuracy/accuracy.txt"

    def hashed(root: Path) -> None:
        edit(score, r"^hash=.*$", f"hash={hashlib.sha256((root / log).read_bytes()).hexdigest()}")(root)

    return both(edit(f"{folder}/verify_accuracy.txt", counts, "10"), thinned(log, 10), hashed)


def of_other_models() -> Iterator[Forgery]:
    """Alterations of models, scenarios and tests that have few others."""
    answers, log = f"accuracy/{JSON_LOG}", accuracy(JSON_LOG)
    overhead, lengths = "TPS w/o loadgen overhead", "verify_output_len.txt"
    offline, timed = "result_tokens_per_second", r"result_completed_tokens_per_second|result_token_throughput\w*"
    late, token = ("yolo-99", "llama3.1-8b-edge", "deepseek-r1", "stable-diffusion-xl"), ("llama3.1-8b", "gpt-oss-120b")
    few, test06 = ("bert-99", "3d-unet-99", "rgat", "yolo-99"), ("deepseek-r1", "llama3.1-8b")
    scored, numbered = ("bert-99", "qwen3-vl-235b-a22b", "dlrm-v3"), ("wan-2.2-t2v-a14b", "e2e-rag-db", "qwen3.6-27b")
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("rate without overhead in the summary", ("llama3.1-8b-edge",), "SUM-002", STREAMS, lambda folder: edit(
            f"{performance(folder)}/{SUMMARY}", rf"^{re.escape(overhead)}.*$", f"{overhead} : 1337.00")),
        ("latency of the result in the summary", ("closed", "llama3.1-8b-edge"), "SUM-002", STREAMS,
            lambda folder: edit(
                f"{performance(folder)}/{SUMMARY}", r"(?<=th percentile latency \(ns\) : )\d+$", "1000")),
        ("a run beyond its max_duration", late, "SET-004", (*STREAMS, *TIMED), with_max_duration),
        ("TEST06 of three answers", test06, "TEST-022", (), in_tests(
            file_of(lambda name: thinned(name, 3), answers), "TEST06")),
        ("TEST06 with an answer in the place of another", test06, "TEST-011", (), in_tests(
            file_of(first_twice, answers), "TEST06")),
        ("TEST01 verified on the answers that were left", few, "TEST-022", (), in_tests(verified_on_few, "TEST01")),
        ("an answer of the accuracy run in the place of another", scored, "ACC-025", (), lambda folder: first_twice(
            log(folder))),
        ("an answer of the accuracy run that was not asked for", numbered, "ACC-025", (), lambda folder: edit(
            log(folder), r'"seq_id" : 2,', '"seq_id" : 900000000,')),
        ("rate of tokens above the answers of the tests", token, "FIG-016", ("Offline",), lambda folder: scaled(
            performance(folder), offline, 1.9)),
        ("all rates of tokens above the answers of the tests", token, "FIG-016", TIMED, lambda folder: scaled(
            performance(folder), timed, 1.5)),
        ("TEST09 of more samples than its run had", SUBMITTED_TESTS, "TEST-017", (), in_tests(file_of(
            lambda name: edit(name, r"(?<=^Total samples: )\d+", "50000"), lengths), "TEST09")),
        ("TEST09 of longer answers than its run had", ("gpt-oss-120b",), "TEST-017", ("Offline",), in_tests(
            lambda folder: scaled(f"{folder}/performance/run_1", offline, 0.5), "TEST09")),
        ("a submitted run without its count of errors", ("rgat", "3d-unet-99", "e2e-rag-db"), "LOG-004", (),
            lambda folder: line_without(f"{performance(folder)}/{DETAIL}", "num_errors")),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"other models: {name}", trees, rule, change, only)


def of_models() -> tuple[Forgery, ...]:
    """All of them."""
    return (*of_left_out_logs(), *of_other_models())
