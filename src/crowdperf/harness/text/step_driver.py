"""Drives an engine on this machine that works step by step: each step adds tokens to the answers that are in flight.

What computes is a Steps (backends/torch_llm, backends/openvino_genai); StepEngine makes a TextEngine of it. A thread of
its own takes waiting requests whenever a place is free (in-flight batching), steps, and tells the listener.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from crowdperf.harness.base.cores import at_cores
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import (
    LATE_FAILURE,
    Answer,
    AnswerTimes,
    EngineRequest,
    Finish,
    Listener,
    Prompt,
    Request,
    Tokens,
)
from crowdperf.harness.watch.machine import free_memory_bytes
from crowdperf.logs.run_log import Json

_CLOSE_S = 9.0
_PROBE = Prompt(tokens=np.array([1, 2, 3], dtype=np.int32))
_PROBE_STEPS = 1000
_GIB = 1 << 30
_CACHE_PART = 0.25
"""The part of free memory that keys and values may take: weights and activations come on top."""
_MAX_CACHE_GIB = 64
_PER_CORE, _MAX_IN_FLIGHT = 16, 256


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step did for one answer. tokens: the new ones. finish: why it has ended; None: it goes on. why: what went
    wrong, where it ended without an answer."""

    number: int
    tokens: Sequence[int] = ()
    finish: Finish | None = None
    why: str = ""


class Steps(Protocol):
    """What computes. One thread calls it, the one that called `enter` last."""

    def enter(self) -> None:
        """Set up the calling thread, which makes all later calls."""

    def add(self, number: int, tokens: Tokens) -> str:
        """Take a prompt; return why it cannot be answered, or an empty text."""

    def step(self) -> Sequence[Progress]:
        """Work on everything that was added; return what came of it, in any order."""

    def drop(self, number: int) -> None:
        """Forget a prompt that was added."""

    def close(self) -> None:
        """Free everything."""


def places(request: EngineRequest) -> tuple[int, str]:
    """Return how many requests are worked on at once, and who said so: the user, or 16 a thread and 256 at most (this
    project's choice: more makes a processor no faster, and each token later)."""
    if request.text.max_in_flight is not None:
        return request.text.max_in_flight, "user"
    return min(_PER_CORE * request.threads, _MAX_IN_FLIGHT), "default"


