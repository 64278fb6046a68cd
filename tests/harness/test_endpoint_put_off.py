"""Parts of a steady stream are read some at once, and tell the same as those read one by one: tokens, times, errors.
Over a socket they are received in the loop's selector."""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from crowdperf.harness.backends.endpoint import connection as connection_module
from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.answers import Collector
from crowdperf.harness.backends.endpoint.client import Arrival, Call, Client, Flight
from crowdperf.harness.backends.endpoint.connection import Connection
from crowdperf.harness.backends.endpoint.stream_loop import StreamLoop
from crowdperf.harness.text.request import Endpoint

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDS_WITH_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
DONE, END = b"data: [DONE]\n\n", b"0\r\n\r\n"
FINISH = b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\n'
ERROR = b'data: {"error": {"message": "out of memory"}}\n\n'
MOST_TOKENS = 90


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def event(number: int, text: str = " w") -> bytes:
    return b'data: {"choices": [{"text": "%s%d", "finish_reason": null}]}\n\n' % (text.encode(), number)


def words(count: int, text: str = " w") -> list[bytes]:
    return [chunk(event(number, text)) for number in range(count)]


def with_ids(count: int, *, is_upper: bool = False) -> list[bytes]:
    """Events with a token id each, some of them without text, with escapes, broken, or of another shape."""
    texts = {11: b"", 13: b"\\n", 17: b"\xc3", 19: b"\xc3\xa9", 23: b"\t", 29: b'"'}
    parts = []
    for number in range(count):
        content = b'data: {"choices": [{"text": "%s", "token_ids": [%d], "finish_reason": null}], "usage": null}\n\n'
        one = chunk(content % (texts.get(number, b" w%d" % number), 10**number if number < 11 else number))
        parts.append(one[:2].upper() + one[2:] if is_upper else one)
    return parts


def with_returns(parts: list[bytes]) -> list[bytes]:
    """The same chunks with lines that end with CR LF."""
    contents = [part.partition(b"\r\n")[2].removesuffix(b"\r\n") for part in parts]
    return [chunk(content.replace(b"\n", b"\r\n")) for content in contents]


