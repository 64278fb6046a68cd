"""Derives the figures of a performance run again from events.jsonl, the client's log of every sample.

What the client does (src/inference_endpoint/async_utils/services/metrics_aggregator/{metrics_table,registry}.py of
mlcommons/endpoints ea332753, 2026-08-21): a sample counts if it was issued between start and stop of performance
tracking; the duration ends with the last of them that completed; TTFT, latency and TPOT are differences of times of
events, TPOT divided by the tokens behind the first chunk; percentiles are elements of the sample (numpy's "lower").
Every line is read once; the many lines of further chunks are passed over unparsed.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.endpoints.samples import SAMPLES, Derived, EventsError, Sample, derived_of, samples_of

CountTokens = Callable[[str], int]

_FURTHER_CHUNK = '{"event_type":"sample.recv_non_first"'


@dataclass(slots=True)
class _Session:
    """What was read so far. waiting: prompts of samples that are under way, kept no longer; prompts: their numbers."""

    count: CountTokens | None
    is_tracking: bool = False
    start_ns: int | None = None
    samples: dict[str, Sample] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    prompts: dict[int, int] = field(default_factory=dict)

    def since_start(self, time_ns: int) -> int:
        """Nanoseconds of the run's own clock."""
        return time_ns - (self.start_ns or 0)


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
    sample = session.samples[uuid] = Sample(session.since_start(time_ns))
    if prompt is not None:
        session.waiting[uuid] = prompt
        sample.prompt = session.prompts.setdefault(hash(prompt), len(session.prompts))
    if session.count is not None:
        ids = data[2] if isinstance(data, list) and len(data) > 2 else None
        if isinstance(ids, list):  # they take precedence over the text
            sample.prompt_tokens = len(ids)
        elif prompt:
            sample.prompt_tokens = session.count(prompt)


def _complete(session: _Session, uuid: str, time_ns: int, data: object) -> None:
    sample, prompt, chunks = session.samples[uuid], session.waiting.pop(uuid, None), _chunks(data)
    sample.completed_ns = session.since_start(time_ns)
    text = "".join(chunks or ())
    sample.echoed = int(prompt is not None and bool(text) and prompt.split() == text.split())
    if session.count is None:
        return
    if chunks is not None:
        sample.answer_tokens = session.count(text) if text else 0
    rest = _behind_first_chunk(data)
    sample.rest_tokens = session.count(rest) if rest and sample.first_ns is not None else 0


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
            sample.first_ns = session.since_start(time_ns)
        elif kind == "sample.complete":
            _complete(session, uuid, time_ns, event.get("data"))
        elif kind.startswith("error."):
            sample.errors += 1


def read_samples(path: Path, count_tokens: CountTokens | None = None) -> tuple[Sample, ...]:
    """Return the samples of a performance run, by issue, from events.jsonl, events.jsonl.gz or samples.csv.

    count_tokens: the number of tokens of a text, without special tokens, by the tokenizer that the client had.
    Raises EventsError.
    """
    if path.name == SAMPLES:
        try:
            return samples_of(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise EventsError(f"{path.name} cannot be read: {error}") from None
    session = _Session(count_tokens)
    for number, event in _lines(path):
        try:
            _take(session, event)
        except EventsError as error:
            raise EventsError(f"{path.name}:{number}: {error}") from None
    if session.start_ns is None:
        raise EventsError(f"{path.name}: performance tracking never starts")
    for sample in session.samples.values():
        if count_tokens is not None and sample.completed_ns is None:
            sample.answer_tokens = 0
    return tuple(sorted(session.samples.values(), key=lambda one: one.issued_ns))


def derive(path: Path, count_tokens: CountTokens | None = None) -> Derived:
    """Return what follows from the samples of a file; raises EventsError as `read_samples`."""
    return derived_of(read_samples(path, count_tokens))
