"""Derives what a run's logs say again, and says where anything that was sent with them differs.

The logs against themselves are the submission gate's rules (crowdperf/gate/single_run.py), in groups:

    V1   the summary says what the detail log says: value, verdict, parameters, seeds; settings are those asked for
    V2   latencies rise over the percentiles, and the mean is one that they allow
    V3   the run lasted as long as its clock and power_begin to power_end say
    V4   Offline: rate, samples and greatest latency          V5, V6   streams: rate, mean and window
    V7   Server: rates, window, late queries                  V8       early stopping is arithmetic
    V9   the clock never falls, the log is whole and of one process

Here: V10 the seeds are a published round's, V11 so is the LoadGen, V12 the run is as long as its label says,
V13 result.json, results.json, record.json and the score say what the logs say. A log that was forged as a whole, so
that every equation holds, passes: so pages say "logs consistent" and never more.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.gate.documents import as_text_file
from crowdperf.gate.log_view import LogView, bounded_log, log_view
from crowdperf.gate.single_run import contradictions
from crowdperf.kit.text_documents import mapping, part
from crowdperf.logs.found_runs import RunFiles
from crowdperf.logs.log_record import record_of_log
from crowdperf.logs.run_log import LoadGenLog, LogError, log_of
from crowdperf.logs.score_lines import parse_scores
from crowdperf.logs.seeds import SEEDS
from crowdperf.logs.text_metrics import with_recorded_problems
from crowdperf.rules.backends import STAND_IN_BACKENDS
from crowdperf.rules.benchmarks import BENCHMARKS, record_of
from crowdperf.rules.names import (
    DEPARTURE_LABEL,
    FULL_RULES_MIN_DURATION_MS,
    STAND_IN_LABEL,
    SYNTHETIC_LABEL,
    TEST_RUN_LABEL,
    Mode,
    Scenario,
    printable,
)
from crowdperf.rules.provenance import MADE, parse
from crowdperf.rules.rounds import ROUNDS, rounds_of, rules_in
from crowdperf.store.facts import setting
from crowdperf.store.keys import digest_of
from crowdperf.store.model import Problem

SUMMARY, DETAIL = "mlperf_log_summary.txt", "mlperf_log_detail.txt"
RESULT, RECORD, SCORE, SCORE_TEXT = "result.json", "record.json", "accuracy.json", "accuracy.txt"
_SHOWN = 200
_MAX_PROBLEMS = 50

_GROUPS = {
    "SUM": "V1", "SET": "V1", "TIME": "V9", "LOG": "V9", "RUN": "V9", "LG": "V11", "TIME-002": "V3", "TIME-003": "V3",
    "TIME-007": "V3",
    "FIG-001": "V4", "FIG-002": "V5", "FIG-003": "V5", "FIG-004": "V7", "FIG-005": "V7", "FIG-006": "V2",
    "FIG-007": "V2", "FIG-008": "V2", "FIG-009": "V3", "FIG-010": "V4", "FIG-011": "V5", "FIG-013": "V6",
    "FIG-014": "V2", "FIG-017": "V7", "VER-001": "V12",
    "VER-002": "V8", "VER-003": "V8", "VER-004": "V8", "VER-005": "V8", "VER-006": "V7", "VER-007": "V7",
    "VER-008": "V12", "VER-009": "V12",
}  # fmt: skip
"""Which group a rule of the gate, or all of its family, belongs to."""


def _group_of(identity: str) -> str:
    return _GROUPS.get(identity) or _GROUPS[identity.partition("-")[0]]


def problem_of(rule: str, file: str, found: object, expected: object) -> Problem:
    shown, wanted = (printable(str(text)[:_SHOWN]) for text in (found, expected))
    return Problem(rule=rule, file=file, found=shown, expected=wanted)


def differences(rule: str, file: str, said: Mapping[str, Any], derived: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield each field of `derived` of which `said` says something else."""
    for name, value in derived.items():
        if said.get(name) != value:
            yield problem_of(rule, file, f"{name} = {said.get(name)!r}", repr(value))


def _of_logs(folder: str, files: Mapping[str, bytes], detail: LogView) -> Iterator[Problem]:
    """V1 to V9 of a performance run; of an accuracy run what holds of every log."""
    summary = as_text_file(f"{folder}{SUMMARY}", files[SUMMARY])
    for rule, found in contradictions(folder, detail, summary):
        place = f" (line {found.line})" if found.line else ""
        yield problem_of(f"{_group_of(rule.identity)} {rule.identity}", found.path, found.found + place, found.allowed)


