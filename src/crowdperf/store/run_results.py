"""Makes a result of the LoadGen runs of one benchmark in one scenario: a performance run, and an accuracy run if there
is one. Pure; every figure is what `crowdperf.logs` read in the logs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.text_documents import mapping
from crowdperf.logs.answer_metrics import client_values_of
from crowdperf.logs.efficiency import efficiency_values
from crowdperf.logs.result_rows import duration_shortage
from crowdperf.logs.run_facts import RunFacts, Score
from crowdperf.logs.run_log import Latencies, LoadGenLog
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS, METRIC_OF_SCENARIO, ExecutionMode
from crowdperf.store import facts
from crowdperf.store.facts import Documents, RunPlace
from crowdperf.store.model import Accuracy, Figure, File, NewResult, Problem, ResultKind, Verification
from crowdperf.store.redaction import Sender, masked_text

_NANOSECONDS_PER_MS = 1e6
_MAX_REASONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of a result, their documents and files, and what must stand beside them.

    run_id: what tells the result from others of its kind and signer. problems: what does not fit in them, None where
    nobody looked. label: as resultrows.label_of gives it.
    """

    run_id: str
    kind: ResultKind
    problems: tuple[Problem, ...] | None
    performance: RunFacts
    accuracy: RunFacts | None
    label: str
    documents: Documents
    files: tuple[File, ...]
    division: str = ""
    submitter: str = ""


def run_class(performance: RunFacts) -> str:
    """How long a performance run was asked to be: `valid` for its round, `fast` or `test`."""
    asked_ms = performance.summary.number("min_duration (ms)")
    if performance.log is not None:
        asked_ms = performance.log.effective.min_duration_ms
    if asked_ms is None:
        return "test"
    if asked_ms >= FULL_RULES_MIN_DURATION_MS or not duration_shortage(performance, performance.round_name):
        return "valid"
    return "fast" if asked_ms >= ExecutionMode.FAST.min_duration_ms else "test"


def _token_figures(log: LoadGenLog) -> Iterator[Figure]:
    if log.tokens is None:
        return
    yield Figure(name="tokens per second", value=log.tokens.per_second, unit="tokens/s")
    named: tuple[tuple[str, Latencies | None], ...] = (("TTFT", log.tokens.ttft), ("TPOT", log.tokens.tpot))
    for name, found in named:
        if found is not None:
            for percent, value in (("50", found.p50_ns), ("90", found.p90_ns), ("99", found.p99_ns)):
                yield Figure(name=f"{name} {percent}", value=value / _NANOSECONDS_PER_MS, unit="ms")


def figures_of(performance: RunFacts, result: Mapping[str, Any]) -> tuple[Figure, ...]:
    """The latencies by percent ("0" is the least, "100" the greatest, "mean"), the figures of tokens, and what the
    client measured. result: result.json of the run."""
    found = [Figure(name=one.name, value=one.value, unit=one.unit) for one in performance.latencies]
    log = performance.log
    if log is not None:
        if log.latencies is not None:
            found.append(Figure(name="mean", value=log.latencies.mean_ns / _NANOSECONDS_PER_MS, unit="ms"))
        found += _token_figures(log)
    measured = client_values_of(mapping(result.get("text")))
    found += [Figure(name=name, value=value, unit=unit) for name, value, unit in measured]
    found += [Figure(name=one.name, value=value, unit=one.unit) for one, value in efficiency_values(result)]
    return tuple(found)


def _accuracy(scores: tuple[Score, ...]) -> tuple[Accuracy, ...]:
    return tuple(
        Accuracy(name=one.name, value=one.value, target=one.target, passed=one.is_passed, basis="claimed")
        for one in scores
        if one.value is not None
    )


def _verification(runs: Runs) -> Verification:
    if runs.performance.log is None:
        return "summary"
    if runs.problems is None:
        return "none"
    return "not consistent" if runs.problems else "logs consistent"


def _reasons(problems: Sequence[Problem]) -> Iterator[str]:
    """What does not fit, in words without anything private."""
    for one in problems[:_MAX_REASONS]:
        words = f"{one.rule} {one.file}: {one.found}, expected {one.expected}"
        yield f"not consistent: {masked_text(words, Sender())}"
    if len(problems) > _MAX_REASONS:
        yield f"not consistent: {len(problems) - _MAX_REASONS} more"


def _notes(runs: Runs, rest: str) -> Iterator[str]:
    yield from _reasons(runs.problems or ())
    if rest:
        yield rest
    yield from (f"INVALID: {reason}" for reason in runs.performance.reasons)
    if runs.performance.problem:
        yield f"read from the summary: {runs.performance.problem}"
    for score in runs.accuracy.scores if runs.accuracy is not None else ():
        if score.value is None:
            yield f"accuracy: {score.line}"
    if any(efficiency_values(runs.documents.result)):
        yield "energy and cost are claimed: LoadGen's logs do not contain them"
    if not runs.documents.result and not runs.documents.system:
        yield "the machine is not recorded"


def result_of_runs(runs: Runs) -> NewResult | None:
    """Return the result of some runs; None where the performance run has no figure."""
    shown = runs.performance
    if shown.figure is None:
        return None
    found = shown.run
    place = RunPlace(
        benchmark=found.model,
        scenario=found.scenario.value,
        run_class=run_class(shown),
        division=runs.division,
        submitter=runs.submitter,
        system=found.system,
    )
    round_name = shown.round_name if runs.division else ""
    configuration = facts.configuration_of(place, runs.documents, round_name)
    labels, rest = facts.labels_of(runs.label, configuration, runs.documents)
    scores = runs.accuracy.scores if runs.accuracy is not None else ()
    if any(score.is_passed is False for score in scores):
        labels = (*labels, facts.ACCURACY_MISSED)
    figure, usual = shown.figure, METRIC_OF_SCENARIO[found.scenario]
    command = runs.documents.record.get("command")
    return NewResult(
        run_id=runs.run_id,
        kind=runs.kind,
        configuration=configuration,
        labels=labels,
        made_utc=facts.made_utc(runs.documents, shown.started),
        stack_version=facts.software(runs.documents)[1],
        metric=figure.name,
        value=figure.value,
        unit=figure.unit,
        higher_is_better=figure.unit != "ms" if figure.unit != usual.unit else usual.higher_is_better,
        valid=shown.is_valid,
        verification=_verification(runs),
        command=command if isinstance(command, str) else "",
        figures=figures_of(shown, runs.documents.result),
        accuracy=_accuracy(runs.accuracy.scores) if runs.accuracy is not None else (),
        files=runs.files,
        curve=(),
        notes=tuple(_notes(runs, rest)),
        raw={
            "label": runs.label,
            "line": figure.evidence.line,
            "loadgen": runs.documents.result.get("loadgen_version"),
            "detail_sha256": shown.detail_sha256,
        },
        submitter=runs.submitter,
        system_name=found.system if runs.division else "",
    )
