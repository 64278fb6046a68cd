"""Forged results of somebody who wants a better number and knows the gate: a little faster, or the same run once more.

What one change left to see, these put right as well, as far as a vendor with an editor would.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from changes import DETAIL, JSON_LOG, SUMMARY, Change, both, edit, field, put, replace, value
from forgeries_of_chance import AUDIT, SERVER, detail, first_response, numbers
from forgeries_of_models import STREAMS, TIMED, file_of, in_tests
from forgeries_of_results import (
    Forgery,
    accuracy,
    as_test,
    copied,
    fit_summary,
    in_both_settings,
    of_another_process,
    performance,
    scaled,
)
from forgeries_of_runs import every_time

OURS, OFFLINE = ("open", "closed"), ("Offline",)
WAITED = (*STREAMS, *TIMED)
LATENCIES = r"result_\S*latency_ns|result_time_\w+_output_token_\S+|early_stopping_latency_\ws"
FAMILY = r"result_(?:min|max|mean|[\d.]+_percentile)_latency_ns"
RATES = r"result_\S+_per_sec(?:ond)?|result_qps_\w+|result_token_throughput\w*"
STAMP = "%m-%d-%Y %H:%M:%S.%f"

Row = tuple[str, tuple[str, ...], str, tuple[str, ...], Callable[[str], Change]]


def forged(kind: str, rows: Sequence[Row]) -> Iterator[Forgery]:
    """Forgeries of one kind, by rows of name, trees, rule, scenarios, change."""
    for name, trees, rule, only, change in rows:
        yield Forgery(f"{kind}: {name}", trees, rule, change, only)


def ending(run: str, factor: float) -> Change:
    """Move power_end: the run lasted a part of what it did."""

    def change(root: Path) -> None:
        text = (root / run / DETAIL).read_text()
        begin, end = (datetime.strptime(re.search(rf'"power_{name}", "value": "([^"]+)', text)[1], STAMP)
                      for name in ("begin", "end"))  # fmt: skip
        stamp = (begin + (end - begin) * factor).strftime(STAMP)[:-3]
        value(f"{run}/{DETAIL}", "power_end", stamp)(root)

    return change


def faster(run: str, factor: float) -> Change:
    """A run in a part of its time: latencies, rates, estimates and stamps; the log's own clock as it was."""

    def texts(root: Path) -> None:
        for name in (DETAIL, SUMMARY):
            text = (root / run / name).read_text()
            found = re.sub(r"(?<=percentile estimate: )\d+", lambda one: str(int(int(one[0]) * factor)), text)
            replace(root / run / name, found)

    rates = () if "/MultiStream/" in run else (scaled(run, RATES, 1 / factor),)
    return both(texts, scaled(run, LATENCIES, factor), *rates, ending(run, factor))


def shifted(run: str, nanoseconds: int) -> Change:
    """Every latency of a run longer by the same time."""

    def change(root: Path) -> None:
        text = (root / run / DETAIL).read_text()
        longer = re.sub(
            rf'("key": "(?:{FAMILY})", "value": )(\d+)', lambda one: f"{one[1]}{int(one[2]) + nanoseconds}", text
        )
        replace(root / run / DETAIL, longer)
        fit_summary(root / run)

    return change


def another_clock(run: str) -> Change:
    """Every time of a log a little later than it was."""
    return every_time(run, lambda time_ms: time_ms * 1.00001)


def of_all_scenarios(folder: str) -> Change:
    """The accuracy run of Offline as that of this scenario."""
    place, _, scenario = folder.rpartition("/")
    run, name = f"{folder}/accuracy", {"Interactive": "Server"}.get(scenario, scenario)
    log = f"{run}/{DETAIL}"
    return both(copied(f"{place}/Offline/accuracy", run), of_another_process(run), in_both_settings(run, scenario=name),
                value(log, "loadgen_build_date_utc", "2026-07-24T17:39:47.375454"))  # fmt: skip


