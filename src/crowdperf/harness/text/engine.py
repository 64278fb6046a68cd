"""What answers prompts token by token: an engine on this machine, or a server behind a URL. It knows no LoadGen, no
data set, no accuracy.

A backend of this kind (`is_text` in its record) has `backends/<name>/engine.py` with the members of EngineModule. The
harness gives requests as LoadGen issues them, in every scenario alike; the engine keeps them, works on as many at once
as it can (in-flight batching), and tells a Listener from threads of its own what became of each.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.text.request import TextRequest
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

Tokens: TypeAlias = "npt.NDArray[np.int32]"
"""Token ids, int32[n], n from 0."""

OTHER_FAILURE, LATE_FAILURE = "other", "timeout"
"""Kinds of failed requests that any engine has."""
SERVER_HINT = "check the server's log. --max_in_flight sets how many requests it gets at once"
"""The next thing to try where a server of the user failed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompt:
    """What one sample asks. tokens: as the benchmark's tokenizer makes them, its start token included where the data
    set has it. text: the same as text; messages: as a chat ({"role": ..., "content": ...}); None where the data set has
    no such form. An engine takes the form that its record says, and never tokenises again what comes as tokens.
    expected: the data set's own answer, where it has one, for stand-ins, which have nothing else to say. max_tokens: of
    its answer, None for the benchmark's. at_s: when it arrives after the first one, in a trace that is replayed.
    conversation, turn: of a conversation whose turns are sent one after the other."""

    tokens: Tokens | None = None
    text: str | None = None
    messages: tuple[Mapping[str, str], ...] | None = None
    expected: Tokens | None = None
    max_tokens: int | None = None
    at_s: float | None = None
    conversation: int | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One prompt to answer. number: the harness's own, unique in a run. issued_s: when LoadGen issued it, in seconds of
    time.monotonic(): the limit of a request counts from then. A moment in the future: when it is to be sent, in a trace
    that is replayed. None if everything is issued at once (Offline, the warm-up): the limit then counts from the
    start of work, since most of the requests wait by design."""

    number: int
    prompt: Prompt
    issued_s: float | None = None


class Finish(enum.Enum):
    """Why an answer ended; the values are those of OpenAI's API."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerTimes:
    """When an answer came, in seconds of time.monotonic(). began_s: when LoadGen issued the request, or, where all
    requests are issued at once (Offline), when work on it began. first_s: when its first piece came, None for an answer
    that came whole. ended_s: its end. gaps_s: the times between pieces. Pieces that were received together are one."""

    began_s: float
    ended_s: float
    first_s: float | None = None
    gaps_s: Sequence[float] = ()

    @classmethod
    def of_arrivals(cls, began_s: float, arrivals_s: Sequence[float], ended_s: float) -> AnswerTimes:
        """Return the times of an answer whose pieces arrived at these times, none if it came whole."""
        gaps_s = [later - earlier for earlier, later in itertools.pairwise(arrivals_s)]
        return cls(began_s=began_s, ended_s=ended_s, first_s=arrivals_s[0] if arrivals_s else None, gaps_s=gaps_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A finished answer. tokens: the new ones only; with the end token where the engine gives it. text: what the engine
    or server said, None where it gives tokens only. skipped: pieces of a stream that could not be read: such a run is
    INVALID. counted: how many of the tokens count, where that is fewer than came (a server says that it made fewer).
    prompt_tokens: of the prompt, as the server counts them. times: None if the engine does not measure them."""

    tokens: Tokens
    finish: Finish
    text: str | None = None
    skipped: int = 0
    counted: int | None = None
    prompt_tokens: int | None = None
    times: AnswerTimes | None = None


class Listener(Protocol):
    """Who is told; every call returns at once, may come from any thread, and never raises. For each request comes
    `first` once where the engine streams, and then exactly one of `done` and `failed`, from the same thread as `first`
    (LoadGen takes over what each thread told by itself, and must not see the end before the first token)."""

    def first(self, number: int, tokens: Tokens) -> None:
        """The first token (or the first few, where they come together) of a request is there, now."""

    def done(self, number: int, answer: Answer) -> None:
        """A request is answered."""

    def failed(self, number: int, why: str, kind: str = OTHER_FAILURE) -> None:
        """A request got no answer; `why` says so in words that a user can act on, `kind` in one or two words by which
        failures are counted ("status 500", "timeout"). The run goes on, and is INVALID."""

    def broken(self, error: BaseException) -> None:
        """The engine cannot go on: the run ends with this error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """What to open. sampling: the benchmark's. text: what the user decides. threads, cores: of the CPU, for engines on
    this machine. gpus: device indices, empty for device cpu. longest_prompt: tokens. folder: that of the run, where an
    engine may leave what it wrote. needs_first: whether first tokens are measured, so that whole answers are no use.
    is_server_believed: a server counts the tokens of its answers where there is no tokenizer. is_streamed: answers come
    as streams even if LoadGen measures no first tokens. is_one_at_a_time: the next request comes only after the
    answer."""

    facts: ModelFacts
    sampling: Sampling
    text: TextRequest
    precision: str
    device: str
    threads: int
    cores: tuple[int, ...]
    longest_prompt: int
    folder: Path
    probes: Sequence[Prompt] = field(default_factory=tuple)
    """A few prompts of the data set, for a probe before the run."""
    gpus: tuple[int, ...] = ()
    needs_first: bool = True
    is_server_believed: bool = False
    is_streamed: bool = False
    is_one_at_a_time: bool = False


class TextEngine(Protocol):
    """An opened engine, which has been probed: it has answered one prompt."""

    def start(self, listener: Listener) -> None:
        """Say who is told. Comes once, before the first request; again where a warm-up ends and the test begins, when
        nothing is in flight."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests; returns at once, whatever their number (13,368 in Offline), and keeps those that wait. Raises
        nothing: what goes wrong, the listener is told."""

    def record(self) -> Mapping[str, Json]:
        """Return every setting in effect, for result.json: {"max_in_flight": {"value": 8, "origin": "default"}, ...}.
        Paths, keys and host names of the user are no part of it; the URL's is `endpoint`, without user and query."""

    def versions(self) -> Mapping[str, str]:
        """Return the versions of what answers, for result.json."""

    def close(self) -> None:
        """Free everything; ends requests that are in flight without telling anybody; returns within 10 s."""


class EngineModule(Protocol):
    """The members of an `engine.py`."""

    def open_engine(self, request: EngineRequest) -> TextEngine:
        """Return the opened and probed engine; raises HarnessError naming what is wrong with model, server or
        settings."""
