"""Between LoadGen and an engine: LoadGen's samples become requests, and the engine's reports become LoadGen's
responses.

    LoadGen issues -> Request -> engine        engine reports -> FirstTokenComplete, QuerySamplesComplete -> LoadGen

One way for all scenarios. Of LoadGen (6.0.17, loadgen/logging.cc): outside Offline a benchmark with token latencies
gets the first token of each sample exactly once before its end, else SingleStream crashes. So a first token that the
engine did not report is reported here, just before the end, and the run is INVALID. LoadGen merges the log of each
thread separately, so the first token and the end of a request must come from one thread. A request without an answer is
completed with 0 tokens: LoadGen counts an error, and ends. Response bytes are read while `complete` runs.

The first end token ends an answer for every engine: tokens after it (padding, or a server that continues) are neither
counted nor logged, and the tally has their number.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.runner.dialogues import Dialogues
from crowdperf.harness.runner.qsl import LoadedSamples
from crowdperf.harness.text.engine import OTHER_FAILURE, Answer, Finish, Prompt, Request, TextEngine, Tokens
from crowdperf.harness.text.tally import Ended, Tally, length_of
from crowdperf.harness.watch.progress import Counts


class RawSamples(Protocol):
    """A data set, as far as prompts are made of it."""

    @property
    def count(self) -> int:
        """Number of samples."""

    def load(self, indices: Sequence[int]) -> Any:
        """Return the raw samples of `indices`, in that order."""


class PromptLibrary:
    """The prompts of the samples in memory."""

    def __init__(self, dataset: RawSamples, prompts_of: Callable[[Any], Sequence[Prompt]]) -> None:
        self._dataset, self._prompts_of = dataset, prompts_of
        self.prompts: LoadedSamples[Prompt] = LoadedSamples()

    @property
    def count(self) -> int:
        return self._dataset.count

    def load(self, indices: Sequence[int]) -> None:
        self.unload(indices)
        order = sorted(indices)
        prompts = self._prompts_of(self._dataset.load(order))
        if len(prompts) != len(order):
            raise HarnessError(f"{len(order)} samples gave {len(prompts)} prompts")
        self.prompts.update(zip(order, prompts, strict=True))

    def unload(self, indices: Sequence[int]) -> None:
        self.prompts.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWork:
    """The answering side of a test. response_of: converts an answer to the array that LoadGen logs. has_first:
    whether LoadGen gets first tokens. ends: token ids that end an answer, empty if answers continue after them.
    padding: the token id that fills answers up after their end. is_paced: LoadGen issues requests over time (all
    scenarios but Offline), so that the limit of a request counts from its issue. replayed_s: the length of the trace
    whose arrivals are replayed, None without a trace. dialogues: hold turns back, None without conversations."""

    engine: TextEngine
    library: PromptLibrary
    response_of: Callable[[Answer], Array]
    sink: ResponseSink
    has_first: bool
    ends: Collection[int] = ()
    padding: int | None = None
    is_paced: bool = False
    replayed_s: float | None = None
    dialogues: Dialogues | None = None
    failures: Failures = field(default_factory=Failures)
    counts: Counts = field(default_factory=Counts)
    tally: Tally = field(default_factory=Tally)


class _Flight:
    """A request that the engine has. identifier: LoadGen's, of the sample. began_with: tokens that came first.
    prompt_tokens: of the prompt, None if it is not tokens."""

    __slots__ = ("began_with", "has_first", "identifier", "prompt_tokens")

    def __init__(self, identifier: int) -> None:
        self.identifier = identifier
        self.prompt_tokens: int | None = None
        self.has_first = False
        self.began_with = 0


def _tokens_of(prompts: Mapping[int, Prompt], indices: Sequence[int]) -> tuple[int, int]:
    """Return the tokens of all prompts, and the number of prompts that are not tokens."""
    found = [prompts[index].tokens for index in indices]
    given = [len(tokens) for tokens in found if tokens is not None]
    return sum(given), len(found) - len(given)


def up_to_end(tokens: Tokens, ends: Collection[int]) -> Tokens:
    """Return the tokens up to and with the first one of `ends`, or all of them if none of `ends` occurs."""
    places = [int(found[0]) for end in ends if len(found := np.flatnonzero(tokens == end))]
    return tokens[: min(places) + 1] if places else tokens


def _ended(answer: Answer, ends: Collection[int], padding: int | None) -> Answer:
    """Return the answer without tokens or padding after its end, where it stopped."""
    tokens = up_to_end(answer.tokens, ends)
    if padding is not None and padding not in ends and len(tokens) and tokens[-1] == padding:
        said = np.flatnonzero(tokens != padding)
        tokens = tokens[: int(said[-1]) + 1 if len(said) else 0]
    if len(tokens) == len(answer.tokens):
        return answer
    counted = None if answer.counted is None else min(answer.counted, len(tokens))
    return replace(answer, tokens=tokens, counted=counted, finish=Finish.STOP)


class TextSut:
    """LoadGen's SUT and the engine's listener."""

    def __init__(self, work: TextWork) -> None:
        self._work = work
        self._flights: dict[int, _Flight] = {}
        self._numbers = count()
        self._rounds = Counter[int]()
        self._counting = threading.Lock()

    def issue(self, identifiers: Sequence[int], indices: Sequence[int]) -> None:
        """Give the samples of a query to the engine. Called by LoadGen. Does not raise."""
        work = self._work
        prompts = work.library.prompts
        if not work.is_paced:  # Offline's one query
            work.counts.expected = max(work.counts.expected, len(indices))
        work.counts.asked += len(identifiers)
        try:
            # Every sample first has its flight, so that whatever goes wrong below leaves none without an answer.
            numbers = {next(self._numbers): identifier for identifier in identifiers}
            self._flights.update({number: _Flight(identifier) for number, identifier in numbers.items()})
            issued_s = time.monotonic() if work.is_paced or work.replayed_s is not None else None
            requests = [
                Request(number=number, prompt=prompts[index], issued_s=self._due_s(issued_s, index, prompts[index]))
                for number, index in zip(numbers, indices, strict=True)
            ]
            for request in requests:
                tokens = request.prompt.tokens
                self._flights[request.number].prompt_tokens = None if tokens is None else len(tokens)
            work.tally.issue(len(requests), *_tokens_of(prompts, indices))
            if not work.failures.is_set:
                work.engine.submit(requests if work.dialogues is None else work.dialogues.begin(requests))
        except BaseException as error:  # whatever it is must not reach LoadGen
            work.failures.record(error)
        if work.failures.is_set:
            self._end_all()

    def _due_s(self, issued_s: float | None, index: int, prompt: Prompt) -> float | None:
        """Return when a request counts as issued: in a trace that is replayed, at its own time. A sample that LoadGen
        issues once more comes in another round of the trace."""
        replayed_s = self._work.replayed_s
        if issued_s is None or replayed_s is None or prompt.at_s is None:
            return issued_s
        round_number = self._rounds[index]
        self._rounds[index] += 1
        return issued_s + prompt.at_s + round_number * replayed_s

    def first(self, number: int, tokens: Tokens) -> None:
        """Report a first token to LoadGen, with all tokens that came with it."""
        flight = self._flights.get(number)
        if flight is None or flight.has_first:
            self._work.tally.tell_unasked()
            return
        with self._counting:
            self._work.counts.begun += 1
        self._give_first(flight, tokens)

    def done(self, number: int, answer: Answer) -> None:
        """Report an answer to LoadGen."""
        work, flight = self._work, self._flights.pop(number, None)
        if flight is None:
            work.tally.tell_unasked()
            return
        try:
            came = len(answer.tokens)
            answer = _ended(answer, work.ends, work.padding)
            is_late = not flight.has_first
            if is_late:
                self._give_first(flight, answer.tokens[:1])
            response = np.ascontiguousarray(work.response_of(answer))
            ended = Ended(
                began_with=flight.began_with,
                is_first_late=is_late and work.has_first,
                is_whole_at_once=work.has_first and 1 < came <= flight.began_with,
                behind_end=came - len(answer.tokens),
                prompt_tokens=answer.prompt_tokens if flight.prompt_tokens is None else flight.prompt_tokens,
            )
            work.tally.complete(answer, ended)
            address = response.__array_interface__["data"][0]
            made = work.sink.make_response(flight.identifier, address, response.nbytes, length_of(answer))
            work.sink.complete([made])
            with self._counting:
                work.counts.slots[0] += 1
            if work.dialogues is not None and (following := work.dialogues.answered(number, answer.text or "")):
                work.engine.submit(following)
        except BaseException as error:  # LoadGen may get no answer; the watchdog ends the run
            work.failures.record(error)

    def failed(self, number: int, why: str, kind: str = OTHER_FAILURE) -> None:
        """Report to LoadGen that a request has no answer."""
        flight = self._flights.pop(number, None)
        if flight is None:
            self._work.tally.tell_unasked()
            return
        self._end(flight, why, kind)
        if (dialogues := self._work.dialogues) is None:
            return
        unsent, begun = dialogues.failed(number)
        for following in unsent:
            if (waiting := self._flights.pop(following, None)) is not None:
                self._end(waiting, "not sent: an earlier turn of its conversation got no answer", "not sent")
        if begun:
            self._work.engine.submit(begun)

    def broken(self, error: BaseException) -> None:
        """End the run with `error`: everything that is in flight, and what LoadGen still asks, gets no answer."""
        self._work.failures.record(error)
        self._end_all()

    def _give_first(self, flight: _Flight, tokens: Tokens) -> None:
        flight.has_first, flight.began_with = True, len(tokens)
        work = self._work
        if not work.has_first:
            return
        try:
            data = np.ascontiguousarray(up_to_end(tokens, work.ends), dtype=np.int32)
            address = data.__array_interface__["data"][0]
            work.sink.first([work.sink.make_response(flight.identifier, address, data.nbytes)])
        except BaseException as error:
            work.failures.record(error)

    def _end(self, flight: _Flight, why: str, kind: str) -> None:
        work = self._work
        work.tally.fail(why, kind)
        try:
            if not flight.has_first:
                self._give_first(flight, np.empty(0, dtype=np.int32))
            work.sink.complete([work.sink.make_response(flight.identifier, 0, 0, 0)])
            with self._counting:
                work.counts.slots[0] += 1
        except BaseException as error:
            work.failures.record(error)

    def _end_all(self) -> None:
        """Give LoadGen no answer for everything in flight: the run has failed."""
        while self._flights:
            with contextlib.suppress(KeyError):
                self._end(self._flights.popitem()[1], "the run had failed", "not sent")