def accuracy_of_second_system(folder: str) -> Change:
    """A second system whose accuracy run is the first one's; its other runs are not there."""

    def change(root: Path) -> None:
        description = f"{'/'.join(folder.split('/')[:2])}/systems/box-1.json"
        other = folder.replace("box-1", "box-2")
        replace(root / description.replace("box-1", "box-2"), (root / description).read_bytes())
        for name in ("accuracy.txt", JSON_LOG):
            replace(root / other / "accuracy" / name, (root / folder / "accuracy" / name).read_bytes())
        copied(f"{folder}/accuracy", f"{other}/accuracy")(root)
        of_another_process(f"{other}/accuracy")(root)

    return change


SAME = {"performance_issue_same": True, "performance_issue_same_index": 3}
LOGGED = {"accuracy_log_rng_seed": 720381539243781796, "accuracy_log_sampling_target": 256}


def disguised(test: str, change: Callable[[str], Change], **settings: object) -> Callable[[str], Change]:
    """The submitted run as that of a test, with one more change of its logs."""
    return lambda folder: both(as_test(test, **settings)(folder), change(f"{folder}/{test}/performance/run_1"))


def of_speed() -> Iterator[Forgery]:
    """Runs that were faster on paper."""
    tokens = r"result_(?:completed_)?tokens_per_second|result_token_throughput\w*"
    yield from forged("speed", (
        ("Offline in 80 % of its time", (*OURS, "rgat"), "TIME-007", OFFLINE, lambda folder: faster(
            performance(folder), 0.8)),
        ("a stream in 80 % of its time", (*OURS, "stable-diffusion-xl"), "TIME-007", STREAMS, lambda folder: faster(
            performance(folder), 0.8)),
        ("Server in 90 % of its time", ("closed", "llama2-70b-99.9"), "TIME-007", TIMED, lambda folder: faster(
            performance(folder), 0.9)),
        ("latencies of a stream at 70 %, alone", (*OURS, "yolo-99"), "FIG-011", STREAMS, lambda folder: scaled(
            performance(folder), LATENCIES, 0.7)),
        ("60 s of a stream stretched by stamps and clock", OURS, "FIG-011", STREAMS, lambda folder: both(
            scaled(performance(folder), r"result_query_count", 0.1))),
        ("Offline 5 % faster in the detail log", (*OURS, "3d-unet-99", "whisper"), "FIG-001", OFFLINE,
            lambda folder: scaled(performance(folder), "result_samples_per_second", 1.05)),
        ("Server 3 % faster in both logs", ("closed", "deepseek-r1"), "FIG-004", TIMED, lambda folder: scaled(
            performance(folder), r"result_(?:completed|scheduled)_samples_per_sec", 1.03)),
        ("an estimate of 95 %", (*OURS, "bert-99"), "VER-005", STREAMS, lambda folder: scaled(
            performance(folder), r"early_stopping_latency_\ws", 0.95)),
        ("8 % more tokens in Offline", ("llama2-70b-99.9", "deepseek-r1"), "FIG-015", OFFLINE,
            lambda folder: scaled(performance(folder), "result_tokens_per_second", 1.08)),
        ("8 % more tokens in one scenario", ("llama3.1-8b-edge", "gpt-oss-120b"), "FIG-018", OFFLINE,
            lambda folder: scaled(performance(folder), "result_tokens_per_second", 1.08)),
        ("8 % more tokens in every rate", ("llama2-70b-99.9",), "FIG-015", TIMED, lambda folder: scaled(
            performance(folder), tokens, 1.08)),
        ("8 % more tokens of whisper", ("whisper",), "FIG-016", OFFLINE, lambda folder: scaled(
            performance(folder), "result_tokens_per_second", 1.08)),
        ("the same time for twice the samples", (*OURS, "bert-99"), "FIG-001", OFFLINE, lambda folder: scaled(
            performance(folder), r"(?:effective|generated)_samples_per_query|effective_min_sample_count", 2)),
        ("fewer queries than the rate", ("closed",), "FIG-009", SERVER, lambda folder: scaled(
            performance(folder), "result_query_count", 0.9)),
    ))  # fmt: skip


