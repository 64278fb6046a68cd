"""Forged results that what LoadGen draws by chance gives away, and others that no rule met before November 2026."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from changes import DETAIL, JSON_LOG, Change, both, edit, put, replace, value
from forgeries_of_models import STREAMS, file_of, in_tests
from forgeries_of_results import Forgery, accuracy, performance, scaled

OURS = ("open", "closed")
OFFLINE, SERVER, NO_SERVER = ("Offline",), ("Server",), ("SingleStream", "MultiStream", "Offline")
SAMPLE = r'(?<="seq_id" : )(\d+)(, "qsl_idx" : )(\d+)'
AUDIT = (
    ':::MLLOG {"key": "warning_generic_message", "value": "Found Audit Config file (audit.config). Overriding '
    'TestSettings from audit.config file.", "time_ms": 0.01, "metadata": {"is_error": false, "is_warning": true}}\n'
)
COUNTS = r"(?<=num_perf_log_entries = )\d+|(?<=num_perf_log_qsl_idx_match = )\d+"

FIRST_ROW = r"(?<=\A\[\n).*\n"


def detail(folder: str) -> str:
    """The detail log of the submitted run."""
    return f"{performance(folder)}/{DETAIL}"


def loaded(log: str, function: Callable[[list[int]], list[int]]) -> Change:
    """Change the samples that were loaded."""

    def change(root: Path) -> None:
        text = (root / log).read_text()
        found = re.search(r'(?<="loaded_qsl_set", "value": )\[[\d,]+\]', text)
        replace(
            root / log, text.replace(found[0], json.dumps(function(json.loads(found[0])), separators=(",", ":")), 1)
        )

    return change


def numbers(name: str, pattern: str, function: Callable[[int], int]) -> Change:
    """Change every number that a pattern finds."""

    def change(root: Path) -> None:
        text, count = re.subn(pattern, lambda found: str(function(int(found[0]))), (root / name).read_text())
        assert count, pattern
        replace(root / name, text)

    return change


def first_response(name: str, number: Callable[[int], int], sample: Callable[[int], int]) -> Change:
    """Change the number or the sample of the first response of an accuracy log."""

    def change(root: Path) -> None:
        def other(found: re.Match[str]) -> str:
            return f"{number(int(found[1]))}{found[2]}{sample(int(found[3]))}"

        replace(root / name, re.sub(SAMPLE, other, (root / name).read_text(), count=1))

    return change


def same(number: int) -> int:
    """The same number."""
    return number


def without_end(folder: str) -> Change:
    """No message of how the run ended."""
    return edit(detail(folder), r'^.*"value": "Ending naturally.*\n', "")


def half_issued(log: str) -> Change:
    """Half of the first part of the samples, in queries or, in Offline, in one query."""
    key = "generated_samples_per_query" if "/Offline/" in log else "generated_query_count"
    return numbers(log, rf'(?<="key": "{key}", "value": )\d+', lambda found: found // 2)


def of_samples() -> Iterator[Forgery]:
    """What was loaded, and of how many."""
    total = "qsl_reported_total_count"
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("in ascending order", OURS, "SET-013", (), lambda folder: loaded(
            detail(folder), lambda found: sorted(set(found)) + found[len(set(found)):])),
        ("of the end of the data set", OURS, "SET-013", (), lambda folder: loaded(
            detail(folder), lambda found: [one + 48000 for one in found])),
        ("of a larger data set", OURS, "IDENT-009", (), lambda folder: value(detail(folder), total, 60000)),
        ("of a larger data set in the accuracy run", OURS, "IDENT-009", (), lambda folder: value(
            accuracy(DETAIL)(folder), total, 60000)),
        ("of another choice in TEST01", ("closed", "whisper"), "IDENT-009", (), lambda folder: loaded(
            f"{folder}/TEST01/performance/run_1/{DETAIL}", lambda found: found[::-1])),
        ("of a number that nobody asked for", OURS, "SET-014", (), lambda folder: value(
            detail(folder), "requested_performance_sample_count_override", 2048)),
        ("of an accuracy run that was asked for 500", OURS, "SET-014", (), lambda folder: value(
            accuracy(DETAIL)(folder), "requested_accuracy_sample_count_override", 500)),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"samples: {name}", trees, rule, change, only)


def of_schedules() -> Iterator[Forgery]:
    """Runs in which all that people look at was multiplied."""
    samples = r"\w+_samples_per_query|effective_min_sample_count|requested_min_query_count"
    server = r"(?:generated|result)_query_count|result_overlatency_query_count|result_(?:scheduled|completed)_\w+"
    asked = r"effective_target_qps|requested_(?:server_target|offline_expected)_qps"
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("ten times the samples in Offline", OURS, "SET-003", OFFLINE, lambda folder: scaled(
            performance(folder), rf"{samples}|{asked}|result_\w+_per_second", 10)),
        ("ten times the queries in Server", ("closed", "stable-diffusion-xl"), "FIG-017", SERVER, lambda folder: scaled(
            performance(folder), rf"{server}|{asked}", 10)),
        ("one query more in Server", ("closed",), "FIG-017", SERVER, lambda folder: numbers(
            detail(folder), r'(?<=_query_count", "value": )12098', lambda found: found + 40)),
        ("one query more than all samples", ("llama2-70b-99.9",), "SET-003", SERVER, lambda folder: numbers(
            detail(folder), r'(?<="key": "generated_query_count", "value": )\d+', lambda found: found + 1)),
        ("twice the queries generated in a stream", OURS, "SET-003", STREAMS, lambda folder: scaled(
            performance(folder), r"generated_query_(?:count|duration)", 2)),
        ("a least count that nobody asked for", OURS, "SET-001", ("MultiStream",), lambda folder: scaled(
            performance(folder), r"effective_min_(?:query|sample)_count", 2)),
        ("no word of the end", OURS, "LOG-008", NO_SERVER, without_end),
        ("settings of a test taken out", OURS, "SET-015", (), lambda folder: edit(
            detail(folder), r'(?=^:::MLLOG \{"key": "requested_scenario")', AUDIT)),
        ("queries that end before their samples", OURS, "FIG-013", ("MultiStream",), lambda folder: scaled(
            performance(folder), r"result_9[057].00_percentile_per_query_latency_ns", 0.5)),
        ("LoadGen built five minutes before", OURS, "LG-005", (), lambda folder: value(
            detail(folder), "loadgen_build_date_utc", "2026-07-24T17:34:47.375453")),
        ("LoadGen of a commit of the future", OURS, "LG-005", (), lambda folder: value(
            detail(folder), "loadgen_git_commit_date", "2027-07-24T16:21:02Z")),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"schedules: {name}", trees, rule, change, only)


def of_responses() -> Iterator[Forgery]:
    """Responses that were not those of the run, and counts of them."""
    log, score, test01 = accuracy(JSON_LOG), accuracy("accuracy.txt"), f"accuracy/{JSON_LOG}"
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("another sample in the accuracy log", ("open", "yolo-99"), "ACC-026", OFFLINE, lambda folder: first_response(
            log(folder), same, lambda found: found ^ 1)),
        ("a sample of another part in the accuracy log", OURS, "ACC-026", (), lambda folder: first_response(
            log(folder), lambda _: 0, lambda _: 49999)),
        ("a response of TEST01 that nothing chose", ("closed", "yolo-99", "bert-99"), "TEST-023", (), in_tests(file_of(
            lambda name: first_response(name, lambda found: found + 1, same), test01), "TEST01")),
        ("TEST01 verified on two responses fewer", ("closed", "yolo-99"), "TEST-023", ("SingleStream",), in_tests(
            file_of(lambda name: numbers(name, COUNTS, lambda found: found - 2), "verify_accuracy.txt"), "TEST01")),
        ("another sample in TEST01", ("closed", "yolo-99"), "TEST-024", OFFLINE, in_tests(file_of(
            lambda name: first_response(name, same, lambda found: found ^ 1), test01), "TEST01")),
        ("an accuracy run that issued half of its samples", OURS, "ACC-028", (), lambda folder: half_issued(
            accuracy(DETAIL)(folder))),
        ("responses beside a run that logs none", OURS, "RUN-025", (), lambda folder: put(
            f"{performance(folder)}/{JSON_LOG}", '[\n{ "seq_id" : 1, "qsl_idx" : 2, "data" : "00" }\n]\n')),
        ("a response taken out of a cut log", OURS, "ACC-029", (), lambda folder: edit(log(folder), FIRST_ROW, "")),
        ("a response taken out of TEST01's cut log", ("closed",), "TEST-026", (), in_tests(
            file_of(lambda name: edit(name, FIRST_ROW, ""), test01), "TEST01")),
        ("one hash for all logs", ("open", "yolo-99"), "IDENT-010", (), lambda folder: edit(
            score(folder), r"^hash=.*$", f"hash={'a' * 64}")),
        ("the accuracy run's hash for TEST01", ("closed", "whisper"), "IDENT-010", (), lambda folder: both(
            edit(score(folder), r"^hash=.*$", f"hash={folder.encode().hex()[-64:]}"),
            edit(f"{folder}/TEST01/accuracy/accuracy.txt", r"^hash=.*$", f"hash={folder.encode().hex()[-64:]}"))),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"responses: {name}", trees, rule, change, only)


def scores_of_one_percent(folder: str) -> Change:
    """TEST01 whose answers differ, with scores that agree with each other."""
    names = [f"{folder}/TEST01/accuracy/{kind}_accuracy.txt" for kind in ("baseline", "compliance")]
    text = "accuracy=1.000%, good=41, total=4096\nWord Error Rate: 99.00%, accuracy=1.00%\nmAP=1.000%\n"
    failed = edit(f"{folder}/TEST01/verify_accuracy.txt", "TEST PASS", "TEST FAIL")
    return both(failed, *(put(name, text) for name in names))


def of_scores() -> Iterator[Forgery]:
    """Scores that there cannot be, or that are of something else."""
    score = accuracy("accuracy.txt")
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("more right answers than answers", OURS, "ACC-027", (), lambda folder: edit(
            score(folder), r"^accuracy=.*$", "accuracy=176.800%, good=88400, total=50000")),
        ("mAP of 375 %", ("yolo-99",), "ACC-027", (), lambda folder: edit(
            score(folder), r"(?<=mAP=)[\d.]+", "375.0")),
        ("more exact answers than F1", ("bert-99",), "ACC-027", (), lambda folder: edit(
            score(folder), r'(?<="exact_match": )[\d.]+', "95.1")),
        ("more pairs of words right than words", ("llama2-70b-99.9",), "ACC-027", (), lambda folder: edit(
            score(folder), r"(?<='rouge2': )'?[\d.]+'?", "52.1")),
        ("TEST01 that compares scores of 1 %", ("closed", "whisper", "yolo-99"), "TEST-025", (), scores_of_one_percent),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"scores: {name}", trees, rule, change, only)


def of_tokens() -> Iterator[Forgery]:
    """Rates of tokens of a model whose answers no test reads."""
    rate = "result_tokens_per_second"
    rows: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]] = (
        ("a rate x10", ("whisper",), "FIG-016", OFFLINE, lambda folder: scaled(
            performance(folder), rate, 10)),
        ("that rate x10 in TEST01, too", ("whisper",), "FIG-016", OFFLINE, lambda folder: both(
            scaled(performance(folder), rate, 10), scaled(f"{folder}/TEST01/performance/run_1", rate, 10))),
    )  # fmt: skip
    for name, trees, rule, only, change in rows:
        yield Forgery(f"tokens without TEST06: {name}", trees, rule, change, only)


def of_chance() -> tuple[Forgery, ...]:
    """All of them."""
    return (*of_samples(), *of_schedules(), *of_responses(), *of_scores(), *of_tokens())
