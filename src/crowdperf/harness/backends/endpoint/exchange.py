"""One request and its answer as it comes: from pieces of a stream to tokens, and whether all of them came."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np

from crowdperf.harness.backends.endpoint.answers import AnswerError, Collector
from crowdperf.harness.backends.endpoint.client import Call
from crowdperf.harness.backends.endpoint.token_count import count_of, counted, require_length, require_text, unsent
from crowdperf.harness.text.engine import Answer, AnswerTimes, Finish, Tokens
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.logs.run_log import Json

_LONG_TEXT = 4000
"""Longer texts (characters) are tokenized in a thread, so that the loop is not blocked for more than a millisecond."""


@dataclass(slots=True)
class Counts:
    """Counts since the start. retried: resent because the server asked to wait, by status in retried_by_status.
    differing: answers whose text has another number of tokens here than the server counted, and the sum of the
    differences (differing_tokens). unsaid: answers without a number of tokens from the server. in_one_read: answers
    of several pieces that were received all at once, as from a buffering proxy. other_starts: answers whose first
    tokens are not those that were reported first. cached_tokens: of prompts, from a prefix cache. waited: requests
    that found max_in_flight reached. sent_late: requests that were sent more than 10 ms after LoadGen issued them, or
    after their time in a trace."""

    requests: int = 0
    answered: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    retried_by_status: dict[str, int] = field(default_factory=dict)
    differing: int = 0
    differing_tokens: int = 0
    unsaid: int = 0
    in_one_read: int = 0
    other_starts: int = 0
    cached_tokens: int = 0
    peak_in_flight: int = 0
    waited: int = 0
    sent_late: int = 0

    def record(self) -> dict[str, Json]:
        return dict(asdict(self))


@dataclass(frozen=True, slots=True)
class Reading:
    """The form of answers, as the probe found. has_ids: they have token ids. has_usage: they have the number of
    tokens that the server made. has_one_id: all pieces of an answer have its `id`. ends_with_done: streams end with
    [DONE]. model: the name in answers, None if they have none. is_streamed: answers come piece by piece."""

    vocabulary: Tokenizer | None
    has_ids: bool
    has_usage: bool
    has_one_id: bool
    ends_with_done: bool
    model: str | None
    is_streamed: bool = True


def _nothing(_: object) -> None:
    """Do not report."""


class Exchange:
    """One request. on_first, on_answer: receivers of the first tokens and of the answer. began_s: since when its times
    count, in s of time.monotonic()."""

    def __init__(self, reading: Reading, counts: Counts, most_tokens: int, began_s: float) -> None:
        self.on_first: Callable[[Tokens], None] = _nothing
        self.on_answer: Callable[[Answer], None] = _nothing
        self.is_reported = False
        self._reading = reading
        self._counts = counts
        self._collector = Collector(most_tokens)
        self._first: Tokens | None = None
        self._finish: Finish | None = None
        self._began_s = self._ended_s = began_s

    def call(self, path: str, body: bytes, left_s: float) -> Call:
        """Return the request for the client with the reader of its stream. left_s: until the limit of the request."""
        return Call(
            path=path, body=body, collector=self._collector, first=self._begin, last=self._end,
            timeout_s=max(left_s, 0.001), is_streamed=self._reading.is_streamed,
        )  # fmt: skip

    def explained(self, why: str) -> str:
        """Return the reason for a missing answer, and whether a part of it had come, in the same words for many
        requests."""
        came = ", after part of the answer had arrived" if self._collector.pieces else ""
        return why + came + (", and part of the response could not be read" if self._collector.skipped else "")

    def _tokens(self, text: str) -> Tokens:
        vocabulary = self._reading.vocabulary
        if self._reading.has_ids:
            return np.array(self._collector.ids, dtype=np.int32)
        if vocabulary is None:  # only their number is known
            return np.zeros(count_of(self._collector), dtype=np.int32)
        return np.array(vocabulary.encode(text, with_special=False), dtype=np.int32)

    def _begin(self) -> None:
        self._first = self._tokens(self._collector.texts[0] if self._collector.texts else "")
        if len(self._first):
            self.on_first(self._first)

    def _end(self, at_s: float) -> None:
        """Judge the answer and report it at once if that is quick."""
        collector, reading = self._collector, self._reading
        self._ended_s = at_s
        self._finish = collector.ending(reading.ends_with_done)
        if reading.model is not None and collector.model not in (None, reading.model):
            raise AnswerError(f"the server answered as another model, {collector.model!r}, not {reading.model!r}")
        if reading.has_one_id and collector.has_other_ids:
            raise AnswerError("pieces of the answer have different ids: two answers may be mixed in one stream")
        if reading.has_usage and collector.usage.completion_tokens is None:
            raise AnswerError(
                "the answer has no usage.completion_tokens, as it had before the test: it may be cut off", "cut stream"
            )
        text = collector.text()
        if len(text) <= _LONG_TEXT:
            self._report(self._checked(text), text)

    async def settle(self) -> None:
        """Report the answer where that is still to be done."""
        if not self.is_reported:
            text = self._collector.text()
            self._report(await asyncio.get_running_loop().run_in_executor(None, self._checked, text), text)

    def _checked(self, text: str) -> Tokens:
        """Return the tokens of the answer. Raises AnswerError for ids that are not its text."""
        vocabulary = self._reading.vocabulary
        if self._reading.has_ids and vocabulary is not None:  # what is split from a chat is no longer its tokens' text
            require_text(self._collector.ids, "" if self._collector.has_reasoning else text, vocabulary)
        return self._tokens(text)

    def _report(self, tokens: Tokens, text: str) -> None:
        assert self._finish is not None
        collector, counts = self._collector, self._counts
        if not len(tokens):
            raise AnswerError("the answer has no token", "empty answer")
        count = counted(collector, len(tokens))
        require_length(self._finish, count.tokens + unsent(collector), collector.most_tokens)
        counts.cached_tokens += collector.usage.cached_tokens or 0
        counts.other_starts += self._first is not None and not np.array_equal(tokens[: len(self._first)], self._first)
        counts.unsaid += count.difference is None
        counts.in_one_read += collector.pieces > 1 and len(collector.arrivals) == 1
        counts.differing += bool(count.difference)
        counts.differing_tokens += abs(count.difference or 0)
        self.is_reported = True
        self.on_answer(
            Answer(
                tokens=tokens, finish=self._finish, text=text, skipped=collector.skipped, counted=count.tokens,
                prompt_tokens=collector.usage.prompt_tokens,
                times=AnswerTimes.of_arrivals(self._began_s, collector.arrivals, self._ended_s),
            )
        )  # fmt: skip