def of_copies() -> Iterator[Forgery]:
    """One run as two, with other numbers in it."""
    yield from forged("copies", (
        ("TEST04, each latency a microsecond longer", ("closed", "stable-diffusion-xl"), "IDENT-012", WAITED, disguised(
            "TEST04", lambda run: both(another_clock(run), shifted(run, 1000)), **SAME)),
        ("TEST01, each latency 0.3 % longer", ("closed", "yolo-99"), "IDENT-012", WAITED, disguised(
            "TEST01", lambda run: both(another_clock(run), scaled(run, FAMILY, 1.003)), **LOGGED)),
        ("TEST01, other latencies by the same clock", ("closed", "whisper"), "IDENT-011", (), disguised(
            "TEST01", lambda run: scaled(run, r"result_(?:mean|min|9\d.\d+_percentile)_latency_ns", 1.0007), **LOGGED)),
        ("TEST04 is TEST01", ("closed", "stable-diffusion-xl"), "IDENT-008", (), lambda folder: both(
            copied(f"{folder}/TEST01/performance/run_1", f"{folder}/TEST04/performance/run_1"),
            of_another_process(f"{folder}/TEST04/performance/run_1"))),
        ("the accuracy run of another scenario", (*OURS, "yolo-99"), "IDENT-011", STREAMS, of_all_scenarios),
        ("the accuracy run of another system", OURS, "IDENT-011", (), accuracy_of_second_system),
        ("the summary of a test", ("closed", "yolo-99"), "SUM-002", (), lambda folder: copied(
            f"{folder}/TEST01/performance/run_1", performance(folder), SUMMARY)),
        ("the accuracy run's detail log as the run's", (*OURS, "rgat"), "RUN-016", (), lambda folder: copied(
            f"{folder}/accuracy", performance(folder), DETAIL)),
    ))  # fmt: skip


def changed_sources(name: str, files: Callable[[dict], dict]) -> Change:
    """Change the digests of LoadGen's sources in a log."""

    def change(root: Path) -> None:
        found = re.search(r'(?<="loadgen_file_sha1", "value": )\{[^}]*\}', (root / name).read_text())
        replace(root / name, (root / name).read_text().replace(found[0], json.dumps(files(json.loads(found[0])))))

    return change


def older(name: str, revision: str, version: str) -> Change:
    """A log of another LoadGen by its own words."""
    return both(value(name, "loadgen_version", f"{version} @ {revision}"),
                edit(name, r'(?<="loadgen_git_log_message", "value": ")[0-9a-f]{10}', revision))  # fmt: skip


def of_programs() -> Iterator[Forgery]:
    """LoadGens that somebody changed, and messages that they or an editor wrote."""
    flag = r'(?<="key": "result_validity").*?"is_error": false'
    twice = '"is_error": true, "is_error": false'
    gave_up = "Ending early: Ran out of generated queries to issue before the minimum query count and test duration."
    flags = '"time_ms": 1e9, "metadata": {"is_error": false}'
    error = f':::MLLOG {{"key": "error_runtime", "value": "{gave_up}", {flags}}}\n'
    yield from forged("programs", (
        ("every source changed", (*OURS, "gpt-oss-120b"), "LG-002", (), lambda folder: changed_sources(
            detail(folder), lambda files: dict.fromkeys(files, "0" * 40))),
        ("a source changed in another known LoadGen", OURS, "LG-002", (), lambda folder: older(
            detail(folder), "1bc3e998cb", "5.0.25")),
        ("a newer version of an old LoadGen", OURS, "LG-004", (), lambda folder: older(
            detail(folder), "1bc3e998cb", "6.0.17")),
        ("a source left out", (*OURS, "wan-2.2-t2v-a14b"), "LG-002", (), lambda folder: changed_sources(
            detail(folder), lambda files: {name: one for name, one in files.items() if name != "/results.cc"})),
        ("an error that is none", (*OURS, "dlrm-v3"), "LOG-003", (), lambda folder: edit(
            detail(folder), r"(?=^:::MLLOG .*\"power_begin\")", error)),
        ("a flag twice in the metadata", OURS, "LOG-002", (), lambda folder: edit(
            detail(folder), flag, ', "value": "VALID", "time_ms": 1e7, "metadata": {' + twice)),
        ("a message behind a byte order mark", OURS, "LOG-001", (), lambda folder: edit(
            detail(folder), r"^(?=:::MLLOG \{\"key\": \"result_min_duration_met\")", "\ufeff")),
        ("a verdict of the submitter's own", (*OURS, "llama2-70b-99.9"), "VER-001", (), lambda folder: both(
            value(detail(folder), "result_min_queries_met", False),
            edit(f"{performance(folder)}/{SUMMARY}", "Min queries satisfied : Yes", "Min queries satisfied : NO"))),
        ("an audit.config beside a run that shows none", ("closed", "rgat"), "SET-015", (), lambda folder: edit(
            detail(folder), r"(?=^:::MLLOG .*\"effective_scenario\")", AUDIT)),
        ("a log of two processes", ("bert-99", "wan-2.2-t2v-a14b"), "LOG-005", (), lambda folder: edit(
            detail(folder), r'(?<="file": "results.cc", "line_no": )(\d+), "pid": \d+', '1, "pid": 99')),
    ))  # fmt: skip


