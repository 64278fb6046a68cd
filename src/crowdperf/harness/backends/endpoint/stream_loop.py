"""The event loop of the client, whose selector reads steady streams before asyncio is told of them.

For each socket that is ready, asyncio queues a handle, runs it in a context and starts a turn of its loop, which costs
several times what one read does. A steady stream (connection.py) needs none of that: its parts are noted with their
times. The turn begins when something else is ready or due, or when a stream is no longer steady.
"""

import asyncio
import selectors
import time
from typing import Protocol, cast

try:
    import uvloop
except ImportError:  # asyncio's own loop does the same, slower
    uvloop = None


class SteadyStream(Protocol):
    """The reader of one socket."""

    def receive(self) -> bool:
        """Read once. Returns False if the event loop has to look at the socket: nothing was read, or its stream is not
        steady any more. True promises that nothing was scheduled in the loop."""


class StreamSelector(selectors.DefaultSelector):
    """streams: the readers of sockets by their file numbers. Their sockets are registered for the event loop, too."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[int, SteadyStream] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready for the event loop, after at most `timeout` s, and let streams read until then."""
        streams = self.streams
        if not streams:
            return super().select(timeout)
        until_s = None if timeout is None else time.monotonic() + timeout
        while True:
            ready = super().select(timeout)
            others = [one for one in ready if (stream := streams.get(one[0].fd)) is None or not stream.receive()]
            if others or not ready:
                return others
            if until_s is not None:
                timeout = until_s - time.monotonic()
                if timeout <= 0.0:
                    return others


class StreamLoop(asyncio.SelectorEventLoop):
    """streams: of its selector."""

    def __init__(self) -> None:
        selector = StreamSelector()
        super().__init__(selector)
        self.streams = selector.streams


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop: uvloop's if it is installed."""
    return StreamLoop() if uvloop is None else cast(asyncio.AbstractEventLoop, uvloop.new_event_loop())
