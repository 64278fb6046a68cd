"""Opens connections a few at first, then more: a server whose queue of waiting connections is short drops what comes at
once, and Linux tries again only after 1 s, 3 s and 7 s, which would be measured as the server's latency.

As many may be opened at once as have been opened quickly, and a few; after a slow one it begins anew.
"""

import asyncio
import time
from collections import deque
from types import SimpleNamespace

import aiohttp

FEWEST, MOST = 4, 32
"""Connections that are opened at once. Python's http.server lets 5 wait (request_queue_size of socketserver), most
others 100 and more: this project's choice."""
SLOW_S = 0.9
"""A connection that takes so long was dropped and tried again: the first pause of TCP is 1 s (RFC 6298, section 2)."""


class ConnectWindow:
    """How many connections may be opened at once. opened: since the last `reset`; slow: those of them that took
    long."""

    def __init__(self) -> None:
        self.opened = self.slow = 0
        self.size = FEWEST
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def reset(self) -> None:
        """Count from zero."""
        self.opened = self.slow = 0

    async def begin(self) -> float:
        """Wait until a connection may be opened; returns the time of time.monotonic()."""
        while self._opening >= self.size:
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                self._wake()  # it may have been this one's turn
                raise
        self._opening += 1
        return time.monotonic()

    def end(self, began_s: float, *, is_open: bool) -> None:
        """Note that a connection is open, or could not be opened."""
        self._opening -= 1
        if is_open:
            self.opened += 1
            is_slow = time.monotonic() - began_s > SLOW_S
            self.slow += is_slow
            self.size = FEWEST if is_slow else min(self.size + 1, MOST)
        self._wake()

    def _wake(self) -> None:
        free = self.size - self._opening
        while self._waiting and free > 0:
            place = self._waiting.popleft()
            if not place.done():  # its request may have been cancelled
                place.set_result(None)
                free -= 1

    def traced(self) -> aiohttp.TraceConfig:
        """Return what lets a session's connections wait and be counted."""

        async def begin(_: object, context: SimpleNamespace, __: object) -> None:
            context.began_s = await self.begin()

        async def done(_: object, context: SimpleNamespace, __: object) -> None:
            self.end(context.__dict__.pop("began_s"), is_open=True)

        async def failed(_: object, context: SimpleNamespace, __: object) -> None:
            if "began_s" in context.__dict__:
                self.end(context.__dict__.pop("began_s"), is_open=False)

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(begin)
        trace.on_connection_create_end.append(done)
        trace.on_request_exception.append(failed)
        return trace