def _round_of(log: LoadGenLog) -> str:
    """The round that has the seeds of a log; empty where none has."""
    return next((name for name, seeds in SEEDS.items() if seeds == log.seeds), "")


def _of_round(path: str, log: LoadGenLog) -> Iterator[Problem]:
    """V10 and V11."""
    round_name = _round_of(log)
    if not round_name:
        yield problem_of("V10", path, f"seeds {log.seeds.qsl}, {log.seeds.sample_index}, {log.seeds.schedule}",
                       f"those of a round, {ROUNDS[0]} to {ROUNDS[-1]}")  # fmt: skip
        return
    newest = int(round_name[1:].partition(".")[0])
    major = log.loadgen_version.partition(".")[0]
    least = max(newest - 1, 0)
    if not (major.isascii() and major.isdigit() and len(major) < 3 and least <= int(major) <= newest + 1):
        expected = f"a version from {least} to {newest + 1}: its seeds are those of {round_name}"
        yield problem_of("V11", path, f"loadgen_version = {log.loadgen_version!r}", expected)


def _of_label(path: str, result: Mapping[str, Any], log: LoadGenLog) -> Iterator[Problem]:
    """V12: what the label must say, from the log and the facts."""
    parts = str(result.get("label") or "").split("; ")
    made = mapping(result.get("is_synthetic"))
    asked_ms, mode = log.effective.min_duration_ms, setting(result, "execution_mode")
    wanted = {
        TEST_RUN_LABEL: asked_ms < FULL_RULES_MIN_DURATION_MS,
        SYNTHETIC_LABEL: bool(made.get("model")) or bool(made.get("dataset")),
        STAND_IN_LABEL: bool(made.get("backend")) or setting(result, "backend") in STAND_IN_BACKENDS,
    }
    for label, is_due in wanted.items():
        if is_due and label not in parts:
            yield problem_of("V12", path, f"label = {result.get('label')!r}", f"a label with {label!r}")
    if mode == "valid" and asked_ms < FULL_RULES_MIN_DURATION_MS:
        yield problem_of("V12", path, f"execution_mode = valid, requested duration {asked_ms} ms",
                       f"at least {FULL_RULES_MIN_DURATION_MS} ms")  # fmt: skip

    is_full = mode == "valid" and not any(one.startswith(DEPARTURE_LABEL) for one in parts)
    least = _least_samples(str(setting(result, "model")), log) if is_full else 0
    issued = (log.query_count or 0) * log.generated_samples_per_query
    if log.mode is Mode.PERFORMANCE and issued < least:
        yield problem_of("V12", path, f"execution_mode = valid, {issued} samples", f"at least {least}")


def _of_provenance(path: str, result: Mapping[str, Any], log: LoadGenLog) -> Iterator[Problem]:
    """V12: where weights and samples came from, as far as the other files say; an older run says nothing."""
    given, name = result.get("provenance"), str(setting(result, "model"))
    if given is None:
        return
    known = parse(given)
    if known is None:
        yield problem_of("V12", path, f"provenance = {given}", "model, dataset and counts as crowdperf writes them")
        return
    parts = str(result.get("label") or "").split("; ")
    for label in known.labels:
        if label not in parts:
            yield problem_of("V12", path, f"label = {result.get('label')!r}", f"a label with {label!r}")
    made = mapping(result.get("is_synthetic"))
    said = {"model": known.model == MADE, "dataset": known.dataset == MADE}
    for what, is_made in said.items():
        if is_made and made.get(what) is False:
            yield problem_of("V12", path, f"provenance.{what} = made", f"what is_synthetic.{what} says: not made")
    if name not in BENCHMARKS or not record_of(name).is_official:
        return
    rules = record_of(name)
    whole = (rules.accuracy_sample_count if log.mode is Mode.ACCURACY else None) or rules.dataset_count
    if known.benchmark_sample_count != whole:
        yield problem_of("V12", path, f"provenance.benchmark_sample_count = {known.benchmark_sample_count}", whole)
    if known.sample_count != log.qsl_total_count:
        yield problem_of("V12", path, f"provenance.sample_count = {known.sample_count}", log.qsl_total_count)


