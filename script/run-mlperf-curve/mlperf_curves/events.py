"""Derives the figures of a performance run again from events.jsonl, the client's log of every sample.

What the client does (src/inference_endpoint/async_utils/services/metrics_aggregator/{metrics_table,registry}.py of
mlcommons/endpoints ea332753, 2026-08-21): a sample counts if it was issued between start and stop of performance
tracking; the duration ends with the last of them that completed; TTFT, latency and TPOT are differences of times of
events, TPOT divided by the tokens behind the first chunk; percentiles are elements of the sample (numpy's "lower").
Every line is read once; the many lines of further chunks are passed over unparsed.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlperf_curves.clientfiles import Distribution, Summary
from mlperf_curves.steady import Timing

PERCENTILES = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 75.0, 50.0, 25.0, 10.0, 5.0, 1.0)
CountTokens = Callable[[str], int]

_FURTHER_CHUNK = '{"event_type":"sample.recv_non_first"'
_CLOSE = 1e-9
"""Fractions, and sums of them, differ by the order in which they were added; all other figures are whole numbers."""


class EventsError(ValueError):
    """events.jsonl is not what the client writes; the text has the line."""


@dataclass(slots=True)
class _Sample:
    """prompt: kept until the answer is there, which makes long runs small."""

    issued_ns: int
    prompt: str | None
    first_ns: int | None = None
    completed_ns: int | None = None
    tpot_ns: float | None = None

    def since_issue(self, time_ns: int | None) -> int | None:
        """Nanoseconds from the issue to another event; None without it."""
        return None if time_ns is None else time_ns - self.issued_ns

    def timing(self) -> Timing:
        """What the steady state is derived from."""
        ttft, latency = self.since_issue(self.first_ns), self.since_issue(self.completed_ns)
        return Timing(self.issued_ns, ttft, latency, self.tpot_ns)


@dataclass(slots=True)
class _Tokens:
    """Tokens of prompts and answers; flags: not all are texts."""

    count: CountTokens
    prompts: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    has_other_prompts: bool = False
    has_other_answers: bool = False


@dataclass(slots=True)
class _Session:
    tokens: _Tokens | None
    is_tracking: bool = False
    start_ns: int | None = None
    samples: dict[str, _Sample] = field(default_factory=dict)
    prompts: set[int] = field(default_factory=set)
    failed: int = 0
    echoed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What follows from the events of a performance run. Times are nanoseconds of the client's monotonic clock.

    echoed: answers that are their prompt word by word; timings: of each sample, ascending by issue. What counts tokens
    is None without a tokenizer, and where prompts are messages, or answers have reasoning or tool calls: only the
    model's chat template turns these into text. The TPOT of a timing counts the text of reasoning all the same: its
    scale may be another, its course is not.
    """

    issued: int
    completed: int
    failed: int
    duration_ns: int
    ttft: Distribution
    latency: Distribution
    tpot: Distribution | None
    input_tokens: Distribution | None
    output_tokens: Distribution | None
    greatest_in_flight: int
    distinct_prompts: int
    echoed: int
    timings: tuple[Timing, ...]

    def issue_span_s(self, first: int = 0, count: int | None = None) -> float:
        """Return the seconds over which samples were issued: of `count` from the one with index `first`."""
        part = self.timings[first : None if count is None else first + count]
        return (part[-1].issued_ns - part[0].issued_ns) / 1e9 if part else 0.0


def distribution_of(values: Sequence[float]) -> Distribution:
    """Return the client's figures of a sample; all None for an empty one."""
    if not values:
        return Distribution(percentiles={})
    ordered = sorted(values)
    percentiles = {percent: ordered[math.floor((len(ordered) - 1) * (percent / 100))] for percent in PERCENTILES}
    total = sum(ordered) if all(isinstance(one, int) for one in ordered) else math.fsum(ordered)
    return Distribution(
        total=total,
        least=ordered[0],
        greatest=ordered[-1],
        median=percentiles[50.0],
        mean=total / len(ordered),
        percentiles=percentiles,
    )


def _distribution(values: Iterable[float | None]) -> Distribution:
    return distribution_of([one for one in values if one is not None])


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.startswith(_FURTHER_CHUNK) or not line.strip():
                    continue
                value = json.loads(line)
                if not isinstance(value, dict) or not isinstance(value.get("timestamp_ns"), int):
                    raise EventsError(f"{path.name}:{number}: not an event of the client")
                yield number, value
    except (OSError, EOFError, ValueError, RecursionError) as error:
        if isinstance(error, EventsError):
            raise
        raise EventsError(f"{path.name} cannot be read: {error}") from None


def _prompt(data: object) -> str | None:
    """The text of ["PromptData", text, token ids, messages ...], None where it has none."""
    if isinstance(data, list) and len(data) > 1 and isinstance(data[1], str):
        return data[1]
    return None


def _chunks(data: object) -> tuple[str, ...] | None:
    """The chunks of ["TextModelOutput", output, reasoning, tool calls]; None where they are not all of the answer.

    A request that failed has no answer.
    """
    if data is None:
        return ()
    if not isinstance(data, list) or len(data) < 2 or any(data[2:]):
        return None
    return _pieces(data[1])


