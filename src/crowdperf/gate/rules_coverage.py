"""Rules on the coverage of an accuracy run: its seeds, its loaded samples, and the number of samples in its score."""

import re
from collections.abc import Iterator

from crowdperf.gate.derivation import SEEDS, at_keys, numbers, other_seeds, version_of
from crowdperf.gate.rulebook import LOADGEN, OURS, SINCE, Scope, Violation, rule
from crowdperf.gate.rules_accuracy import repeated_number, samples_of, shown_numbers, shown_samples
from crowdperf.gate.steps import Step, step_of_run
from crowdperf.gate.views import ResultView, ScenarioView
from crowdperf.kit.records import number_of
from crowdperf.logs.score_lines import parse_counts, parse_sample_counts, parse_statements

_RESPONSE = re.compile(r'"qsl_idx"\s*:\s*([0-9]+),\s*"data"\s*:\s*"([0-9A-Fa-f]*)"')
_GENERATED = ("generated_query_count", "generated_samples_per_query")
_ENOUGH = 20
"""That many equal responses are not a coincidence."""


@rule("ACC-017", Scope.SCENARIO, "The accuracy run has the seeds of the round.", source=OURS)
def has_seeds(scenario: ScenarioView) -> Iterator[Violation]:
    """All zero is LoadGen without its configuration: the order of the samples, which does not change a score."""
    log = scenario.accuracy_detail
    if log.is_usable and not all(log.number(key) == 0 for key, _ in SEEDS):
        yield from other_seeds(log, scenario.tree.round)


@rule("ACC-018", Scope.SCENARIO, "LoadGen loaded every sample of the accuracy run.", source=OURS)
def loaded_every_sample(scenario: ScenarioView) -> Iterator[Violation]:
    log = scenario.accuracy_detail
    key = "effective_accuracy_sample_count"
    wanted = log.number(key if key in log.values else "qsl_reported_total_count")
    if log.is_usable and wanted is not None and log.loaded_count < wanted:
        line, allowed = log.lines.get("loaded_qsl_set"), f"{wanted:g}, every sample once"
        yield Violation(path=log.path, found=f"{log.loaded_count} samples loaded", allowed=allowed, line=line)


@rule("ACC-019", Scope.RESULT, "The data set is as large as the loaded samples, in all runs.", source=OURS,
      step=Step.ACCURACY)  # fmt: skip
def data_set_is_large_enough(result: ResultView) -> Iterator[Violation]:
    for mark in result.tree.register.runs_with("folder", result.subject.folder):
        total = number_of(mark.fields.get("qsl_reported_total_count"))
        kind = "accuracy" if mark.place.kind == "accuracy" else "performance"
        key = f"effective_{kind}_sample_count"
        taken = number_of(mark.fields.get(key))
        if total is not None and taken is not None and total < taken:
            found = f"qsl_reported_total_count = {total:g}, {key} = {taken:g}"
            step = step_of_run(mark.place.test, is_accuracy=kind == "accuracy")
            yield Violation(path=mark.path, found=found, allowed="no more samples than there are", step=step)


@rule("ACC-020", Scope.SCENARIO, "The numbers on a line of accuracy.txt agree, and are of the whole data set.",
      source=OURS)  # fmt: skip
def figures_agree(scenario: ScenarioView) -> Iterator[Violation]:
    wanted, source = samples_of(scenario), scenario.accuracy_text
    for one in parse_statements(source.text):
        if not one.is_true:
            found, allowed = f"{one.name} {one.written:g}", f"{one.derived:g}, by the rest of the line"
            yield Violation(path=source.path, found=found, allowed=allowed, line=one.line)
    for count in parse_sample_counts(source.text):
        if wanted is not None and count.count != wanted:
            yield Violation(path=source.path, found=f"{count.name} {count.count}", allowed=f"{wanted}", line=count.line)


@rule("ACC-021", Scope.SCENARIO, "The accuracy log has different samples with different responses.", source=OURS)
def responses_differ(scenario: ScenarioView) -> Iterator[Violation]:
    log = scenario.accuracy_log
    indexes = shown_samples(log.text)
    repeated = len(indexes) - len(set(indexes))
    is_padded = scenario.accuracy_detail.text("effective_scenario") == "MultiStream"
    if repeated > (len(indexes) // 8 + 7 if is_padded else 0):
        found = f"{len(set(indexes))} samples in {len(indexes)} responses"
        yield Violation(path=log.path, found=found, allowed="each sample once")
    answers = dict(_RESPONSE.findall(log.text))
    is_bad_model = any(counts.percent < 50 for counts in parse_counts(scenario.accuracy_text.text))
    if len(answers) >= _ENOUGH and len(set(answers.values())) == 1 and not is_bad_model:
        found = f"{len(answers)} samples with the one response {next(iter(answers.values()))[:40]}"
        yield Violation(path=log.path, found=found, allowed="the responses of a model with this score")


@rule("ACC-025", Scope.SCENARIO, "The responses of the accuracy log are numbered, each once, up to those of the run.",
      source=LOADGEN, since=SINCE)  # fmt: skip
def responses_are_numbered(scenario: ScenarioView) -> Iterator[Violation]:
    """LoadGen numbers the samples that it issues from 0 on. MultiStream fills its last query with repeated samples."""
    log, detail = scenario.accuracy_log, scenario.accuracy_detail
    repeated = repeated_number(log.text)
    if repeated is not None:
        yield Violation(path=log.path, found=f"seq_id {repeated} twice", allowed="each response once")
    counted = detail.number("effective_accuracy_sample_count") or detail.number("qsl_reported_total_count")
    numbers = shown_numbers(log.text)
    if not detail.is_usable or counted is None or not numbers:
        return
    padding = (detail.number("effective_samples_per_query") or 1) - 1
    issued = max(counted, samples_of(scenario) or 0) + (padding if detail.scenario == "MultiStream" else 0)
    if max(numbers) >= issued:
        found = f"seq_id {max(numbers)}"
        yield Violation(path=log.path, found=found, allowed=f"below {issued:g}, the samples of {detail.path}")


@rule("ACC-028", Scope.SCENARIO, "The accuracy run issued every sample that it loaded first.", source=LOADGEN,
      since=SINCE)  # fmt: skip
def issued_what_it_loaded(scenario: ScenarioView) -> Iterator[Violation]:
    """LoadGen loads the data set part by part, and logs for each how many queries it generates, of how many samples.

    LoadGen 4.1 logged another number of samples in Offline, and a version of two numbers.
    """
    log = scenario.accuracy_detail
    loaded, found = log.values.get("loaded_qsl_set"), numbers(log, *_GENERATED)
    is_run = log.is_usable and log.text("effective_test_mode") == "AccuracyOnly" and version_of(log) is not None
    if not is_run or found is None or not isinstance(loaded, list):
        return
    queries, samples = found
    padding = samples - 1 if log.scenario == "MultiStream" else 0  # its last query is filled with samples again
    if not len(loaded) - padding <= queries * samples <= len(loaded):
        yield at_keys(log, _GENERATED, f"the {len(loaded)} samples that were loaded")