def _least_samples(model: str, log: LoadGenLog) -> int:
    """How many samples an Offline run of the full rules has; 0 for other scenarios and for what is no benchmark."""
    round_name = _round_of(log)
    if log.scenario is not Scenario.OFFLINE or model not in BENCHMARKS or round_name not in rounds_of(model):
        return 0
    return rules_in(model, round_name).offline_min_sample_count


def _of_result(path: str, result: Mapping[str, Any], log: LoadGenLog) -> Iterator[Problem]:
    """V13: result.json says what the log says."""
    log = with_recorded_problems(log, result)
    yield from differences("V13", path, result, record_of_log(log))
    said = mapping(result.get("run"))
    if part(said, "mode", "value") != log.mode.value or not _is_scenario(part(said, "scenario", "value"), log):
        expected = f"{log.scenario.value} {log.mode.value}"
        found = f"scenario {part(said, 'scenario', 'value')}, mode {part(said, 'mode', 'value')}"
        yield problem_of("V13", path, found, expected)
    if log.mode is Mode.PERFORMANCE and part(said, "min_duration_ms", "value") != log.effective.min_duration_ms:
        found = f"run.min_duration_ms = {part(said, 'min_duration_ms', 'value')}"
        yield problem_of("V13", path, found, log.effective.min_duration_ms)


def _is_scenario(name: Any, log: LoadGenLog) -> bool:
    """Whether LoadGen runs a scenario of this name as the log's: Interactive is issued as Server."""
    return name == log.scenario.value or (name == "Interactive" and log.scenario.value == "Server")


def _of_record(path: str, record: Mapping[str, Any], result: Mapping[str, Any], files: Mapping[str, bytes],
               masked: Mapping[str, Collection[str]]) -> Iterator[Problem]:  # fmt: skip
    """V13: the record's seals fit, and its digests and figures are those of the run; but for what was masked."""
    touched = {place.partition(".")[0] for place in masked.get(RECORD, ())}
    for name, seal in mapping(record.get("seals")).items():
        if name in record and name not in touched:
            digest = digest_of(record[name])
            if digest != seal:
                yield problem_of("V13", path, f"the seal of {name} is {seal}", digest)
    for name, digest in mapping(record.get("files")).items():
        content = files.get(name)
        if content is not None and not masked.get(name) and name not in (RESULT, SCORE):
            found = hashlib.sha256(content).hexdigest()
            if digest != found:
                yield problem_of("V13", path, f"{name} has the digest {digest}", found)
    metric = mapping(result.get("metric"))
    derived = {"valid": result.get("valid"), "errors": result.get("errors")}
    yield from differences("V13", path, mapping(part(record, "outcome", "exact")), derived)
    within = mapping(part(record, "outcome", "within"))
    name = str(metric.get("name"))
    if name in within and part(within, name, "value") != metric.get("value"):
        yield problem_of("V13", path, f"{name} = {part(within, name, 'value')}", metric.get("value"))
    seeds = part(record, "inputs", "seed")
    if seeds is not None and seeds != result.get("seeds"):
        yield problem_of("V13", path, f"seeds {seeds}", result.get("seeds"))


def _of_score(folder: str, score: Mapping[str, Any], text: str) -> Iterator[Problem]:
    """V13: accuracy.json says what the official line says, and its verdict follows from its targets."""
    path = folder + SCORE
    if score.get("line") is not None and str(score["line"]).strip() not in text:
        yield problem_of("V13", path, f"line = {score['line']!r}", f"a line of {SCORE_TEXT}")
    metrics = score.get("metrics")
    rows = [row for row in metrics if isinstance(row, Mapping)] if isinstance(metrics, list) else []
    verdicts = []
    for row in rows:
        name, value, target, most = (row.get(key) for key in ("name", "value", "target", "upper_limit"))
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield problem_of("V13", path, f"{name} = {value!r}", "a number")
            continue
        printed = parse_scores(str(name), text)
        if printed and all(abs(one.value - value) > 1e-3 * max(1.0, abs(value)) for one in printed):
            yield problem_of("V13", path, f"{name} = {value}", f"{printed[0].value} of {SCORE_TEXT}")
        is_passed = None
        if isinstance(target, int | float):
            is_passed = value >= target and (not isinstance(most, int | float) or value <= most)
        if row.get("passed") is not is_passed:
            yield problem_of("V13", path, f"{name}: passed = {row.get('passed')}", is_passed)
        verdicts.append(is_passed)
    if score.get("passed") is True and False in verdicts:
        yield problem_of("V13", path, "passed = True", "false: a score misses its target")