def cache_gib(request: EngineRequest) -> tuple[int, str]:
    """Return the memory for keys and values in whole GiB, and who chose it."""
    asked = request.text.kv_cache_bytes
    if asked is not None:
        return math.ceil(asked / _GIB), "user, in whole GiB"
    free = free_memory_bytes()
    if free is None:
        return 1, "default"
    return min(max(1, int(free * _CACHE_PART) // _GIB), _MAX_CACHE_GIB), "a quarter of the free memory"


def fitting(name: str, wanted: tuple[int, str], tokens: int, token_bytes: int, limit_gib: int) -> tuple[int, str]:
    """Return how many of `wanted` requests fit into the memory for keys and values, and who or what set that number.

    Each request takes a cache for `tokens` tokens. name: of the backend. Raises HarnessError where not even one fits.
    """
    each, (count, origin) = tokens * token_bytes, wanted
    possible = limit_gib * _GIB // each
    if not possible:
        needed = f"{each / _GIB:.1f} GiB of keys and values for {tokens} tokens"
        raise HarnessError(f"{name}: one prompt needs {needed}", f"there are {limit_gib}: a larger --kv_cache_gb")
    return (count, origin) if count <= possible else (possible, "memory for the KV cache")


def refusal(tokens: Tokens, longest: int, vocabulary: int) -> str:
    """Return why a model of `vocabulary` tokens cannot take a prompt; empty where it can."""
    if not 1 <= len(tokens) <= longest:
        return f"the prompt has {len(tokens)} tokens; allowed: 1 to {longest}"
    if not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
        return f"the prompt has a token that is not one of the model's {vocabulary}"
    return ""


def probe(steps: Steps, prompts: Sequence[Prompt]) -> None:
    """Answer the first prompt up to its second token; raises HarnessError where that does not work."""
    prompt = (*prompts, _PROBE)[0]
    if prompt.tokens is None:
        raise HarnessError("this engine needs prompts as tokens, and the benchmark has none")
    steps.enter()
    if why := steps.add(0, prompt.tokens):
        raise HarnessError(f"the engine cannot answer a prompt of the data set: {why}")
    count = 0
    for _ in range(_PROBE_STEPS):
        for progress in steps.step():
            count += len(progress.tokens)
            if progress.why:
                raise HarnessError(f"the engine cannot answer a prompt of the data set: {progress.why}")
            if progress.finish is not None:
                return
        if count >= 2:
            steps.drop(0)
            return
    raise HarnessError(f"the engine gave {count} tokens in {_PROBE_STEPS} steps", "give it a larger --kv_cache_gb")


@dataclass(slots=True)
class _InFlight:
    since_s: float
    tokens: list[int] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)


class StepEngine:
    """A TextEngine (crowdperf/harness/text/engine.py) of a Steps that has been probed."""

    def __init__(
        self, steps: Steps, request: EngineRequest, record: Mapping[str, Json], versions: Mapping[str, str]
    ) -> None:
        self._steps, self._record, self._versions = steps, dict(record), dict(versions)
        self._places = places(request)[0]
        self._timeout_s, self._cores = request.text.timeout_s, request.cores
        self._condition = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._working: dict[int, _InFlight] = {}
        self._listener: Listener | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="text engine", daemon=True)

    def start(self, listener: Listener) -> None:
        self._listener = listener
        if self._thread.ident is None:
            self._thread.start()

    def submit(self, requests: Sequence[Request]) -> None:
        with self._condition:
            self._waiting.extend(requests)
            self._condition.notify()

    def record(self) -> Mapping[str, Json]:
        return self._record

    def versions(self) -> Mapping[str, str]:
        return self._versions

    def close(self) -> None:
        """End the thread after its step, and free everything; where a step takes longer than 9 s it is left alone."""
        with self._condition:
            self._is_closing = True
            self._waiting.clear()
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._steps.close()

    def _serve(self) -> None:
        try:
            with at_cores(self._cores):
                self._steps.enter()
                while (taken := self._take()) is not None:
                    for request in taken:
                        self._add(request)
                    for progress in self._steps.step():
                        self._tell(progress)
                    if self._timeout_s is not None:
                        self._drop_late(time.monotonic() - self._timeout_s)
        except Exception as error:  # whatever a library raises: the listener ends the run with it
            if not self._is_closing:
                self._told.broken(error)

    @property
    def _told(self) -> Listener:
        assert self._listener is not None
        return self._listener

    def _take(self) -> list[Request] | None:
        """Wait until there is work; return the requests that find a place, None at the end."""
        with self._condition:
            while not (self._is_closing or self._waiting or self._working):
                self._condition.wait()
            if self._is_closing:
                return None
            free = self._places - len(self._working)
            return [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]

    def _add(self, request: Request) -> None:
        tokens = request.prompt.tokens
        why = "this engine needs prompts as tokens" if tokens is None else self._steps.add(request.number, tokens)
        if why:
            self._told.failed(request.number, why)
        else:
            self._working[request.number] = _InFlight(request.issued_s or time.monotonic())

    def _tell(self, progress: Progress) -> None:
        number, flight = progress.number, self._working.get(progress.number)
        if flight is None:  # it was dropped
            return
        if progress.tokens and not flight.tokens:
            self._told.first(number, np.array(progress.tokens, dtype=np.int32))
        flight.tokens += progress.tokens
        now_s = time.monotonic()
        if progress.tokens:
            flight.arrivals.append(now_s)
        if progress.why:
            del self._working[number]
            self._told.failed(number, progress.why)
        elif progress.finish is not None:
            del self._working[number]
            tokens, times = (
                np.array(flight.tokens, dtype=np.int32),
                AnswerTimes.of_arrivals(flight.since_s, flight.arrivals, now_s),
            )
            self._told.done(number, Answer(tokens=tokens, finish=progress.finish, times=times))

    def _drop_late(self, latest_s: float) -> None:
        """Fail what is older than the limit: requests that are worked on, and those that wait for a place."""
        limit = f"{self._timeout_s:g} s"
        for number in [number for number, flight in self._working.items() if flight.since_s < latest_s]:
            del self._working[number]
            self._steps.drop(number)
            why = f"no complete answer within {limit}: a longer --request_timeout_s"
            self._told.failed(number, why, LATE_FAILURE)
        late = []
        with self._condition:  # they wait in the order of their issue
            while self._waiting and (self._waiting[0].issued_s or latest_s) < latest_s:
                late.append(self._waiting.popleft())
        for request in late:
            why = f"waited longer than {limit} for one of the {self._places} places: a lower rate of requests"
            self._told.failed(request.number, why, LATE_FAILURE)
