"""The scripted backend: answers prompts with known tokens at a set pace.

A stand-in: its answers are the data set's own where that has some, else made of the prompt's tokens, and its speed is
that of a clock. So the whole way of a text benchmark, LoadGen, tables and submission included, can be tried without a
model. Results say that a stand-in made them, and no submission takes them.
"""

import heapq
import threading
import time
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crowdperf.harness.text.engine import Answer, EngineRequest, Finish, Listener, Prompt, Request, Tokens
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

IN_FLIGHT = 32
"""Requests that are answered at once where the request says nothing: our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When tokens come, in seconds: the first one, and each one after it. Our choice: far below the limits of every
    benchmark, and far above what a busy machine adds."""

    first_s: float = 0.004
    each_s: float = 0.0005


@dataclass(slots=True, order=True)
class _Step:
    """What is due at a moment; `has_begun`: the first token has been told."""

    due_s: float
    number: int
    tokens: Tokens
    has_begun: bool = False


def made_answer(prompt: Prompt, sampling: Sampling) -> Tokens:
    """Return the answer to a prompt: the expected one, else a number of the prompt's own tokens that differs from
    prompt to prompt and is always the same for one."""
    if prompt.expected is not None:
        return prompt.expected[: sampling.max_tokens]
    said = prompt.text or " ".join(message["content"] for message in prompt.messages or ())
    source = prompt.tokens if prompt.tokens is not None else np.frombuffer(said.encode(), np.uint8).astype(np.int32)
    least = max(2, sampling.min_tokens)
    most = max(least, sampling.max_tokens)
    length = most if sampling.is_end_ignored else least + zlib.crc32(source.tobytes()) % (most - least + 1)
    return np.resize(source if len(source) else np.zeros(1, np.int32), length).astype(np.int32)


class ScriptedEngine:
    """Tells from one thread what is due."""

    def __init__(self, sampling: Sampling, in_flight: int, pace: Pace) -> None:
        self._sampling, self._in_flight, self._pace = sampling, in_flight, pace
        self._listener: Listener | None = None
        self._waiting: deque[Request] = deque()
        self._steps: list[_Step] = []
        self._change = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="scripted")
        self._thread.start()

    def start(self, listener: Listener) -> None:
        self._listener = listener

    def submit(self, requests: Sequence[Request]) -> None:
        with self._change:
            self._waiting.extend(requests)
            self._change.notify()

    def record(self) -> Mapping[str, Json]:
        """Return the pace, and how many requests are answered at once."""
        origin = "default" if self._in_flight == IN_FLIGHT else "user"
        return {
            "max_in_flight": {"value": self._in_flight, "origin": origin},
            "ms_to_first_token": {"value": self._pace.first_s * 1000, "origin": "default"},
            "ms_per_token": {"value": self._pace.each_s * 1000, "origin": "default"},
        }

    def versions(self) -> Mapping[str, str]:
        return {}

    def close(self) -> None:
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join(timeout=10)

    def _begin(self) -> None:
        """Begin as many of the waiting requests as there is room for."""
        while self._waiting and len(self._steps) < self._in_flight:
            request = self._waiting.popleft()
            tokens = made_answer(request.prompt, self._sampling)
            due_s = time.perf_counter() + self._pace.first_s
            heapq.heappush(self._steps, _Step(due_s, request.number, tokens))

    def _next(self) -> _Step | None:
        """Return what is due now, as soon as something is; None: the engine is closed."""
        with self._change:
            while not self._is_closed:
                self._begin()
                left_s = self._steps[0].due_s - time.perf_counter() if self._steps else None
                if left_s is not None and left_s <= 0:
                    return heapq.heappop(self._steps)
                self._change.wait(left_s)
        return None

    def _run(self) -> None:
        while (step := self._next()) is not None:
            listener = self._listener
            if listener is None:
                continue
            if step.has_begun:
                is_cut = len(step.tokens) >= self._sampling.max_tokens
                listener.done(step.number, Answer(tokens=step.tokens, finish=Finish.LENGTH if is_cut else Finish.STOP))
                continue
            listener.first(step.number, step.tokens[:1])
            due_s = step.due_s + self._pace.each_s * max(0, len(step.tokens) - 1)
            with self._change:
                heapq.heappush(self._steps, _Step(due_s, step.number, step.tokens, has_begun=True))


def open_engine(request: EngineRequest) -> ScriptedEngine:
    """Return the engine; nothing of the model is read."""
    return ScriptedEngine(request.sampling, request.text.max_in_flight or IN_FLIGHT, Pace())