def _pieces(value: object) -> tuple[str, ...] | None:
    """The pieces of a text, which came as one or as several; None where it is no text."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _behind_first_chunk(data: object) -> str:
    """What came behind the first chunk of an answer, its reasoning before its output."""
    parts = data[1:3][::-1] if isinstance(data, list) else []
    return "".join([piece for part in parts for piece in _pieces(part) or ()][1:])


def _issue(session: _Session, uuid: str, time_ns: int, data: object) -> None:
    prompt = _prompt(data)
    session.samples[uuid] = _Sample(time_ns, prompt)
    if prompt is not None:
        session.prompts.add(hash(prompt))
    if tokens := session.tokens:
        ids = data[2] if isinstance(data, list) and len(data) > 2 else None
        if isinstance(ids, list):  # they take precedence over the text
            tokens.prompts.append(len(ids))
        elif prompt:
            tokens.prompts.append(tokens.count(prompt))
        else:
            tokens.has_other_prompts = True


def _complete(session: _Session, sample: _Sample, time_ns: int, data: object) -> None:
    chunks = _chunks(data)
    sample.completed_ns = time_ns
    text = "".join(chunks or ())
    session.echoed += sample.prompt is not None and bool(text) and sample.prompt.split() == text.split()
    sample.prompt = None
    tokens = session.tokens
    if tokens is None:
        return
    if chunks is None:
        tokens.has_other_answers = True
    elif text:
        tokens.answers.append(tokens.count(text))
    rest = _behind_first_chunk(data)
    behind = tokens.count(rest) if rest and sample.first_ns is not None else 0
    if sample.first_ns is not None and behind > 0:
        sample.tpot_ns = (time_ns - sample.first_ns) / behind


def _take(session: _Session, event: Mapping[str, Any]) -> None:
    kind, time_ns, uuid = str(event.get("event_type")), event["timestamp_ns"], str(event.get("sample_uuid") or "")
    if kind == "session.start_performance_tracking":
        if session.start_ns is not None:
            raise EventsError("performance tracking starts twice")
        session.is_tracking, session.start_ns = True, time_ns
    elif kind == "session.stop_performance_tracking":
        session.is_tracking = False
    elif kind == "sample.issued":
        if session.is_tracking and uuid not in session.samples:
            _issue(session, uuid, time_ns, event.get("data"))
    elif uuid in session.samples:
        sample = session.samples[uuid]
        if sample.completed_ns is not None:
            return
        if kind == "sample.recv_first":
            sample.first_ns = time_ns
        elif kind == "sample.complete":
            _complete(session, sample, time_ns, event.get("data"))
        elif kind.startswith("error."):
            session.failed += 1


def _greatest_in_flight(samples: Sequence[_Sample]) -> int:
    steps = [(one.issued_ns, 1) for one in samples]
    steps += [(one.completed_ns, -1) for one in samples if one.completed_ns is not None]
    greatest = running = 0
    for _, step in sorted(steps):  # at the same time an end comes before a beginning
        running += step
        greatest = max(greatest, running)
    return greatest


def derive(path: Path, count_tokens: CountTokens | None = None) -> Derived:
    """Return what follows from events.jsonl (or events.jsonl.gz); raises EventsError.

    count_tokens: the number of tokens of a text, without special tokens, by the tokenizer that the client had.
    """
    session = _Session(_Tokens(count_tokens) if count_tokens else None)
    for number, event in _lines(path):
        try:
            _take(session, event)
        except EventsError as error:
            raise EventsError(f"{path.name}:{number}: {error}") from None
    if session.start_ns is None:
        raise EventsError(f"{path.name}: performance tracking never starts")
    samples, tokens = list(session.samples.values()), session.tokens
    timings = tuple(sorted((one.timing() for one in samples), key=lambda one: one.issued_ns))
    ended = [one.completed_ns for one in samples if one.completed_ns is not None]
    has_answers = tokens is not None and not tokens.has_other_answers
    return Derived(
        issued=len(samples),
        completed=len(ended),
        failed=session.failed,
        duration_ns=max(ended, default=session.start_ns) - session.start_ns,
        ttft=_distribution(one.ttft_ns for one in timings),
        latency=_distribution(one.latency_ns for one in timings),
        input_tokens=distribution_of(tokens.prompts) if tokens and not tokens.has_other_prompts else None,
        output_tokens=distribution_of(tokens.answers) if tokens and has_answers else None,
        tpot=_distribution(one.tpot_ns for one in timings) if has_answers else None,
        greatest_in_flight=_greatest_in_flight(samples),
        distinct_prompts=len(session.prompts),
        echoed=session.echoed,
        timings=timings,
    )


def _figures(name: str, one: Distribution) -> Iterator[tuple[str, float | None]]:
    yield f"{name}.total", one.total
    yield f"{name}.min", one.least
    yield f"{name}.max", one.greatest
    yield f"{name}.avg", one.mean
    for percent in PERCENTILES:
        yield f"{name}.percentiles.{percent}", one.percentile(percent)


def compared(summary: Summary, derived: Derived) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield each figure that is in both: its name, the summary's value, the derived one."""
    for key in ("issued", "completed", "failed"):
        yield f"n_samples_{key}", getattr(summary, key), getattr(derived, key)
    yield "duration_ns", summary.duration_ns, derived.duration_ns
    for name in ("ttft", "tpot", "latency", "input_tokens", "output_tokens"):
        ours: Distribution | None = getattr(derived, name)
        theirs: Distribution = getattr(summary, name)
        if ours is not None:
            for (figure, value), (_, found) in zip(_figures(name, theirs), _figures(name, ours), strict=True):
                yield figure, value, found


def differences(summary: Summary, derived: Derived) -> tuple[str, ...]:
    """Return the figures of a summary that do not follow from the events, as `name: summary, events`."""
    return tuple(
        f"{name}: {value}, from the events {found}"
        for name, value, found in compared(summary, derived)
        if not _equal(name, value, found)
    )


def _equal(name: str, value: float | None, found: float | None) -> bool:
    if value is None or found is None:
        return value is found
    is_fraction = name.startswith("tpot.") or name.endswith(".avg")
    return math.isclose(value, found, rel_tol=_CLOSE) if is_fraction else value == found
