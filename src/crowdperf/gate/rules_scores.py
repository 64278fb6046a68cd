"""Rules on the scores in accuracy.txt: that they can be read reliably, and that they reach the required values.

The checker reads a score with an expression on each line. If it compares in the wrong direction, or a fraction with a
percentage, its verdict is kept (a finding would contradict an acceptance or a refusal), and a separate rule checks the
benchmark's own limits.
"""

import math
from collections.abc import Iterator

from crowdperf.gate.rulebook import (
    BOTH,
    CLOSED,
    NEWER,
    OLDER,
    OURS,
    RULES_TEXT,
    Scope,
    Severity,
    Violation,
    rule,
    shown,
)
from crowdperf.gate.views import ScenarioView
from crowdperf.logs.score_lines import EXAMPLES, parse_bounds, parse_scores, unplain_scores

_NUMPY = "the number alone, as print(float(score)) writes it"


@rule("ACC-006", Scope.SCENARIO, "accuracy.txt has a line for every metric.", source=OLDER)
def has_scores(scenario: ScenarioView) -> Iterator[Violation]:
    table, source = scenario.model.table, scenario.accuracy_text
    if source.problem:
        yield Violation(path=source.path, found=source.problem, allowed="UTF-8 text")
    if table is None or not source.is_usable:
        return
    for limit in table.targets_in(scenario.scenario or ""):
        is_unread = not parse_scores(limit.metric, source.text)
        if is_unread and not unplain_scores(limit.metric, source.text):
            allowed = EXAMPLES.get(limit.metric, f"a line with {limit.metric}")
            yield Violation(path=source.path, found=f"no line for {limit.metric}", allowed=f"for example: {allowed}")


@rule("ACC-007", Scope.SCENARIO, "Every score reaches its target.", source=BOTH, divisions=CLOSED)
def reaches_targets(scenario: ScenarioView) -> Iterator[Violation]:
    table, source = scenario.model.table, scenario.accuracy_text
    for limit in table.targets_in(scenario.scenario or "") if table else ():
        for score in parse_scores(limit.metric, source.text):
            if not score.value >= limit.value:
                found = f"{limit.metric} {score.value:g}"
                yield Violation(path=source.path, found=found, allowed=f"at least {limit.value:g}", line=score.line)


@rule("ACC-008", Scope.SCENARIO, "No score is above its upper limit.", source=BOTH, divisions=CLOSED)
def keeps_upper_limits(scenario: ScenarioView) -> Iterator[Violation]:
    table, source = scenario.model.table, scenario.accuracy_text
    for limit in table.upper_limits if table else ():
        for score in parse_scores(limit.metric, source.text):
            if not score.value <= limit.value:
                found = f"{limit.metric} {score.value:g}"
                yield Violation(path=source.path, found=found, allowed=f"at most {limit.value:g}", line=score.line)


def _metrics(scenario: ScenarioView) -> tuple[str, ...]:
    """The metrics that the checker requires, and those with an upper limit, which it checks if they are present."""
    table = scenario.model.table
    if table is None:
        return ()
    limits = [limit.metric for limit in (*table.targets_in(scenario.scenario or ""), *table.upper_limits)]
    return tuple(dict.fromkeys((*limits, *(target.metric for target in table.rules_targets))))


@rule("ACC-022", Scope.SCENARIO, "Each score is a plain number: the checker reads others in part, or not at all.",
      source=NEWER)  # fmt: skip
def scores_are_plain(scenario: ScenarioView) -> Iterator[Violation]:
    source = scenario.accuracy_text
    for metric in _metrics(scenario):
        for text, line in unplain_scores(metric, source.text):
            allowed = f"{_NUMPY}, for example: {EXAMPLES.get(metric, metric)}"
            yield Violation(path=source.path, found=f"{metric} {shown(text)}", allowed=allowed, line=line)


LARGEST = {"DICE": 1.0, "F1_HIERARCHICAL": 1.0, **dict.fromkeys(
    ("acc", "AUC", "DLRM_ACC", "DLRM_AUC", "mAP", "F1", "ACCURACY", "WER", "ROUGE1", "ROUGE2", "ROUGEL", "ROUGELSUM",
     "gsm8k_accuracy", "mbxp_accuracy", "exact_match", "E2E_ACCURACY", "overall", "non_live"), 100.0)}  # fmt: skip
"""Shares of all there is: parts of 1, else percent."""


@rule("ACC-027", Scope.SCENARIO, "Every score is one that there can be.", source=OURS)
def scores_are_possible(scenario: ScenarioView) -> Iterator[Violation]:
    source = scenario.accuracy_text
    for metric in _metrics(scenario):
        largest = LARGEST.get(metric, math.inf)
        for score in parse_scores(metric, source.text):
            if score.value > largest:
                found = f"{metric} {score.value:g}"
                yield Violation(path=source.path, found=found, allowed=f"at most {largest:g}", line=score.line)
    for one in parse_bounds(source.text):
        if not one.is_kept:
            found, allowed = f"{one.name} {one.written:g}", f"at most the {one.other} of {one.most:g}"
            yield Violation(path=source.path, found=found, allowed=allowed, line=one.line)


@rule("ACC-023", Scope.SCENARIO, "accuracy.txt has one score of each metric: which of two counts is luck.",
      source=NEWER, since="v6.1", divisions=CLOSED)  # fmt: skip
def has_one_score(scenario: ScenarioView) -> Iterator[Violation]:
    source = scenario.accuracy_text
    for metric in _metrics(scenario):
        scores = parse_scores(metric, source.text)
        other = next((one for one in scores if one.value != scores[0].value), None)
        if other is not None:
            found = f"{metric} {scores[0].value:g} in line {scores[0].line}, then {other.value:g}"
            yield Violation(
                path=source.path, found=found, allowed="one line with the whole run's score", line=other.line
            )


@rule("ACC-024", Scope.SCENARIO, "Every score reaches the rules' target if the checker has another one.",
      source=RULES_TEXT, divisions=CLOSED)  # fmt: skip
def reaches_rules_targets(scenario: ScenarioView) -> Iterator[Violation]:
    table, source = scenario.model.table, scenario.accuracy_text
    asked = {limit.metric for limit in table.targets_in(scenario.scenario or "")} if table else set()
    for target in table.rules_targets if table and source.is_usable else ():
        scores = parse_scores(target.metric, source.text)
        allowed = f"{'at least' if target.is_least else 'at most'} {target.value:g}"
        for score in scores:
            if not target.allows(score.value):
                found = f"{target.metric} {score.value:g}"
                yield Violation(path=source.path, found=found, allowed=allowed, line=score.line, source=target.source)
        if not scores and target.metric not in asked:
            found, hint = f"no line for {target.metric}", f"{allowed}, for example: {EXAMPLES[target.metric]}"
            yield Violation(
                path=source.path, found=found, allowed=hint, source=target.source, severity=Severity.WARNING
            )
