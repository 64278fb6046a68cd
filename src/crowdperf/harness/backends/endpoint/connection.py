"""One connection: what is sent, and what comes of a response.

A connection reads in the callback of the event loop, so that a token that arrives costs no switch of tasks. In a steady
stream, parts that are whole events and not the last one are noted with their times, and some of them are read at once.
Read as they come, each would find the CPU's caches full of other work, which costs more than the reading. Without TLS
they are even received in the loop's selector (stream_loop.py).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Protocol, cast

from crowdperf.harness.backends.endpoint.faults import CutOff
from crowdperf.harness.backends.endpoint.response_reader import WHOLE_EVENTS, Head, ResponseReader
from crowdperf.harness.backends.endpoint.stream_loop import SteadyStream, StreamLoop

_READ_BYTES = 64 << 10
"""asyncio reads into a new object of 256 KiB otherwise, which glibc maps and unmaps for each read (mallopt(3),
M_MMAP_THRESHOLD is 128 KiB)."""
_LARGEST_REST_BYTES = 64 << 10
_LAST_EVENT = b"[DONE]"
_MOST_PUT_OFF, _LARGEST_PUT_OFF_BYTES = 32, 4 << 10
"""Reading 32 of them keeps the loop busy for some 0.2 ms: this project's choice."""


class Reception(Protocol):
    """The reader of a response. Errors that its methods raise end the connection, and are given to `fail`."""

    is_answered: bool
    """Nothing of the response is needed any more, although its end may not have come."""

    @property
    def is_steady(self) -> bool:
        """Whether it receives a stream, of whose parts only the times count until the last one."""

    def begin(self, head: Head) -> None:
        """The head is there."""

    def take(self, body: bytes, at_s: float) -> None:
        """A part of the body is there since `at_s`, in s of time.monotonic()."""

    def take_alike(self, parts: Sequence[tuple[float, bytes]]) -> int:
        """Read the first of some chunks that came since their times, if they are known. Return how many."""

    def end(self, at_s: float) -> None:
        """The whole response was read."""

    def fail(self, error: Exception) -> None:
        """There is no whole response."""


class Keeper(Protocol):
    """Has all connections to a server."""

    def give_back(self, connection: Connection, can_be_used_again: bool) -> None:
        """The response of a connection was read to its end."""

    def leave_open(self, connection: Connection) -> None:
        """The response of a connection goes on after its answer."""

    def forget(self, connection: Connection) -> None:
        """A connection is closed."""


class Connection(asyncio.Protocol):
    """One connection. idle_s, answered_s: since when, in s of time.monotonic()."""

    def __init__(self, pool: Keeper) -> None:
        self.idle_s = self.answered_s = 0.0
        self._rest_bytes = 0
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._reader = ResponseReader()
        self._reception: Reception | None = None
        self._put_off: list[tuple[float, bytes]] = []
        self._can_put_off = False
        self._streams: dict[int, SteadyStream] = {}
        self._file = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, also where TLS begins in a tunnel. Without TLS the loop may read past it."""
        self._transport = cast(asyncio.Transport, transport)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        self._set_steady(False)
        self._file, loop = -1, asyncio.get_running_loop()
        if isinstance(loop, StreamLoop) and transport.get_extra_info("sslcontext") is None:
            self._streams, self._file = loop.streams, transport.get_extra_info("socket").fileno()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def send(self, request: bytes, reception: Reception, is_tunnel: bool = False) -> None:
        """Send a request; `reception` gets its response."""
        self._reader, self._reception, self._rest_bytes = ResponseReader(is_tunnel), reception, 0
        self._put_off = []
        self._set_steady(False)
        self.transport.write(request)

    def _set_steady(self, is_steady: bool) -> None:
        """Note whether parts may be put off, and so read in the loop's selector."""
        self._can_put_off = is_steady
        if is_steady and self._file >= 0:
            self._streams[self._file] = self
        else:
            self._streams.pop(self._file, None)

    def receive(self) -> bool:
        """Read what came, in the loop's selector. Returns whether the stream is still steady; where nothing can be
        read, asyncio sees why."""
        try:
            data = os.read(self._file, _READ_BYTES)
        except OSError:
            return False
        if data:
            self.data_received(data)
        return bool(data) and self._can_put_off

    def abort(self) -> None:
        """Close the connection at once."""
        self._reception = None
        self._set_steady(False)
        self._pool.forget(self)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        now_s, put_off = time.monotonic(), self._put_off
        if (
            self._can_put_off
            and data.endswith(WHOLE_EVENTS)
            and _LAST_EVENT not in data
            and len(put_off) < _MOST_PUT_OFF
            and len(data) <= _LARGEST_PUT_OFF_BYTES
        ):
            put_off.append((now_s, data))
            return
        if put_off:
            self.catch_up()
        self._read(data, now_s)

    def heard_since(self, since_s: float) -> bool:
        """Whether a part was noted since then. Reads the noted parts if not."""
        if self._put_off and self._put_off[-1][0] < since_s:
            self.catch_up()
        return bool(self._put_off)

    def is_still_awaited(self) -> bool:
        """Whether the end of an answer is missing, also after the noted parts are read: they may have an error."""
        self.catch_up()
        return self._reception is not None and not self._reception.is_answered

    def catch_up(self) -> None:
        noted, self._put_off = self._put_off, []
        while noted:
            if self._reception is not None and self._reader.is_between_chunks:
                noted = noted[self._reception.take_alike(noted) :]
            if noted:
                self._read(noted[0][1], noted[0][0])
                noted = noted[1:]

    def _read(self, data: bytes, at_s: float) -> None:
        reception, reader = self._reception, self._reader
        if reception is None:  # nothing was asked
            self.abort()
            return
        try:
            has_head = reader.head is not None
            body = reader.feed(data)
            if reception.is_answered:
                self._pass_over(body)
                return
            if not has_head and reader.head is not None:
                reception.begin(reader.head)
            if body:
                reception.take(body, at_s)
            is_steady = reception.is_steady and not reader.is_complete and data.endswith(WHOLE_EVENTS)
            if is_steady is not self._can_put_off:
                self._set_steady(is_steady)
            if reader.is_complete:
                self._reception = None
                if not reader.is_tunnel:
                    self._pool.give_back(self, reader.can_be_used_again)
                reception.end(at_s)
            elif reception.is_answered:
                self._pool.leave_open(self)
        except Exception as error:
            self.abort()
            reception.fail(error)

    def _pass_over(self, body: bytes) -> None:
        """Read on to the end of a response whose answer is known, so that the connection can be used again."""
        self._rest_bytes += len(body)
        if self._reader.is_complete:
            self._reception = None
            self._pool.give_back(self, self._reader.can_be_used_again)
        elif self._rest_bytes > _LARGEST_REST_BYTES:
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.catch_up()
        self._set_steady(False)
        self._transport = None
        self._pool.forget(self)
        reception, self._reception = self._reception, None
        if reception is None or reception.is_answered:
            return
        try:
            if not self._reader.end():
                raise CutOff(self._reader.has_begun)
            reception.end(time.monotonic())
        except Exception as fault:
            reception.fail(fault)
