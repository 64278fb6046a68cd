"""Verifies a test's run and leaves what a submission holds of it in the folder of the test:

    TEST01/  verify_performance.txt  verify_accuracy.txt  performance/run_1/...
             accuracy/{mlperf_log_accuracy.json, accuracy.txt}, and where bytes differ {baseline,compliance}_accuracy
    TEST04/  verify_performance.txt  performance/run_1/...        (TEST05 likewise)
    TEST06/  verify_accuracy.txt  accuracy/mlperf_log_accuracy.json  performance/run_1/...     (TEST07 likewise)
    TEST09/  verify_output_len.txt  accuracy/mlperf_log_accuracy.json  performance/run_1/...

The rules are in crowdperf/compliance/verification.py and answerchecks.py; scores come from
process-mlperf-accuracy.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.compliance.answer_checks import verify_answers, verify_lengths, verify_score
from crowdperf.compliance.verification import (
    Verdict,
    baseline_lines,
    verify_performance,
    verify_responses,
    verify_scores,
)
from crowdperf.kit.text_documents import given_object
from crowdperf.kit.whole_file import copy_whole, write_json, write_whole
from crowdperf.logs.accuracy_log import DamagedLog
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LogError, read_run_logs
from crowdperf.logs.run_requests import portable_request, read_request
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import parse_scenario

from . import limits
from .asking import MeasuredRun

PERFORMANCE_TEXT, ACCURACY_TEXT = "verify_performance.txt", "verify_accuracy.txt"
LENGTH_TEXT = "verify_output_len.txt"
BASELINE_TEXT, COMPLIANCE_TEXT = "baseline_accuracy.txt", "compliance_accuracy.txt"
BASELINE_FOLDER = ".baseline"
FILES = {
    "TEST01": (PERFORMANCE_TEXT, ACCURACY_TEXT, "accuracy/mlperf_log_accuracy.json", "accuracy/accuracy.txt"),
    "TEST04": (PERFORMANCE_TEXT,),
    "TEST05": (PERFORMANCE_TEXT,),
    "TEST06": (ACCURACY_TEXT, "accuracy/mlperf_log_accuracy.json"),
    "TEST07": (ACCURACY_TEXT, "accuracy/mlperf_log_accuracy.json"),
    "TEST09": (LENGTH_TEXT, "accuracy/mlperf_log_accuracy.json"),
}
"""What verifying leaves of each test, in its folder."""

Score = Callable[[Path], Mapping[str, Any]]
"""Scores the run in a folder, which then has accuracy.txt, and returns its accuracy.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether a test passes, and what the user is told of it."""

    is_passed: bool
    notes: tuple[str, ...]


def verify(run: MeasuredRun, test: str, score: Score) -> Outcome:
    """Verifies the run of a test that is finished and writes its files. Raises what `score` raises."""
    folder = run.scenario_folder / test
    tested = RunPaths(folder / "performance" / "run_1")
    try:
        if test in ("TEST06", "TEST07", "TEST09"):
            outcome = _verify_text(run, test, folder, tested, score)
            _keep_answers(tested, folder)
            return outcome
        outcome = _verify_performance(run, test, folder, tested)
        if test != "TEST01":
            return outcome
        return _joined(outcome, _verify_responses(run, folder, tested, score))
    except (LogError, DamagedLog, OSError) as error:
        return Outcome(is_passed=False, notes=(str(error),))


def _joined(*outcomes: Outcome) -> Outcome:
    notes = tuple(note for outcome in outcomes for note in outcome.notes)
    return Outcome(is_passed=all(outcome.is_passed for outcome in outcomes), notes=notes)


def _verify_performance(run: MeasuredRun, test: str, folder: Path, tested: RunPaths) -> Outcome:
    reference = RunPaths(run.scenario_folder / "performance" / "run_1")
    verdict = verify_performance(test, read_run_logs(reference), read_run_logs(tested))
    write_whole(folder / PERFORMANCE_TEXT, verdict.text)
    return Outcome(is_passed=verdict.is_passed, notes=(f"performance: {', '.join(verdict.lines)}",))


def _verify_responses(run: MeasuredRun, folder: Path, tested: RunPaths, score: Score) -> Outcome:
    whole = RunPaths(run.scenario_folder / "accuracy")
    element = record_of(run.request["model"]).response_type or "byte"
    with whole.accuracy_log.open(encoding="utf-8") as reference, tested.accuracy_log.open(encoding="utf-8") as sampled:
        verdict = verify_responses(reference, sampled, element)
    write_whole(folder / ACCURACY_TEXT, verdict.text)
    accuracy = folder / "accuracy"
    for name in (BASELINE_TEXT, COMPLIANCE_TEXT):
        (accuracy / name).unlink(missing_ok=True)
    copy_whole(tested.accuracy_log, accuracy / tested.accuracy_log.name)
    scored = score(tested.folder)
    copy_whole(tested.accuracy_text, accuracy / tested.accuracy_text.name)
    figure = f"score of the sampled responses: {scored['line']}"
    note = f"responses: {verdict.lines[-1]}, {verdict.lines[4]}" if len(verdict.lines) > 1 else verdict.lines[0]
    if verdict.is_identical:
        return Outcome(is_passed=True, notes=(note, figure))
    scores = _compare_scores(run, folder, scored, score)
    return Outcome(is_passed=scores.is_passed, notes=(f"{note}, but not all bytes are the same", figure, *scores.notes))


def _compare_scores(run: MeasuredRun, folder: Path, scored: Mapping[str, Any], score: Score) -> Outcome:
    """Scores the accuracy run's responses of the same samples: what counts where a model does not repeat itself."""
    tested = RunPaths(folder / "performance" / "run_1")
    baseline = RunPaths(folder / BASELINE_FOLDER)
    whole = RunPaths(run.scenario_folder / "accuracy")
    accuracy = folder / "accuracy"
    shutil.rmtree(baseline.folder, ignore_errors=True)  # ours: left by a call that was killed
    baseline.folder.mkdir()
    try:
        with (
            whole.accuracy_log.open(encoding="utf-8") as reference,
            tested.accuracy_log.open(encoding="utf-8") as sampled,
            baseline.accuracy_log.open("w", encoding="utf-8") as file,
        ):
            file.writelines(baseline_lines(reference, sampled))
        request = {**read_request(tested), "output_dir": str(baseline.folder)}
        write_json(baseline.run_json, portable_request(request, baseline.folder))
        of_baseline = score(baseline.folder)
        copy_whole(baseline.accuracy_text, accuracy / BASELINE_TEXT)
    finally:
        shutil.rmtree(baseline.folder, ignore_errors=True)
    copy_whole(tested.accuracy_text, accuracy / COMPLIANCE_TEXT)
    verdict = verify_scores(run.request["model"], metrics_of(of_baseline), metrics_of(scored))
    return Outcome(is_passed=verdict.is_passed, notes=(f"scores: {'; '.join(verdict.lines)}",))


