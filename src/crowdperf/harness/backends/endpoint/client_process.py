"""One of several client processes: sends the requests that come over a socket, and returns what became of them.

    python3 -m crowdperf.harness.backends.endpoint.client_process FD

The process that started it has the other end of the socket `FD` (`client_fleet.py`). It ends when that end is closed,
so also when that process is killed. Messages are marshaled lists behind their length, and one carries all that
happened since the last one. Times are of time.monotonic(), which is one clock for all processes of a machine
(CLOCK_MONOTONIC, clock_gettime(2)).
"""

import asyncio
import marshal
import os
import pickle
import signal
import socket
import struct
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.client import Client
from crowdperf.harness.backends.endpoint.conversation import Conversations
from crowdperf.harness.backends.endpoint.probe import Probed
from crowdperf.harness.backends.endpoint.request_body import CHAT, TEXT, TOKENS
from crowdperf.harness.backends.endpoint.settings import ClientSettings
from crowdperf.harness.backends.endpoint.stream_loop import new_loop
from crowdperf.harness.base.errors import hint_of
from crowdperf.harness.text.engine import OTHER_FAILURE, Answer, AnswerTimes, Finish, Prompt, Request, Tokens
from crowdperf.harness.text.request import Endpoint
from crowdperf.harness.text.tokenizer import open_tokenizer

SET_UP, START, ASK = "set up", "start", "ask"
"""Messages to a client process: everything that it needs, counts at zero, requests."""
FIRST, DONE, FAILED, BROKEN = range(4)
"""The news of a request, or of the server (BROKEN)."""
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """For a client process. tokenizer: the folder with the tokenizer, None without one. The API key is in the
    environment variable that `endpoint` names."""

    endpoint: Endpoint
    settings: ClientSettings
    probed: Probed
    tokenizer: Path | None


def message(content: Sequence[Any]) -> bytes:
    """Return the bytes of a message. content: of None, numbers, texts, bytes, lists, tuples and dicts."""
    body = marshal.dumps(list(content))
    return _LENGTH.pack(len(body)) + body


class Messages:
    """The messages in bytes that come in pieces. An incomplete one at the end of a killed process is never read."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, received: bytes) -> Iterator[list[Any]]:
        """Yield the messages that `received` completes."""
        self._rest += received
        while len(self._rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                return
            content = marshal.loads(bytes(self._rest[_LENGTH.size : end]))
            del self._rest[:end]
            yield content


def written(request: Request, form: str) -> tuple[Any, ...]:
    """Return a request as a message has it, with the form of its prompt that is sent."""
    prompt = request.prompt
    tokens = None if form != TOKENS or prompt.tokens is None else prompt.tokens.astype(np.int32).tobytes()
    messages = None if form != CHAT or prompt.messages is None else [dict(one) for one in prompt.messages]
    text = prompt.text if form == TEXT else None
    return request.number, request.issued_s, tokens, text, messages, prompt.max_tokens


def read(values: tuple[Any, ...]) -> Request:
    """Return the request that `written` wrote."""
    number, issued_s, tokens, text, messages, most = values
    ids = None if tokens is None else np.frombuffer(tokens, np.int32)
    chat = None if messages is None else tuple(messages)
    prompt = Prompt(tokens=ids, text=text, messages=chat, max_tokens=most)
    return Request(number=number, prompt=prompt, issued_s=issued_s)


def written_answer(answer: Answer) -> tuple[Any, ...]:
    """Return an answer as a message has it. Gaps are kept as 4 bytes each, as in the timings of a run."""
    times = answer.times
    return (
        answer.tokens.tobytes(), answer.finish.value, answer.text, answer.skipped, answer.counted, answer.prompt_tokens,
        times and (times.began_s, times.ended_s, times.first_s, array("f", times.gaps_s).tobytes()),
    )  # fmt: skip


def read_answer(values: tuple[Any, ...]) -> Answer:
    """Return the answer that `written_answer` wrote."""
    tokens, finish, text, skipped, counted, prompt_tokens, told = values
    times = None
    if told is not None:
        began_s, ended_s, first_s, gaps = told
        times = AnswerTimes(began_s=began_s, ended_s=ended_s, first_s=first_s, gaps_s=array("f", gaps))
    return Answer(
        tokens=np.frombuffer(tokens, np.int32), finish=Finish(finish), text=text, skipped=skipped, counted=counted,
        prompt_tokens=prompt_tokens, times=times,
    )  # fmt: skip


class _Teller:
    """The listener of a client process: what happens in one turn of the loop becomes one message."""

    def __init__(self, send: Callable[[list[Any]], None]) -> None:
        self._send = send
        self._told: list[Any] = []

    def _tell(self, *values: Any) -> None:
        if not self._told:
            asyncio.get_running_loop().call_soon(self._flush)
        self._told.append(values)

    def _flush(self) -> None:
        told, self._told = self._told, []
        self._send(told)

    def first(self, number: int, tokens: Tokens) -> None:
        self._tell(FIRST, number, time.monotonic(), tokens.tobytes())

    def done(self, number: int, answer: Answer) -> None:
        self._tell(DONE, number, time.monotonic(), written_answer(answer))

    def failed(self, number: int, why: str, kind: str = OTHER_FAILURE) -> None:
        self._tell(FAILED, number, time.monotonic(), (why, kind))

    def broken(self, error: BaseException) -> None:
        self._tell(BROKEN, -1, time.monotonic(), (str(error) or repr(error), hint_of(error)))


class _Port(asyncio.Protocol):
    """The client process's end of the socket."""

    def __init__(self) -> None:
        self._messages = Messages()
        self._conversations: Conversations | None = None
        self._began_cpu_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        os._exit(0)  # nothing is told any more, and nothing is kept

    def data_received(self, data: bytes) -> None:
        try:
            for kind, content in self._messages.feed(data):
                self._take(kind, content)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _take(self, kind: str, content: Any) -> None:
        if kind == ASK:
            assert self._conversations is not None
            self._conversations.take([read(one) for one in content])
        elif kind == START:
            assert self._conversations is not None
            self._conversations.start(_Teller(self._tell))
            self._began_cpu_s = time.thread_time()
        else:
            asyncio.get_running_loop().create_task(self._set_up(pickle.loads(content)))

    async def _set_up(self, given: SetUp) -> None:
        settings = given.settings
        try:
            address = parse_address(given.endpoint, os.environ)
            client = Client(address, settings.timeout_s, settings.stall_s, settings.most_left_open)
            vocabulary = None if given.tokenizer is None else open_tokenizer(given.tokenizer, is_cleaned=False)
            await client.open()
        except Exception:  # nobody waits for this task, but the process that started this one does
            traceback.print_exc()
            os._exit(1)
        self._conversations = Conversations(client, given.probed, settings, vocabulary)
        self._tell([])

    def _tell(self, told: list[Any]) -> None:
        """Send what happened, the times of the first request and the last answer, the CPU time since the start (s),
        and the counts."""
        run = self._conversations
        assert run is not None
        used_s = time.thread_time() - self._began_cpu_s
        self._transport.write(message([told, run.began_s, run.ended_s, used_s, run.record()]))


def main(words: Sequence[str]) -> None:
    """Serve the socket until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C ends the process that started this one, and it this one
    loop = new_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(loop.create_unix_connection(_Port, sock=socket.socket(fileno=int(words[0]))))
    loop.run_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