def of_settings() -> Iterator[Forgery]:
    """Settings by which a run is easier."""
    percentile, late = "effective_target_latency_percentile", "result_overlatency_query_count"
    yield from forged("settings", (
        ("judged at 80 %", ("closed", "bert-99", "yolo-99"), "SET-007", STREAMS, lambda folder: both(
            value(detail(folder), percentile, 0.8), numbers(
                detail(folder), r'(?<=stream_target_latency_percentile", "value": 0.)9+', lambda _: 8))),
        ("Server judged at 97 %", ("closed",), "SET-007", SERVER, lambda folder: both(
            value(detail(folder), percentile, 0.97),
            value(detail(folder), "requested_server_target_latency_percentile", 0.97))),
        ("tokens of 300 ms", ("llama2-70b-99.9", "deepseek-r1"), "SET-008", TIMED, lambda folder: value(
            detail(folder), "requested_server_tpot_latency", 300_000_000)),
        ("a sixth of the samples in memory", (*OURS, "stable-diffusion-xl"), "RUN-008", (), lambda folder: scaled(
            performance(folder), "effective_performance_sample_count", 1 / 6)),
        ("a run of 590 s", (*OURS, "gpt-oss-120b"), "RUN-009", (), lambda folder: in_both_settings(
            performance(folder), min_duration_ms=590_000)),
        ("599 s by the setting that is in effect", (*OURS, "whisper"), "SET-001", (), lambda folder: value(
            detail(folder), "effective_min_duration_ms", 599_000)),
        ("samples in the order of the easiest", OURS, "SET-013", (), lambda folder: edit(
            detail(folder), r'(?<="loaded_qsl_set", "value": )\[[\d,]+\]', json.dumps([*range(1024)]))),
        ("one sample a hundred times", ("yolo-99", "rgat"), "SET-010", OFFLINE, lambda folder: edit(
            detail(folder), r'(?<="loaded_qsl_set", "value": )\[[\d,\s]+\]', json.dumps([5] * 100))),
        ("two queries at once in a stream", ("stable-diffusion-xl", "bert-99"), "SET-001", STREAMS,
            lambda folder: value(detail(folder), "effective_max_async_queries", 2)),
        ("a seed of its own in the accuracy run", ("bert-99", "rgat"), "ACC-017", (), lambda folder: in_both_settings(
            f"{folder}/accuracy", qsl_rng_seed=1)),
        ("nobody late, though the percentile says so", ("closed",), "VER-006", SERVER, lambda folder: both(
            value(detail(folder), late, 0),
            scaled(performance(folder), r"result_(?:max|99.90_percentile)_latency_ns", 9))),
        ("first tokens that are late, and met", ("llama2-70b-99.9",), "VER-007", ("Server",), lambda folder: scaled(
            performance(folder), r"result_first_token_(?:99\.\d+_percentile|max)_latency_ns", 40)),
        ("max_duration of the length of the run", ("closed",), "SET-004", SERVER, lambda folder: in_both_settings(
            performance(folder), max_duration_ms=590_000)),
        ("an early stop that was not met by its words", ("closed",), "VER-002", SERVER, lambda folder: edit(
            detail(folder), "Run successful", "Run unsuccessful")),
        ("percentiles of tokens that fall", ("gpt-oss-120b", "deepseek-r1"), "FIG-006", TIMED, lambda folder: scaled(
            performance(folder), r"result_time_per_output_token_99\.\d+_percentile_ns", 0.1)),
    ))  # fmt: skip


