"""What is kept of the samples of a performance run: when each was issued and answered, and its tokens; no text.

samples.csv has a row for each sample in the order of issue, so that every figure of the run can be derived again where
neither its events.jsonl (gigabytes, with all prompts) nor its tokenizer is at hand:

    issued_ns,first_ns,completed_ns,errors,prompt,echoed,prompt_tokens,answer_tokens,rest_tokens
    10,7000321,91000456,0,0,0,12,21,20

Times are nanoseconds since performance tracking began. prompt: the number of the prompt, in the order of first issue;
echoed: 1 where the answer is the prompt word by word; rest_tokens: of the text behind the first chunk. A cell is empty
where nothing is known: no first token, no answer, no tokenizer, or text that only the chat template of the model makes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields

from crowdperf.endpoints.clientfiles import Distribution, Summary
from crowdperf.endpoints.steady import Timing
from crowdperf.kit.csv_cells import csv_text

SAMPLES = "samples.csv"
PERCENTILES = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 75.0, 50.0, 25.0, 10.0, 5.0, 1.0)
_CLOSE = 1e-9
"""Fractions, and sums of them, differ by the order in which they were added; all other figures are whole numbers."""
_MAX_DIGITS = 19


class EventsError(ValueError):
    """events.jsonl or samples.csv is not what it should be; the text has the line."""


@dataclass(slots=True)
class Sample:
    """A row of samples.csv, in its order."""

    issued_ns: int
    first_ns: int | None = None
    completed_ns: int | None = None
    errors: int = 0
    prompt: int | None = None
    echoed: int = 0
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    rest_tokens: int | None = None

    def timing(self) -> Timing:
        """What the steady state is derived from."""
        tpot: float | None = None
        if self.first_ns is not None and self.completed_ns is not None and self.rest_tokens:
            tpot = (self.completed_ns - self.first_ns) / self.rest_tokens
        return Timing(self.issued_ns, self._since(self.first_ns), self._since(self.completed_ns), tpot)

    def _since(self, time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns - self.issued_ns


_COLUMNS = tuple(one.name for one in fields(Sample))
_NEEDED = ("issued_ns", "errors", "echoed")


def csv_of(samples: Sequence[Sample]) -> str:
    """Return samples.csv."""
    return csv_text(_COLUMNS, map(astuple, samples))


def samples_of(text: str) -> tuple[Sample, ...]:
    """Return the samples of samples.csv; raises EventsError with the line."""
    rows = text.split("\n")
    if rows[0].split(",") != list(_COLUMNS) or rows[-1]:
        raise EventsError(f"{SAMPLES}: does not begin with {','.join(_COLUMNS)}, or ends in the middle of a line")
    return tuple(_sample(number, row) for number, row in enumerate(rows[1:-1], 2))


def _sample(number: int, row: str) -> Sample:
    cells = row.split(",")
    is_usual = all(not one or (one.isascii() and one.isdecimal() and len(one) <= _MAX_DIGITS) for one in cells)
    if len(cells) != len(_COLUMNS) or not is_usual:
        raise EventsError(f"{SAMPLES}:{number}: not {len(_COLUMNS)} whole numbers")
    values = {name: int(one) if one else None for name, one in zip(_COLUMNS, cells, strict=True)}
    if any(values[name] is None for name in _NEEDED):
        raise EventsError(f"{SAMPLES}:{number}: no {' or '.join(_NEEDED)}")
    return Sample(**values)  # type: ignore[arg-type]


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


def _greatest_in_flight(samples: Sequence[Sample]) -> int:
    steps = [(one.issued_ns, 1) for one in samples]
    steps += [(one.completed_ns, -1) for one in samples if one.completed_ns is not None]
    greatest = running = 0
    for _, step in sorted(steps):  # at the same time an end comes before a beginning
        running += step
        greatest = max(greatest, running)
    return greatest


def derived_of(samples: Sequence[Sample]) -> Derived:
    """Return what follows from the samples of a performance run, which may come in any order."""
    ordered = sorted(samples, key=lambda one: one.issued_ns)
    timings = tuple(one.timing() for one in ordered)
    has_answers = bool(ordered) and all(one.answer_tokens is not None for one in ordered)
    has_prompts = bool(ordered) and all(one.prompt_tokens is not None for one in ordered)
    return Derived(
        issued=len(ordered),
        completed=sum(one.completed_ns is not None for one in ordered),
        failed=sum(one.errors for one in ordered),
        duration_ns=max((one.completed_ns for one in ordered if one.completed_ns is not None), default=0),
        ttft=_distribution(one.ttft_ns for one in timings),
        latency=_distribution(one.latency_ns for one in timings),
        input_tokens=_distribution(one.prompt_tokens for one in ordered) if has_prompts else None,
        output_tokens=_distribution(one.answer_tokens or None for one in ordered) if has_answers else None,
        tpot=_distribution(one.tpot_ns for one in timings) if has_answers else None,
        greatest_in_flight=_greatest_in_flight(ordered),
        distinct_prompts=len({one.prompt for one in ordered if one.prompt is not None}),
        echoed=sum(one.echoed for one in ordered),
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
