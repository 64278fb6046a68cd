"""The connections to one server: they are opened, used for one request at a time, kept for the next one, and closed.

At first a few connections are opened at once, then more: a server with a short queue of waiting connections drops the
others, and Linux retries only after 1 s, 3 s and 7 s, which would be measured as the server's latency. As many may be
opened at once as have been opened quickly, and a few. After a slow one it starts over.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.connection import Connection
from crowdperf.harness.backends.endpoint.faults import NoConnection, NoProxy
from crowdperf.harness.backends.endpoint.response_reader import Head

FEWEST, MOST = 4, 32
"""Connections that are opened at once. Python's http.server lets 5 wait (request_queue_size of socketserver), most
others 100 and more: this project's choice."""
SLOW_S = 0.9
"""A connection that takes so long was dropped and tried again: the first pause of TCP is 1 s (RFC 6298, section 2)."""


class ConnectWindow:
    """How many connections may be opened at once. opened: since the last `reset`. slow: those of them that took
    long."""

    def __init__(self) -> None:
        self.opened = self.slow = 0
        self.size = FEWEST
        self._opening = self._promised = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()

    def reset(self) -> None:
        self.opened = self.slow = 0

    @property
    def is_waited_for(self) -> bool:
        """Whether requests wait for a connection, so that a later one must not take one before them."""
        return bool(self._waiting or self._promised)

    async def begin(self) -> float | None:
        """Wait until a connection may be opened, or one that another request had is free. Returns the time of
        time.monotonic() to open one, None for the free one."""
        while self._opening >= self.size:
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                is_free = await place
            except asyncio.CancelledError:  # it may have been this one's turn
                if place.done() and not place.cancelled() and place.result():
                    self._promised -= 1
                    self.promise()
                self._wake()
                raise
            if is_free:
                self._promised -= 1
                return None
        self._opening += 1
        return time.monotonic()

    def promise(self) -> None:
        """Let the request that waits longest have a connection that is free."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # its request may have been cancelled
                self._promised += 1
                place.set_result(True)
                return

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
                place.set_result(False)
                free -= 1


_KEPT_OPEN_S = 4.0
"""Idle connections are closed before the server does it: uvicorn, which most servers use, waits 5 s."""
AFTER_ANSWER_S = 5.0
"""A response that stays open for this time after its answer is closed, whatever still comes."""


def _parts(url: str) -> tuple[str, int, bool]:
    """Return host, port and whether TLS is spoken."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    return host if host.isascii() else host.encode("idna").decode(), parts.port or (443 if is_tls else 80), is_tls


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


