"""Forged results: one alteration of each scenario of a tree, in accuracy runs, in compliance runs, or in several files.

Both official checkers accept most of it. What forgeries_of_runs.py does to performance logs is not done here again.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from changes import DETAIL, SUMMARY, Change, both, edit, put, replace, value
from forgeries_of_runs import every_time
from tree_builder import copy_of

from crowdperf.gate import rules_summary
from crowdperf.gate.documents import TextFile
from crowdperf.gate.log_view import log_view

SYSTEM = re.compile("box-1")
ANSWER_TESTS = ("TEST06", "TEST07", "TEST09")
LANGUAGE = ("llama2-70b-99.9", "gpt-oss-120b")


@dataclass(frozen=True)
class Forgery:
    """One alteration. trees: which it is made in. change: of a result's folder; None for a result without such files.

    rule: that must be found at a file of the result; only: the scenarios that are altered, all where it is empty.
    """

    name: str
    trees: tuple[str, ...]
    rule: str
    change: Callable[[str], Change]
    only: tuple[str, ...] = ()


def accuracy(name: str) -> Callable[[str], str]:
    """A file of the accuracy run of a result."""
    return lambda folder: f"{folder}/accuracy/{name}"


def performance(folder: str) -> str:
    """The folder of the submitted run."""
    return f"{folder}/performance/run_1"


def of_tests(change: Callable[[str], Change], *tests: str) -> Callable[[str], Change]:
    """Change the run of each of these tests that the result has."""

    def changed(folder: str) -> Change:
        runs = [f"{folder}/{test}/performance/run_1" for test in tests]
        return lambda root: [change(run)(root) for run in runs if (root / run).is_dir()] and None

    return changed


def in_both_settings(run: str, **settings: object) -> Change:
    """Give settings another value, as requested and as effective."""
    kinds = ("requested", "effective")
    return both(*(value(f"{run}/{DETAIL}", f"{kind}_{key}", new) for key, new in settings.items() for kind in kinds))


def scaled(run: str, keys: str, factor: float) -> Change:
    """Multiply figures of the detail log, and write the summary again from it."""

    def change(root: Path) -> None:
        def product(found: re.Match[str]) -> str:
            number = float(found[2]) * factor
            return f'{found[1]}", "value": {int(number) if found[2].isdigit() else f"{number:.6g}"}'

        path = root / run / DETAIL
        text, count = re.subn(rf'(?<="key": ")({keys})", "value": ([\d.e+-]+)', product, path.read_text())
        assert count, keys
        replace(path, text)
        fit_summary(root / run)

    return change


def fit_summary(run: Path) -> None:
    """Give every line of a summary the value of the detail log."""
    log = log_view(TextFile(path="", text=(run / DETAIL).read_text()))
    written_lines = (run / SUMMARY).read_text().split("\n")
    there = {line.partition(":")[0].strip(" *") for line in written_lines}
    rows = (rules_summary._figure_lines(log, there), rules_summary._PARAMETERS, rules_summary._OF_LATER_LOADGENS)
    values, names = log.values, {name: key for row in rows for name, key in row.items()}
    lines = []
    for line in written_lines:
        name, _, rest = line.partition(":")
        key = names.get(name.strip(" *"), "")
        if key in values and re.fullmatch(r"\s*[\d.e+-]+\s*", rest):
            number = values[key]
            written = f"{number:.2f}" if re.search(r"[.]\d\d\s*$", rest) else number
            line = f"{name}: {int(number) if isinstance(number, bool) else written}"
        lines.append(line)
    replace(run / SUMMARY, "\n".join(lines))


def of_another_process(run: str, hours: int = 5) -> Change:
    """Give a run another process and another time, all of its dates alike."""

    def later(form: str, end: int | None = None) -> Callable[[re.Match[str]], str]:
        return lambda found: (datetime.strptime(found[0], form) + timedelta(hours=hours)).strftime(form)[:end]

    def change(root: Path) -> None:
        path = root / run / DETAIL
        text = re.sub(r'(?<="pid": )\d+', lambda found: str(int(found[0]) + 77), path.read_text())
        text = re.sub(r'(?<="test_datetime", "value": ")[^"]+', later("%Y-%m-%dT%H:%M:%SZ"), text)
        stamp = later("%m-%d-%Y %H:%M:%S.%f", -3)
        replace(path, re.sub(r'(?<="power_(?:begin)", "value": ")[^"]+|(?<="power_end", "value": ")[^"]+', stamp, text))

    return change


def copied(source: str, target: str, *names: str) -> Change:
    """Put logs of a run, by default both, into the place of those of another one."""
    return both(*(lambda root, name=name: replace(root / target / name, (root / source / name).read_bytes())
                  for name in names or (DETAIL, SUMMARY)))  # fmt: skip


def as_test(test: str, **settings: object) -> Callable[[str], Change]:
    """The submitted run as that of a test: its settings, another process, another time."""

    def change(folder: str) -> Change:
        run = f"{folder}/{test}/performance/run_1"
        fit: Change = lambda root: fit_summary(root / run)  # noqa: E731
        return both(copied(performance(folder), run), of_another_process(run), in_both_settings(run, **settings), fit)

    return change


def as_submitted(test: str, **settings: object) -> Callable[[str], Change]:
    """The run of a test as the submitted one."""

    def change(folder: str) -> Change:
        run, source = performance(folder), f"{folder}/{test}/performance/run_1"
        fit: Change = lambda root: fit_summary(root / run)  # noqa: E731
        return both(copied(source, run), of_another_process(run), in_both_settings(run, **settings), fit)

    return change


def as_second_system(folder: str) -> Change:
    """Every run of a result a second time, as another system's, hours later."""

    def change(root: Path) -> None:
        for name in (folder, f"{'/'.join(folder.split('/')[:2])}/systems/box-1.json"):
            source, target = root / name, root / SYSTEM.sub("box-2", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_of(source, target) if source.is_dir() else replace(target, source.read_bytes())
        for log in (root / SYSTEM.sub("box-2", folder)).rglob(DETAIL):
            of_another_process(str(log.parent.relative_to(root)))(root)

    return change


def log(key: str, content: str, is_error: bool = False) -> str:
    """A message at the end of a log."""
    flags = f'"is_error": {str(is_error).lower()}, "is_warning": false'
    return f':::MLLOG {{"key": "{key}", "value": {content}, "time_ms": 1e12, "metadata": {{{flags}}}}}\n'


SOURCE = r'(?<="/results.cc":")[0-9a-f]{40}'
MODE = r'"key": "effective_test_mode"'
LINES: Sequence[tuple[str, str, Callable[[str], Change]]] = (
    ("hidden INVALID", "LOG-001", lambda name: edit(name, r"\Z", f" {log('result_validity', '0')}")),
    ("name twice in a message", "LOG-002", lambda name: edit(name, MODE, f'"value": "Other", {MODE}')),
    ("error flag flipped", "LOG-003", lambda name: edit(name, r"\Z", log("error_runtime", '"bad"'))),
    ("messages of two processes", "LOG-005", lambda name: edit(name, r'(?<="line_no": 53, )"pid": \d+', '"pid": 4711')),
    ("a number of more than 64 bits", "LOG-007", lambda name: value(name, "qsl_reported_total_count", 10**30)),
    ("clock that falls", "TIME-001", lambda name: edit(name, r"\Z", log("a", "1") + log("b", "2").replace("e12", ""))),
    ("LoadGen 1.0", "LG-001", lambda name: value(name, "loadgen_version", "1.0 @ 0123456789")),
    ("another results.cc", "LG-002", lambda name: edit(name, SOURCE, "0" * 40)),
    ("no sources", "LG-002", lambda name: edit(name, r'(?<="loadgen_file_sha1", "value": )\{[^}]*\}', "{}")),
    ("changed file in git status", "LG-003", lambda name: value(name, "loadgen_git_status_message", " M results.cc")),
    ("unknown version of a known revision", "LG-004", lambda name: both(
        value(name, "loadgen_version", "6.0.18 @ d6147c7eb7"), edit(name, SOURCE, "0" * 40))),
    ("revision that git does not have", "LG-004", lambda name: value(name, "loadgen_version", "6.0.18 @ 0123456789")),
    ("other seeds requested", "SET-001", lambda name: value(name, "requested_schedule_rng_seed", 7)),
)  # fmt: skip
"""Alterations of any detail log: what one log is not met for, the same rule meets in another."""


def of_accuracy_runs() -> Iterator[Forgery]:
    """Logs of accuracy runs."""
    trees = ("open", "closed", "llama2-70b-99.9", "whisper", "yolo-99")
    for number, (name, rule, change) in enumerate(LINES):
        some = trees[number % 2 :: 2] if number % 5 else trees
        yield Forgery(f"accuracy run: {name}", some, rule, lambda folder, it=change: it(accuracy(DETAIL)(folder)))
    summary = accuracy(SUMMARY)
    good = "\nNo warnings encountered during test.\n"
    rows: Sequence[tuple[str, str, Callable[[str], Change]]] = (
        ("requested as a performance run", "SET-001",
            lambda folder: value(accuracy(DETAIL)(folder), "requested_test_mode", "PerformanceOnly")),
        ("summary of the performance run", "SUM-001",
            lambda folder: copied(performance(folder), f"{folder}/accuracy", SUMMARY)),
        ("errors counted that are not there", "LOG-004",
            lambda folder: edit(accuracy(DETAIL)(folder), r"\Z", log("num_errors", "7"))),
        ("summary without a word", "SUM-005", lambda folder: put(summary(folder), "\n")),
        ("summary that saw errors", "SUM-005", lambda folder: put(summary(folder), f"{good}\n5 ERRORS encountered.\n")),
    )  # fmt: skip
    for name, rule, change in rows:
        yield Forgery(f"accuracy run: {name}", ("open", "closed", "stable-diffusion-xl"), rule, change)


def of_answer_tests() -> Iterator[Forgery]:
    """Runs of the tests whose figures do not count: TEST06, TEST07 and TEST09."""
    for number, (name, rule, change) in enumerate(LINES):
        in_run = of_tests(lambda run, it=change: it(f"{run}/{DETAIL}"), *ANSWER_TESTS)
        yield Forgery(f"answer test: {name}", (LANGUAGE[number % 2],), rule, in_run)
    rates = r"result_completed_\w+|result_samples_per_second|result_tokens_per_second"
    scenarios = {"Offline": "FIG-001", "Server": "FIG-004", "Interactive": "FIG-004"}
    for scenario, rule in scenarios.items():
        ten = of_tests(lambda run: scaled(run, rates, 10), *ANSWER_TESTS)
        yield Forgery(f"answer test: rates x10 in {scenario}", LANGUAGE, rule, ten, (scenario,))
    rows: Sequence[tuple[str, str, Callable[[str], Change]]] = (
        ("of an accuracy run", "RUN-016", lambda run: in_both_settings(run, test_mode="AccuracyOnly")),
        ("of another scenario", "RUN-015", lambda run: in_both_settings(run, scenario="SingleStream")),
        ("errors counted twice", "RUN-021", lambda run: edit(f"{run}/{DETAIL}", r"\Z", log("num_errors", "7"))),
        ("with other seeds", "RUN-007", lambda run: in_both_settings(run, schedule_rng_seed=7)),
        ("median below the least", "FIG-006", lambda run: scaled(run, r"result_50.00_percentile_latency_ns", 0)),
    )  # fmt: skip
    for name, rule, change in rows:
        yield Forgery(f"answer test: {name}", LANGUAGE, rule, of_tests(change, *ANSWER_TESTS))
    yield Forgery("answer test: INVALID, though all was met", ("gpt-oss-120b",), "VER-001", of_tests(
        lambda run: value(f"{run}/{DETAIL}", "result_validity", "INVALID"), "TEST07", "TEST09"))  # fmt: skip


def of_tokens() -> Iterator[Forgery]:
    """Figures of tokens, in both logs."""
    each, first = r"result_time_(?:per|to)_output_token_\S+?", r"result_first_token_\S+?"
    timed, stream, edge = ("Server", "Interactive"), ("SingleStream",), ("llama3.1-8b-edge",)
    rates = r"result_completed_tokens_per_second|result_token_throughput\w*"
    overhead, done = "result_token_throughput_with_loadgen_overhead", "result_completed_tokens_per_second"
    rows = (
        ("rate with overhead x10", LANGUAGE, "FIG-008", overhead, 10, timed),
        ("rate of what was completed x10", edge, "FIG-008", done, 10, stream),
        ("all rates x1.5", ("llama2-70b-99.9",), "FIG-015", rates, 1.5, timed),
        ("Offline rate x1.9", ("llama2-70b-99.9",), "FIG-015", "result_tokens_per_second", 1.9, ("Offline",)),
        ("all rates x10", edge, "FIG-014", rates, 10, stream),
        ("each token in a tenth of the time", LANGUAGE, "FIG-014", each, 0.1, timed),
        ("each token in a tenth of the time", edge, "FIG-014", each, 0.1, stream),
        ("first tokens behind the last ones", LANGUAGE, "FIG-014", first, 14, timed),
        ("first tokens behind the last ones", edge, "FIG-014", first, 90, stream),
    )  # fmt: skip
    for name, trees, rule, keys, factor, only in rows:
        change = lambda folder, it=(keys, factor): scaled(performance(folder), *it)  # noqa: E731
        yield Forgery(f"tokens: {name} ({trees[0]})", trees, rule, change, only)
    line = "Mean Time per Output Token (ns)"
    yield Forgery("tokens: mean time in the summary", LANGUAGE, "SUM-002", lambda folder: edit(
        f"{performance(folder)}/{SUMMARY}", rf"^{re.escape(line)}.*$", f"{line} : 1"), timed)  # fmt: skip


def of_identities() -> Iterator[Forgery]:
    """One run in two guises, all that names the run changed."""
    audit = {"accuracy_log_rng_seed": 720381539243781796, "accuracy_log_sampling_target": 256}
    none = dict.fromkeys(audit, 0)
    same = {"performance_issue_same": True, "performance_issue_same_index": 3}
    yield Forgery("one run of two systems", ("open", "closed"), "IDENT-008", as_second_system)
    yield Forgery("run as TEST01", ("closed", "whisper"), "IDENT-008", as_test("TEST01", **audit))
    yield Forgery("run as TEST04", ("closed", "stable-diffusion-xl"), "IDENT-008", as_test("TEST04", **same))
    yield Forgery("TEST01 as the run", ("closed", "yolo-99"), "IDENT-008", as_submitted("TEST01", **none))


def of_several_files() -> Iterator[Forgery]:
    """Alterations of detail log and summary, or of the log and what else says the same, in every scenario."""
    ours = ("open", "closed")
    late = r"result_9[\d.]+_percentile_(?:per_query_)?latency_ns"
    loaded = r'(?<="loaded_qsl_set", "value": )\[[\d,]+\]'
    audit = "TEST01/accuracy/mlperf_log_accuracy.json"
    rows: Sequence[tuple[str, tuple[str, ...], str, Callable[[str], Change]]] = (
        ("asked for 60 s", ours, "RUN-009", lambda folder: in_both_settings(
            performance(folder), min_duration_ms=60000)),
        ("60 s stretched by its stamps", ours, "TIME-002", lambda folder: every_time(
            performance(folder), lambda time_ms: time_ms / 10)),
        ("flag of the duration left false", ours, "VER-001", lambda folder: both(
            value(f"{performance(folder)}/{DETAIL}", "result_min_duration_met", False),
            edit(f"{performance(folder)}/{SUMMARY}", "Min duration satisfied : Yes", "Min duration satisfied : NO"))),
        ("upper percentiles below the median", ours, "FIG-006", lambda folder: scaled(performance(folder), late, 1e-3)),
        ("least latency above all", ours, "FIG-006", lambda folder: scaled(
            performance(folder), r"result_min_(?:query_)?latency_ns", 1e6)),
        ("one sample for all queries", ours, "SET-005", lambda folder: in_both_settings(
            performance(folder), performance_issue_same=True)),
        ("each sample once", ours, "SET-005", lambda folder: in_both_settings(
            performance(folder), performance_issue_unique=True)),
        ("four queries at once", ours, "SET-001", lambda folder: value(
            f"{performance(folder)}/{DETAIL}", "effective_max_async_queries", 4)),
        ("no sample loaded", ours, "SET-010", lambda folder: edit(f"{performance(folder)}/{DETAIL}", loaded, "[]")),
        ("no sample loaded for the accuracy", ours, "ACC-018", lambda folder: edit(
            accuracy(DETAIL)(folder), loaded, "[]")),
        ("other seeds of the accuracy run", (*ours, "yolo-99"), "ACC-017", lambda folder: in_both_settings(
            f"{folder}/accuracy", schedule_rng_seed=7)),
        ("accuracy above its counts", ours, "ACC-013", lambda folder: edit(
            accuracy("accuracy.txt")(folder), "accuracy=86[.]800", "accuracy=96.800")),
        ("retrained by its own words", ("closed", "stable-diffusion-xl"), "MEAS-007", lambda folder: edit(
            f"{folder}/measurements.json", r'(?<="retraining": )"no"', '"QAT, 3 epochs"')),
        ("TEST01 that logged nothing", ("closed", "yolo-99"), "TEST-011", lambda folder: put(
            f"{folder}/{audit}", "[\n]\n")),
        ("TEST01 passed by hand", ("closed", "whisper"), "TEST-010", lambda folder: put(
            f"{folder}/TEST01/verify_accuracy.txt", "TEST PASS\n")),
        ("TEST01's speed passed by hand", ("closed", "whisper"), "TEST-009", lambda folder: put(
            f"{folder}/TEST01/verify_performance.txt", "TEST PASS\n")),
    )  # fmt: skip
    for name, trees, rule, change in rows:
        yield Forgery(f"several files: {name}", trees, rule, change)


def calibration_of_nothing(folder: str) -> Change:
    """Weights of 8 bits beside a text that says that none were quantised."""
    return edit(f"{folder}/measurements.json", r'(?<="weight_data_types": )"fp32"', '"int8"')


def results() -> tuple[Forgery, ...]:
    """All of them."""
    own = Forgery("int8 without calibration", ("closed", "whisper"), "MEAS-008", calibration_of_nothing)
    parts = (of_accuracy_runs(), of_answer_tests(), of_tokens(), of_identities(), of_several_files())
    return (*(one for part in parts for one in part), own)