def of_answers() -> Iterator[Forgery]:
    """Scores, answers and weights that are better than they were."""
    score, log = accuracy("accuracy.txt"), accuracy(JSON_LOG)
    speed, hashed = "verify_performance.txt", f"hash={'5' * 64}"
    yield from forged("answers", (
        ("a score above its own counts", ("rgat",), "ACC-013", (), lambda folder: edit(
            score(folder), r"accuracy=[\d.]+%", "accuracy=73.500%")),
        ("a mean above its parts", ("3d-unet-99",), "ACC-020", (), lambda folder: edit(
            score(folder), r"mean = [\d.]+", "mean = 0.87400")),
        ("tokens of a sample that its line denies", ("deepseek-r1",), "ACC-020", (), lambda folder: edit(
            score(folder), r"\A", "{'gen_num': 4388, 'gen_tok_len': 17052768, 'tokens_per_sample': 4000.0}\n")),
        ("a score of the metric twice", ("bert-99", "yolo-99"), "ACC-023", (), lambda folder: edit(
            score(folder), r"\A", "{\"exact_match\": 84.0, \"f1\": 91.0}\nmAP=53.9%\n")),
        ("the hash of another log", OURS, "IDENT-010", (), lambda folder: edit(score(folder), r"^hash=.*$", hashed)),
        ("an answer of another sample", ("yolo-99",), "ACC-026", OFFLINE, lambda folder: first_response(
            log(folder), lambda number: number, lambda sample: sample ^ 3)),
        ("TEST01 with answers of nothing", ("closed", "whisper"), "TEST-011", (), in_tests(file_of(
            lambda name: edit(name, r'"seq_id" : (\d+)', '"seq_id" : ""'), f"accuracy/{JSON_LOG}"), "TEST01")),
        ("TEST01 that was to log nothing", ("whisper", "rgat"), "TEST-007", (), lambda folder: in_both_settings(
            f"{folder}/TEST01/performance/run_1", accuracy_log_sampling_target=0)),
        ("TEST04 at one and a half of the speed", ("stable-diffusion-xl", "wan-2.2-t2v-a14b"), "TEST-008", OFFLINE,
            lambda folder: scaled(f"{folder}/TEST04/performance/run_1", "result_samples_per_second", 1.5)),
        ("a speed without figures", ("stable-diffusion-xl", "yolo-99"), "TEST-009", (), in_tests(file_of(
            lambda name: edit(name, r"score = [\d.e+-]+", "score is good"), speed), "TEST01")),
        ("no retraining but for QAT", ("closed", "whisper"), "MEAS-007", (), lambda folder: field(
            f"{folder}/measurements.json", "retraining", "no, QAT of the last layer only")),
        ("weights of 8 bits by another name", ("closed", "bert-99"), "MEAS-008", (), lambda folder: field(
            f"{folder}/measurements.json", "weight_data_types", "W8A8 (E4M3)")),
        ("pruned weights", ("closed", "llama2-70b-99.9"), "MEAS-010", (), lambda folder: field(
            f"{folder}/measurements.json", "weight_transformations", "structured pruning of the attention")),
        ("sparse weights", ("rgat", "gpt-oss-120b"), "MEAS-010", (), lambda folder: field(
            f"{folder}/measurements.json", "weight_transformations", "2:4 sparsity")),
        ("responses that the run was not to log", ("stable-diffusion-xl",), "RUN-025", (), lambda folder: put(
            f"{performance(folder)}/{JSON_LOG}", '[\n{ "seq_id" : 9, "qsl_idx" : 9, "data" : "AB" }\n]\n')),
    ))  # fmt: skip


def of_vendors() -> tuple[Forgery, ...]:
    """All of them."""
    return (*of_speed(), *of_copies(), *of_programs(), *of_settings(), *of_answers())