class _Tunnel:
    """Waits for a proxy's answer to CONNECT."""

    def __init__(self) -> None:
        self.is_answered = self.is_steady = False
        self.done: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self._head: Head | None = None

    def begin(self, head: Head) -> None:
        if head.status >= 300:
            raise NoProxy(f"the proxy refused the connection (status {head.status})")
        self._head = head

    def take(self, body: bytes, at_s: float) -> None:
        raise NoProxy("the proxy does not open a tunnel")

    def take_alike(self, parts: Sequence[tuple[float, bytes]]) -> int:
        return 0

    def end(self, at_s: float) -> None:
        if self._head is not None and not self.done.done():
            self.done.set_result(self._head)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Pool:
    """The connections to one server, or to the proxy before it. connect_s: for one of them to open. most_left_open:
    responses that may stay open after their answers."""

    def __init__(self, address: Address, connect_s: float, most_left_open: int) -> None:
        self.window = ConnectWindow()
        self.left_open: dict[Connection, None] = {}
        self._address, self._connect_s, self._most_left_open = address, connect_s, most_left_open
        self._host, self._port, self._is_tls = _parts(address.url)
        self._context = address.context
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._known_good = ""
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self._tunneled = f"{shown}:{self._port}"
        self._named = shown if self._port == (443 if self._is_tls else 80) else self._tunneled

    def request_head(self, method: str, path: str) -> str:
        """Return the beginning of a request. path: whole, percent-encoded."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._named}"]
        if self._address.proxy is not None and not self._is_tls:
            lines = [f"{method} http://{self._named}{path} HTTP/1.1", lines[1], *self._login()]
        return "\r\n".join([*lines, ""])

    def _login(self) -> list[str]:
        proxy = self._address.proxy or ""
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if not parts.username:
            return []
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return [f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}"]

    async def take(self, needs_new: bool = False) -> Connection:
        """Return an open connection: the one that was used last, or a new one. needs_new: only a new one, after the
        server closed a kept one. Raises NoConnection, NoProxy."""
        found = None if needs_new or self.window.is_waited_for else self._kept()
        while found is None:
            began_s = await self.window.begin()
            if began_s is not None:
                return await self._open_or_kept(began_s, needs_new)
            if needs_new:
                self.window.promise()
            else:
                found = self._kept()
        return found

    async def _open_or_kept(self, began_s: float, needs_new: bool) -> Connection:
        is_open = False
        try:
            found = None if needs_new else self._kept()  # another request may have ended while this one waited
            if found is None:
                found = await self._opened()
                is_open = True
        finally:
            self.window.end(began_s, is_open=is_open)
        return found

    def _kept(self) -> Connection | None:
        while self._idle:
            found = self._idle.pop()
            if found.is_open and time.monotonic() - found.idle_s < _KEPT_OPEN_S:
                return found
            found.abort()
        return None

    def give_back(self, connection: Connection, can_be_used_again: bool) -> None:
        """Keep a connection for the next request, or close it."""
        self.left_open.pop(connection, None)
        if can_be_used_again and connection.is_open:
            connection.idle_s = time.monotonic()
            self._idle.append(connection)
            self.window.promise()
        else:
            connection.abort()

    def leave_open(self, connection: Connection) -> None:
        """Let a response go on after its answer. The oldest one is closed if there are too many: a gateway could
        keep all of them open."""
        connection.answered_s = time.monotonic()
        self.left_open[connection] = None
        if len(self.left_open) > self._most_left_open:
            next(iter(self.left_open)).abort()

    def forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        self.left_open.pop(connection, None)
        if connection in self._idle:
            self._idle.remove(connection)

    def tidy(self) -> None:
        """Close connections that are idle, or open after their answers, for too long."""
        now_s = time.monotonic()
        late = [one for one in self._idle if now_s - one.idle_s > _KEPT_OPEN_S]
        late += [one for one in self.left_open if now_s - one.answered_s > AFTER_ANSWER_S]
        for one in late:
            one.abort()

    def close(self) -> None:
        for one in tuple(self._all):
            one.abort()

    async def _opened(self) -> Connection:
        proxy = self._address.proxy
        try:
            if proxy is None:
                connection = await self._connected(self._host, self._port, self._context)
            else:
                connection = await self._through(proxy)
        except (OSError, asyncio.TimeoutError) as error:
            raise NoConnection(error, self._connect_s) from None
        self._all.add(connection)
        return connection

    async def _connected(self, host: str, port: int, context: ssl.SSLContext | None) -> Connection:
        """Connect to the address of a host that answered last, else to the first that answers."""
        loop = asyncio.get_running_loop()
        places = [self._known_good or host]
        if not (self._known_good or _is_address(host)):
            infos = await asyncio.wait_for(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), self._connect_s)
            places = list(dict.fromkeys(str(where[0]) for *_, where in infos))
        error: Exception = OSError("no address")
        for place in places:
            attempt = loop.create_connection(
                lambda: Connection(self), place, port, ssl=context, server_hostname=host if context else None
            )
            try:
                _, found = await asyncio.wait_for(attempt, self._connect_s / len(places))
                self._known_good = place
                return found
            except (OSError, asyncio.TimeoutError) as caught:
                error = caught
        self._known_good = ""
        raise error

    async def _through(self, proxy: str) -> Connection:
        host, port, is_tls = _parts(proxy)
        try:
            connection = await self._connected(host, port, ssl.create_default_context() if is_tls else None)
        except (OSError, asyncio.TimeoutError):
            raise NoProxy("the proxy set in the environment cannot be reached") from None
        if self._context is None:
            return connection
        where, answer = self._tunneled, _Tunnel()
        head = [f"CONNECT {where} HTTP/1.1", f"Host: {where}", *self._login(), "", ""]
        try:
            connection.send("\r\n".join(head).encode(), answer, is_tunnel=True)
            await asyncio.wait_for(answer.done, self._connect_s)
            loop = asyncio.get_running_loop()
            transport = await asyncio.wait_for(
                loop.start_tls(connection.transport, connection, self._context, server_hostname=self._host),
                self._connect_s,
            )
        except BaseException:
            connection.abort()
            raise
        assert transport is not None
        connection.connection_made(transport)
        return connection
