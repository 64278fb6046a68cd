"""One request and its answer as it comes: from pieces of a stream to tokens, and whether all of them came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from mlperf_results.logs import Json

from harness.backends.endpoint.answers import AnswerError, Collector
from harness.backends.endpoint.client import Call
from harness.text.engine import Answer, Finish, Tokens
from harness.text.tokenizer import Tokenizer

_LONG_TEXT = 4000
"""Longer texts (characters) are tokenized in a thread, so that the loop is not held up by more than a millisecond."""
_SHORT_BY, _SHORT_TOKENS = 0.1, 4
"""Text that is tokenized again may have fewer tokens than the server made (an end token; words made of other parts):
by up to a tenth, or four. More are missing. This project's choice."""


@dataclass(slots=True)
class Counts:
    """What happened since the start. retried: sent again because the server asked to wait; differing: answers whose
    text has another number of tokens here than the server counted, and by how many in all (differing_tokens);
    other_starts: answers whose first tokens are not those that were told first; cached_tokens: of prompts, taken from a
    prefix cache; waited: requests that found max_in_flight reached."""

    requests: int = 0
    answered: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    differing: int = 0
    differing_tokens: int = 0
    other_starts: int = 0
    cached_tokens: int = 0
    peak_in_flight: int = 0
    waited: int = 0

    def record(self) -> dict[str, Json]:
        """Return the counts as JSON."""
        return dict(asdict(self))


@dataclass(frozen=True, slots=True)
class Reading:
    """How answers are read, as the probe found. has_ids: they come with token ids. ends_with_done: streams end with
    [DONE]. model: the name in answers, None where they have none."""

    vocabulary: Tokenizer | None
    has_ids: bool
    ends_with_done: bool
    model: str | None


def _nothing(_: object) -> None:
    """Tell nobody."""


class Exchange:
    """One request. on_first, on_answer: who is told of the first tokens and of the answer."""

    def __init__(self, reading: Reading, counts: Counts, most_tokens: int) -> None:
        self.on_first: Callable[[Tokens], None] = _nothing
        self.on_answer: Callable[[Answer], None] = _nothing
        self.is_reported = False
        self._reading = reading
        self._counts = counts
        self._collector = Collector(most_tokens)
        self._first: Tokens | None = None
        self._finish: Finish | None = None

    def call(self, path: str, body: bytes, left_s: float) -> Call:
        """Return what the client sends and who reads the stream. left_s: until the limit of the request."""
        return Call(
            path=path, body=body, collector=self._collector, first=self._begin, last=self._end,
            timeout_s=max(left_s, 0.001),
        )  # fmt: skip

    def explained(self, why: str) -> str:
        """Return why there is no answer, and whether a part of it had come; in the same words for many requests."""
        came = "; part of the answer had come" if self._collector.pieces else ""
        return why + came + ("; some of what came could not be read" if self._collector.skipped else "")

    def _tokens(self, text: str) -> Tokens:
        vocabulary = self._reading.vocabulary
        if self._reading.has_ids or vocabulary is None:
            return np.array(self._collector.ids, dtype=np.int32)
        return np.array(vocabulary.encode(text, with_special=False), dtype=np.int32)

    def _begin(self) -> None:
        """Tell the first tokens."""
        self._first = self._tokens(self._collector.texts[0] if self._collector.texts else "")
        if len(self._first):
            self.on_first(self._first)

    def _end(self) -> None:
        """Judge the answer and report it at once, where that takes no time."""
        collector, reading = self._collector, self._reading
        self._finish = collector.ending(reading.ends_with_done)
        if reading.model is not None and collector.model not in (None, reading.model):
            raise AnswerError(f"the server answered as another model, {collector.model!r}, not {reading.model!r}")
        text = collector.text()
        if reading.has_ids or len(text) <= _LONG_TEXT:
            self._report(self._tokens(text), text)

    async def settle(self) -> None:
        """Report the answer where that is still to be done."""
        if not self.is_reported:
            text = self._collector.text()
            self._report(await asyncio.get_running_loop().run_in_executor(None, self._tokens, text), text)

    def _report(self, tokens: Tokens, text: str) -> None:
        assert self._finish is not None
        if not len(tokens):
            raise AnswerError("the answer has no token")
        self._compare(tokens)
        self.is_reported = True
        self.on_answer(Answer(tokens=tokens, finish=self._finish, text=text, skipped=self._collector.skipped))

    def _compare(self, tokens: Tokens) -> None:
        """Compare the tokens that came with what the server counted; raises AnswerError where some are missing."""
        said, count = self._collector.usage.completion_tokens, len(tokens)
        self._counts.cached_tokens += self._collector.usage.cached_tokens or 0
        if self._first is not None and not np.array_equal(tokens[: len(self._first)], self._first):
            self._counts.other_starts += 1
        if said is None or said == count:
            return
        missing = said - count
        may_miss = 0 if self._reading.has_ids else max(_SHORT_TOKENS, int(_SHORT_BY * said))
        if missing > may_miss or self._reading.has_ids:
            raise AnswerError(f"the server says that it made {said} tokens (usage.completion_tokens), but {count} came")
        self._counts.differing += 1
        self._counts.differing_tokens += abs(missing)
