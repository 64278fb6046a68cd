"""The client's event loop reads steady streams in its selector, and delays nothing else."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.client import Client
from crowdperf.harness.backends.endpoint.connection import Connection
from crowdperf.harness.backends.endpoint.stream_loop import StreamLoop
from crowdperf.harness.text.request import Endpoint


class Stream:
    """Reads a socket while it is steady. turns: what the event loop had to look at."""

    def __init__(self, own_end: socket.socket) -> None:
        self.is_steady, self.read, self.turns = True, list[bytes](), list[bytes]()
        self._own_end = own_end

    def receive(self) -> bool:
        if self.is_steady:
            self.read.append(self._own_end.recv(1))
        return self.is_steady

    def turn(self) -> None:
        self.turns.append(self._own_end.recv(1))


@pytest.fixture
def loop() -> Iterator[StreamLoop]:
    made = StreamLoop()
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    own_end, other_end = socket.socketpair()
    own_end.setblocking(False)
    with own_end, other_end:
        yield own_end, other_end


def steady(loop: StreamLoop, own_end: socket.socket) -> Stream:
    stream = Stream(own_end)
    loop.add_reader(own_end, stream.turn)
    loop.streams[own_end.fileno()] = stream
    return stream


def test_a_steady_stream_is_read_without_a_turn_of_the_loop(
    loop: StreamLoop, ends: tuple[socket.socket, socket.socket]
) -> None:
    stream = steady(loop, ends[0])
    ends[1].send(b"abc")
    loop.run_until_complete(asyncio.wait_for(_until(lambda: len(stream.read) == 3), 10))
    assert stream.read == [b"a", b"b", b"c"] and not stream.turns


async def _until(is_true: "threading.Event | object") -> None:
    while not is_true():  # type: ignore[operator]
        await asyncio.sleep(0.001)


def test_the_loop_looks_at_a_stream_that_is_no_longer_steady(
    loop: StreamLoop, ends: tuple[socket.socket, socket.socket]
) -> None:
    stream = steady(loop, ends[0])
    stream.is_steady = False
    ends[1].send(b"ab")
    loop.run_until_complete(asyncio.wait_for(_until(lambda: len(stream.turns) == 2), 10))
    assert not stream.read


def test_a_stream_that_never_rests_delays_neither_timers_nor_other_threads_nor_sockets(
    loop: StreamLoop, ends: tuple[socket.socket, socket.socket]
) -> None:
    stream = steady(loop, ends[0])
    stream.receive = lambda: True  # type: ignore[method-assign]  # the byte stays in the socket
    ends[1].send(b"a")

    async def story() -> list[str]:
        heard, told = list[str](), asyncio.Event()
        one, other = socket.socketpair()
        with one, other:
            loop.add_reader(one, lambda: (heard.append(one.recv(9).decode()), told.set()))
            await asyncio.sleep(0.01)
            heard.append("timer")
            other.send(b"socket")
            await told.wait()
            told.clear()
            threading.Timer(0.01, lambda: loop.call_soon_threadsafe(told.set)).start()
            await told.wait()
            loop.remove_reader(one)
        return [*heard, "thread"]

    found = loop.run_until_complete(asyncio.wait_for(story(), 20))
    assert found == ["timer", "socket", "thread"] and not stream.turns


@pytest.mark.parametrize("context", [None, object()])
def test_tls_is_never_read_past(loop: StreamLoop, context: object) -> None:
    own_end, other_end = socket.socketpair()
    values = {"sslcontext": context, "socket": own_end}

    async def made() -> int:
        connection = Connection(Client(parse_address(Endpoint(url="http://127.0.0.1:9/v1"), {}), 60.0, 9.0).pool)
        connection.connection_made(SimpleNamespace(get_extra_info=values.get))  # type: ignore[arg-type]
        connection._set_steady(True)
        return len(loop.streams)

    with own_end, other_end:
        assert loop.run_until_complete(made()) == (context is None)
    loop.streams.clear()
