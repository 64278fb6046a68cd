"""Parts of a steady stream are read some at once, and tell the same as those read one by one: tokens, times, errors."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from crowdperf.harness.backends.endpoint import connections
from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.answers import Collector
from crowdperf.harness.backends.endpoint.client import Arrival, Call, Client, Flight
from crowdperf.harness.backends.endpoint.connections import Connection
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


def in_halves(parts: list[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield part[: len(part) // 2]
        yield part[len(part) // 2 :]


def told(reads: list[bytes], *, is_lost: bool = False, checked_at: int | None = None) -> dict[str, Any]:
    """What a request learns from parts that come at 1, 2, 3 s. checked_at: after so many of them nothing comes for
    long, and the watch looks."""

    async def story() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        client = Client(parse_address(Endpoint(url="http://127.0.0.1:9/v1"), {}), 60.0, 9.0)
        collector, ends = Collector(MOST_TOKENS), list[float]()
        call = Call(path="/completions", body=b"", collector=collector, first=lambda: None, last=ends.append)
        flight = Flight(loop.create_task(asyncio.sleep(0)), 60.0)
        arrival = Arrival(client, flight, call.most_bytes, call)
        connection = Connection(client.pool)
        aborts = list[bool]()
        sent = SimpleNamespace(write=lambda _: None, abort=lambda: aborts.append(True), is_closing=lambda: bool(aborts))
        connection.connection_made(sent)  # type: ignore[arg-type]
        connection.send(b"", arrival)
        for place, part in enumerate(reads, start=1):
            clock.now_s = float(place)
            connection.data_received(part)
            if place == checked_at:
                connection.heard_since(place - 0.5)
                assert not connection.heard_since(place + 0.5)
                break
        else:
            clock.now_s = len(reads) + 1.0
            if is_lost:
                connection.connection_lost(None)
        error = arrival.done.exception() if arrival.done.done() else None
        is_done = arrival.done.done()
        return {**asdict(collector), "ends": ends, "error": repr(error), "is_done": is_done, "is_closed": bool(aborts)}

    return asyncio.run(story())


clock = SimpleNamespace(now_s=0.0)


@pytest.fixture(autouse=True)
def _times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: clock.now_s))


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
    "not HTTP behind the head": lambda: told([HEAD, *words(20), b"what\n\n\r\n", END]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_parts_that_are_put_off_tell_what_they_tell_one_by_one(
    case: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = case()
    monkeypatch.setattr(connections, "_MOST_PUT_OFF", 0)
    assert together == case()
    assert together["pieces"] >= 9


def test_what_is_put_off_is_read_before_it_is_too_much() -> None:
    half_way = told([HEAD, *words(60)])
    assert 5 < half_way["pieces"] < 60 and len(half_way["arrivals"]) == half_way["pieces"]
    assert told([HEAD, *words(4)])["pieces"] == 4  # nothing delays the first tokens