@dataclass(frozen=True, slots=True)
class Checked:
    """What does not fit in the files of a run, and what its detail log says; None where it cannot be read."""

    problems: tuple[Problem, ...]
    log: LoadGenLog | None = None


def check_run(files: RunFiles, folder: str = "", masked: Mapping[str, Collection[str]] | None = None) -> Checked:
    """Check the files of one run, by their names without a folder, against each other.

    folder: how problems name it. masked: by name, what was taken out of a file: its seal cannot fit.
    """
    try:
        return _checked_run(files, f"{folder}/" if folder else "", masked or {})
    except (ValueError, TypeError, RecursionError, OverflowError) as error:  # what no file of ours holds
        return Checked((problem_of("FORM", folder, error, "files as this project writes them"),))


def _checked_run(files: RunFiles, folder: str, masked: Mapping[str, Collection[str]]) -> Checked:
    missing = [name for name in (SUMMARY, DETAIL, RESULT) if name not in files]
    if missing:
        expected = "the two logs of LoadGen and result.json"
        return Checked((problem_of("V13", folder + missing[0], "missing", expected),))
    log, source = None, as_text_file(folder + DETAIL, files[DETAIL])
    own = bounded_log(source)
    detail = log_view(source, own)
    problems = list(_of_logs(folder, files, detail))
    if detail.is_usable:
        try:
            log = log_of(own)
        except (LogError, RecursionError, OverflowError) as error:
            problems.append(problem_of("V9", folder + DETAIL, error, "a log that can be read to its end"))
        else:
            problems += _of_parts(folder, files, log, masked)
    return Checked(tuple(problems[:_MAX_PROBLEMS]), log)


_OF_CALL = ("valid", "invalid_reasons", "errors", "metric", "label", "duration_s", "query_count", "latency")


def check_call(call: Mapping[str, Any], runs: Mapping[str, RunFiles], *, is_whole: bool = True) -> Iterator[Problem]:
    """V13: results.json says what the files of its runs say.

    runs: their files, by their folders. is_whole: these are all of the call; else of what is not there nothing is said.
    """
    path, scenarios = "results.json", call.get("scenarios")
    labels, origins = set[str](), set[str]()
    for row in scenarios if isinstance(scenarios, list) else []:
        for kind in ("performance", "accuracy"):
            said = mapping(mapping(row).get(kind))
            files = runs.get(str(said.get("folder")), RunFiles())
            if said and is_whole and RESULT not in files:
                yield problem_of("V13", path, f"a run in {said.get('folder')}", "a folder of the bundle")
            if not said or RESULT not in files:
                continue
            result = mapping(files.object(RESULT))
            keys = _OF_CALL if kind == "performance" else _OF_CALL[:3]
            yield from differences("V13", path, said, {key: result.get(key) for key in keys})
            labels |= set(str(result.get("label")).split("; "))
            known = parse(result.get("provenance"))
            origins |= set(known.labels if known is not None else ())
            if kind == "accuracy" and SCORE in files:
                yield from differences("V13", path, said, {"metrics": mapping(files.object(SCORE)).get("metrics")})
    own = str(call.get("label")).split("; ")
    for label in (TEST_RUN_LABEL, SYNTHETIC_LABEL, STAND_IN_LABEL, *sorted(origins)):
        if label in labels | origins and label not in own:
            yield problem_of("V12", path, f"label = {call.get('label')!r}", f"a label with {label!r}, as its runs have")


def _of_parts(
    folder: str, files: RunFiles, log: LoadGenLog, masked: Mapping[str, Collection[str]]
) -> Iterator[Problem]:
    result = mapping(files.object(RESULT))
    yield from _of_round(folder + DETAIL, log)
    yield from _of_label(folder + RESULT, result, log)
    yield from _of_provenance(folder + RESULT, result, log)
    yield from _of_result(folder + RESULT, result, log)
    if RECORD in files:
        yield from _of_record(folder + RECORD, mapping(files.object(RECORD)), result, files, masked)
    if SCORE in files:
        yield from _of_score(
            folder, mapping(files.object(SCORE)), files.get(SCORE_TEXT, b"").decode("utf-8", "replace")
        )