def metrics_of(scored: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of an accuracy.json that have a target in the closed division; all of them where none has."""
    rows = [row for row in scored["metrics"] if row["target"] is not None] or scored["metrics"]
    return {row["name"]: float(row["value"]) for row in rows}


def _verify_text(run: MeasuredRun, test: str, folder: Path, tested: RunPaths, score: Score) -> Outcome:
    log = read_run_logs(tested)
    if log.errors:
        return Outcome(is_passed=False, notes=tuple(log.errors))
    if test == "TEST06":
        verdict, name = _answers_verdict(run, tested), ACCURACY_TEXT
    elif test == "TEST07":
        scored = score(tested.folder)
        value = next((row["value"] for row in scored["metrics"] if row["name"] == "exact_match"), None)
        verdict, name = verify_score(scored["line"], value, limits.least_score(run)), ACCURACY_TEXT
    else:
        count = given_object(tested.result_json, DamagedLog)["sample_counts"]["dataset"]
        with tested.accuracy_log.open(encoding="utf-8") as answers:
            verdict, name = verify_lengths(answers, limits.mean_tokens(run), count), LENGTH_TEXT
    write_whole(folder / name, verdict.text)
    notes = tuple(line for line in verdict.lines if ": " in line or line.startswith("TEST "))
    return Outcome(is_passed=verdict.is_passed, notes=notes)


def _answers_verdict(run: MeasuredRun, tested: RunPaths) -> Verdict:
    record = record_of(run.request["model"])
    folder = limits.model_folder(run)
    ends = limits.end_tokens(folder) or (() if record.end_token is None else (record.end_token,))
    if not ends:
        raise DamagedLog(
            f"no token is known that ends an answer of {record.name}: there is no eos_token_id in "
            f"generation_config.json or config.json of {folder or 'a folder of the model'}"
        )
    with tested.accuracy_log.open(encoding="utf-8") as answers:
        return verify_answers(answers, parse_scenario(run.request["scenario"]), ends, record.response_type)


def _keep_answers(tested: RunPaths, folder: Path) -> None:
    if tested.accuracy_log.is_file():
        copy_whole(tested.accuracy_log, folder / "accuracy" / tested.accuracy_log.name)