def in_halves(parts: list[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield part[: len(part) // 2]
        yield part[len(part) // 2 :]


class InMemory:
    """Gives parts to a connection, without a socket."""

    def __init__(self, connection: Connection) -> None:
        aborts = list[bool]()
        sent = SimpleNamespace(write=lambda _: None, abort=lambda: aborts.append(True), is_closing=lambda: bool(aborts))
        connection.connection_made(sent)  # type: ignore[arg-type]
        self._connection = connection

    async def send(self, part: bytes) -> None:
        self._connection.data_received(part)

    async def close(self) -> None:
        self._connection.connection_lost(None)


class OverSocket:
    """Sends parts to a connection, each of them when the one before it was received. most_steady: streams that were
    received in the loop's selector at once."""

    most_steady = 0

    def __init__(self, other_end: socket.socket, loop: StreamLoop) -> None:
        self._other_end, self._loop = other_end, loop

    async def send(self, part: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the client closed it
            self._other_end.sendall(part)
        await self._turns()

    async def close(self) -> None:
        self._other_end.close()
        await self._turns()

    async def _turns(self) -> None:
        for _ in range(4):
            OverSocket.most_steady = max(self.most_steady, len(self._loop.streams))
            await asyncio.sleep(0)


async def sender(connection: Connection) -> InMemory | OverSocket:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, StreamLoop):
        return InMemory(connection)
    own_end, other_end = socket.socketpair()
    await loop.create_connection(lambda: connection, sock=own_end)
    return OverSocket(other_end, loop)


def told(
    reads: list[bytes], *, is_lost: bool = False, checked_at: int | None = None, late_at: int | None = None
) -> dict[str, Any]:
    """What a request learns from parts that come at 1, 2, 3 s. checked_at: after so many of them nothing comes for
    long, and the watch looks. late_at: the watch looks right after so many of them, when the time is over."""

    async def story() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        client = Client(parse_address(Endpoint(url="http://127.0.0.1:9/v1"), {}), 60.0, 9.0)
        collector, ends = Collector(MOST_TOKENS), list[float]()
        call = Call(path="/completions", body=b"", collector=collector, first=lambda: None, last=ends.append)
        connection = Connection(client.pool)
        flight = Flight(loop.create_task(asyncio.sleep(0)), (late_at or 1e9) + 0.1, connection)
        client.in_flight.add(flight)
        arrival = Arrival(client, flight, call.most_bytes, call)
        server = await sender(connection)
        connection.send(b"", arrival)
        for place, part in enumerate(reads, start=1):
            clock.now_s = float(place)
            await server.send(part)
            if place == checked_at:
                connection.heard_since(place - 0.5)
                assert not connection.heard_since(place + 0.5)
                break
            if place == late_at:
                client.end_late_ones(place + 0.2, 1.0)
                break
        else:
            clock.now_s = len(reads) + 1.0
            if is_lost:
                await server.close()
        is_done, is_closed = arrival.done.done(), not connection.is_open
        error = arrival.done.exception() if is_done else None
        found = {**asdict(collector), "ends": ends, "error": repr(error), "is_done": is_done, "why": flight.why}
        connection.abort()
        await asyncio.sleep(0)
        assert not getattr(loop, "streams", ())
        return {**found, "is_closed": is_closed}

    loop = clock.new_loop()
    try:
        result: dict[str, Any] = loop.run_until_complete(story())
    finally:
        loop.close()
    return result


clock = SimpleNamespace(now_s=0.0, new_loop=asyncio.new_event_loop)


@pytest.fixture(autouse=True)
def _times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(clock, "new_loop", asyncio.new_event_loop)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "an ordinary answer": lambda: told([HEAD, *words(60), chunk(FINISH), chunk(DONE), END]),
    "all ends in one part": lambda: told([HEAD, *words(20), chunk(FINISH) + chunk(DONE) + END]),
    "the response stays open": lambda: told([HEAD, *words(20), chunk(FINISH), chunk(DONE), chunk(b": ping\n\n")]),
    "without [DONE]": lambda: told([HEAD, *words(20), chunk(FINISH), END]),
    "[DONE] in two parts": lambda: told([HEAD, *words(20), chunk(FINISH), *in_halves([chunk(DONE)])]),
    "events in two parts": lambda: told([HEAD, *in_halves([*words(20), chunk(FINISH), chunk(DONE)]), END]),
    "several in a part": lambda: told([HEAD, *words(9), b"".join(words(9)), *words(9), chunk(FINISH), chunk(DONE)]),
    "[DONE] as text": lambda: told([HEAD, *words(40, " [DONE]"), chunk(FINISH), chunk(DONE), END]),
    "events that cannot be read": lambda: told([HEAD, *words(9), chunk(b"data: {\n\n"), *words(9), chunk(DONE)]),
    "an error among them": lambda: told([HEAD, *words(9), chunk(ERROR), *words(50), chunk(DONE), END]),
    "an error as the end": lambda: told([HEAD, *words(9), chunk(ERROR), END]),
    "an error, then silence": lambda: told([HEAD, *words(9), chunk(ERROR)], checked_at=11),
    "too many tokens": lambda: told([HEAD, *words(3 * MOST_TOKENS)]),
    "cut off": lambda: told([HEAD, *words(20)], is_lost=True),
    "until the connection ends": lambda: told(
        [ENDS_WITH_CLOSE, *(event(one) for one in range(20)), FINISH, DONE], is_lost=True
    ),
    "unasked parts behind the answer": lambda: told([HEAD, *words(20), chunk(FINISH), END, *words(2)]),
    "ids": lambda: told([HEAD, *with_ids(60), chunk(FINISH), chunk(DONE), END]),
    "ids, sizes in large letters": lambda: told([HEAD, *with_ids(60, is_upper=True), chunk(FINISH), chunk(DONE), END]),
    "too many ids": lambda: told([HEAD, *with_ids(2 * MOST_TOKENS)]),
    "lines with CR LF": lambda: told([HEAD, *with_returns([*with_ids(60), chunk(FINISH), chunk(DONE)]), END]),
    "CR LF in between": lambda: told([HEAD, *words(20), *with_returns(words(20)), *words(20), chunk(DONE), END]),
    "wrong sizes": lambda: told([HEAD, *words(20), b"fff" + words(1)[0], *words(20)], is_lost=True),
    "a size that is too small": lambda: told([HEAD, *words(20), b"2" + words(1)[0][1:], *words(20)]),
    "sizes with zeros and more": lambda: told(
        [HEAD, *words(9), *(b"00" + one for one in words(9)), *words(9), chunk(DONE), END]
    ),
    "other events among them": lambda: told(
        [HEAD, *words(9), chunk(b": ping\n\n"), *words(9), chunk(b"x: 1\n\n"), *words(9), chunk(DONE), END]
    ),
    "half an event in a chunk": lambda: told([HEAD, *words(9), chunk(b"data: 1"), *words(9), *words(9), chunk(DONE)]),
    "a gateway's comment before all": lambda: told([HEAD, chunk(b": hello\n\n"), *words(30), chunk(DONE), END]),
    "late": lambda: told([HEAD, *words(20)], late_at=20),
    "late, behind an error": lambda: told([HEAD, *words(9), chunk(ERROR)], late_at=11),
    "late, before the end": lambda: told([HEAD, *words(9), chunk(FINISH), chunk(DONE)], late_at=12),
    "not HTTP behind the head": lambda: told([HEAD, *words(20), b"what\n\n\r\n", END]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_parts_that_are_put_off_tell_what_they_tell_one_by_one(
    case: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = case()
    monkeypatch.setattr(clock, "new_loop", StreamLoop)
    assert case() == together
    monkeypatch.setattr(connection_module, "_MOST_PUT_OFF", 0)
    one_by_one = case()
    monkeypatch.setattr(clock, "new_loop", asyncio.new_event_loop)
    assert together == one_by_one == case()
    assert together["pieces"] >= 9


@pytest.mark.parametrize(("case", "most"), [("an ordinary answer", 1), ("lines with CR LF", 1), ("too few", 0)])
def test_only_steady_streams_are_received_in_the_selector(
    case: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "new_loop", StreamLoop)
    OverSocket.most_steady = 0
    CASES.get(case, lambda: told([HEAD, *words(4)]))()
    assert OverSocket.most_steady == most


def odd_parts(chance: random.Random) -> list[bytes]:
    """A stream of mostly alike events, some of them damaged, and cut and framed in other ways."""
    ids, parts = chance.random() < 0.5, [HEAD]
    for one in (with_ids if ids else words)(chance.randrange(20, 70)):
        kind, place = chance.random(), chance.randrange(len(one))
        if kind < 0.02:
            parts += [one[:place], one[place:]]
        elif kind < 0.04:
            parts.append(one + chance.choice([one, chunk(b": ping\n\n"), chunk(b"event: other\ndata: 1\n\n")]))
        elif kind < 0.06:
            parts += with_returns([one])
        elif kind < 0.08:
            other = chance.choice([b"", b'"', b"\\\\", b"]", b"0", b"\xff", b"\n"])
            content = one.partition(b"\r\n")[2][:-2]
            place = chance.randrange(len(content) - 2)
            parts.append(chunk(content[:place] + other + content[place + chance.randrange(2) :]))
        else:
            parts.append(one)
    return [*parts, *chance.choice([[chunk(FINISH), chunk(DONE), END], [END], [chunk(ERROR), chunk(DONE)], []])]


def test_odd_streams_tell_the_same_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = list[int]()
    take_alike = Arrival.take_alike
    monkeypatch.setattr(
        Arrival, "take_alike", lambda self, parts: (count := take_alike(self, parts), taken.append(count))[0]
    )
    streams = [odd_parts(random.Random(seed)) for seed in range(150)]
    together = [told(one, is_lost=True) for one in streams]
    monkeypatch.setattr(connection_module, "_MOST_PUT_OFF", 0)
    for seed, stream in enumerate(streams):
        assert together[seed] == told(stream, is_lost=True), seed
    assert sum(taken) > 0.5 * sum(one["pieces"] for one in together)  # most of them the short way


def test_an_error_before_the_deadline_is_reported_as_such() -> None:
    late = told([HEAD, *words(9), chunk(ERROR)], late_at=11)
    assert not late["why"] and "out of memory" in late["error"]
    assert told([HEAD, *words(9)], late_at=10)["why"].startswith("no complete answer within the request timeout")


def test_what_is_put_off_is_read_before_it_is_too_much() -> None:
    half_way = told([HEAD, *words(60)])
    assert 5 < half_way["pieces"] < 60 and len(half_way["arrivals"]) == half_way["pieces"]
    assert told([HEAD, *words(4)])["pieces"] == 4  # nothing delays the first tokens
