"""Sends requests and reads their streams; everything here runs in one event loop.

Every wait has a limit: connecting, a request in all (timeout_s), and the silence in the middle of a stream (stall_s).
One watch looks at all requests in flight instead of a timer for each piece of each stream. Responses are not
unpacked (no gzip is asked for, and none accepted), redirects are not followed, cookies and .netrc are not used.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from crowdperf.call.model_server import body_text, error_text, one_line, shown_url
from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.answers import Collector, LateAnswer
from crowdperf.harness.backends.endpoint.connections import ConnectWindow
from crowdperf.harness.backends.endpoint.faults import NotStreamed, Refused, Unfit
from crowdperf.kit.event_stream import DONE, EventStream

CONNECT_S = 20.0
_LARGEST_JSON_BYTES = 8 << 20
_LARGEST_ERROR_BYTES = 64 << 10
_BYTES_PER_TOKEN = 8 << 10
_BYTES_BESIDE = 2 << 20
"""The most of a stream: 8 KiB for each token asked for, and 2 MiB: this project's choice."""
_AFTER_DONE_S = 5.0
"""A response that stays open so long after its answer is closed, whatever still comes."""
_KEPT_OPEN_S = 4.0
"""Idle connections are closed before the server does it: uvicorn, which most servers use, waits 5 s."""


_STREAM, _WHOLE = "text/event-stream", "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: what is sent, what reads the stream, and what is called at the first and after the last piece.

    last: called once, at the end of the answer; the request may then still wait for the end of the response.
    is_streamed: False for a whole answer as one JSON object; `first` is not called then.
    """

    path: str
    body: bytes
    collector: Collector
    first: Callable[[], None]
    last: Callable[[], None]
    timeout_s: float | None = None
    is_streamed: bool = True


@dataclass(slots=True, eq=False)
class Flight:
    """One request on its way. Times in s of time.monotonic()."""

    task: asyncio.Task[Any]
    deadline_s: float
    heard_s: float = field(default_factory=time.monotonic)
    has_begun: bool = False
    answered_s: float | None = None
    why: str = ""

    def heard(self) -> None:
        """Note that the server sent something."""
        self.heard_s = time.monotonic()
        self.has_begun = True

    def end(self, why: str) -> None:
        """Cancel the request, once, with the reason."""
        if not self.why:
            self.why = why
            self.task.cancel()


class Client:
    """An HTTP session with one server. timeout_s: of one request in all; stall_s: the longest silence in a stream;
    most_open: responses that may stay open after their answers, beside the requests in flight."""

    def __init__(self, address: Address, timeout_s: float, stall_s: float, most_open: int = 64) -> None:
        self.address = address
        self.most_open = most_open
        self.timeout_s = timeout_s
        self.stall_s = stall_s
        self.in_flight: set[Flight] = set()
        self.left_open: dict[Flight, None] = {}
        self.resent = 0
        self.ignored_events = 0
        self.window = ConnectWindow()
        self._session: aiohttp.ClientSession | None = None
        self._watch: asyncio.Task[None] | None = None
        self._urls: dict[str, URL] = {}
        self._proxy = address.proxy

    async def open(self) -> None:
        """Open the session; in the loop that uses it."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN_S, ttl_dns_cache=None)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_S, self.timeout_s)),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[self.window.traced()],
            headers={"Accept-Encoding": "identity", "User-Agent": "crowdperf", **self.address.key.headers()},
        )
        self._watch = asyncio.create_task(self._end_late_ones())

    async def close(self) -> None:
        """End the watch and all connections."""
        if self._watch is not None:
            self._watch.cancel()
        if self._session is not None:
            await self._session.close()

    @contextlib.contextmanager
    def flight(self, timeout_s: float | None = None) -> Iterator[Flight]:
        """Watch the request that the calling task makes."""
        task = asyncio.current_task()
        assert task is not None
        flight = Flight(task, time.monotonic() + (timeout_s or self.timeout_s))
        self.in_flight.add(flight)
        try:
            yield flight
        except asyncio.CancelledError:
            if not flight.why:
                raise  # the engine is closed
            if flight.answered_s is None:
                raise LateAnswer(flight.why) from None
        finally:
            self.in_flight.discard(flight)

    async def _end_late_ones(self) -> None:
        """Cancel what takes too long, with the reason."""
        pause_s = min(1.0, self.stall_s / 4, self.timeout_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            now = time.monotonic()
            for flight in tuple(self.in_flight):
                if flight.answered_s is not None:
                    if now > flight.answered_s + _AFTER_DONE_S:
                        flight.end("the response stays open behind its answer")
                elif now > flight.deadline_s:
                    came = "its answer had begun" if flight.has_begun else "no response"
                    flight.end(f"no complete answer within the request timeout ({self.timeout_s:g} s); {came}")
                elif flight.has_begun and now - flight.heard_s > self.stall_s:
                    flight.end(f"the server stopped in the middle of its answer: silent for {self.stall_s:g} s")

    def _url(self, path: str) -> URL:
        found = self._urls.get(path)
        if found is None:
            whole = path if "://" in path else self.address.url + path
            found = self._urls[path] = URL(whole, encoded=True)
        return found

    def _opened(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    async def get_json(self, path: str, timeout_s: float) -> Any:
        """Return the JSON at a path behind the URL, or at a whole URL of its host; raises what `words` explains."""
        with self.flight(timeout_s) as flight:
            async with self._opened().get(self._url(path), allow_redirects=False, proxy=self._proxy) as response:
                flight.heard()
                await self._require_status(response)
                body = await _body(response, _LARGEST_JSON_BYTES)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Unfit(
                f"the server answered {path} with something that is not JSON: {error_text(_text(body))}"
            ) from None

    async def ask(self, call: Call) -> None:
        """Send a request and read its stream into the call's collector; raises what `words` explains.

        Sends it once more where the server closed a kept connection before anything came.
        """
        try:
            await self._ask(call)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError) as error:
            has_begun = call.collector.pieces or call.collector.skipped
            if has_begun or isinstance(error, aiohttp.ClientConnectorError):
                raise
            self.resent += 1
            await self._ask(call)

    async def _ask(self, call: Call) -> None:
        with self.flight(call.timeout_s) as flight:
            async with self._opened().post(
                self._url(call.path), data=call.body, allow_redirects=False, proxy=self._proxy,
                headers={"Content-Type": _WHOLE, "Accept": _STREAM if call.is_streamed else _WHOLE},
            ) as response:  # fmt: skip
                await self._require_status(response)
                kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                if not call.is_streamed:
                    await self._read_whole(response, call, flight)
                    return
                if kind != _STREAM:
                    text = error_text(_text(await _body(response, _LARGEST_ERROR_BYTES)))
                    raise NotStreamed(
                        f"the server answered with {one_line(kind) or 'no type'} instead of a stream of events: {text}"
                    )
                await self._read(response, call, flight)

    async def _read(self, response: aiohttp.ClientResponse, call: Call, flight: Flight) -> None:
        """Read the answer, have it judged, and leave the connection so that it can be used again."""
        collector = call.collector
        stream = EventStream(_BYTES_BESIDE + _BYTES_PER_TOKEN * collector.most_tokens)
        async for received in response.content.iter_any():
            flight.heard()
            before = collector.pieces
            _take(stream.feed(received), call)
            collector.reads += collector.pieces > before
            if collector.is_done:
                break
        else:
            _take(stream.end(), call)
        flight.answered_s = time.monotonic()
        collector.skipped += stream.skipped
        self.ignored_events += stream.ignored
        if stream.ignored and collector.finish is None and not collector.pieces:
            raise Unfit(
                f"the server's stream has no events of OpenAI's API, but {stream.ignored} named "
                f"{one_line(stream.ignored_name)!r}"
            )
        call.last()
        await self._read_out(response, flight)

    async def _read_whole(self, response: aiohttp.ClientResponse, call: Call, flight: Flight) -> None:
        """Read an answer that comes as one JSON object, and have it judged."""
        collector = call.collector
        body = await _body(response, _BYTES_BESIDE + _BYTES_PER_TOKEN * collector.most_tokens)
        flight.answered_s = time.monotonic()
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise Unfit(f"the server's answer is not a JSON object: {error_text(_text(body))}")
        collector.take(content)
        collector.is_done = True
        collector.reads = collector.pieces
        call.last()

    async def _read_out(self, response: aiohttp.ClientResponse, flight: Flight) -> None:
        """Read what comes behind the answer up to the end of the response; what goes wrong there matters to nobody.

        The next request does not wait for it, so that a gateway which keeps responses open could collect connections:
        the oldest one is closed where there are too many.
        """
        self.left_open[flight] = None
        if len(self.left_open) > self.most_open:
            oldest = next(iter(self.left_open))
            del self.left_open[oldest]
            oldest.end("too many responses stay open behind their answers")
        try:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                size_bytes = 0
                async for received in response.content.iter_any():
                    size_bytes += len(received)
                    if size_bytes > _LARGEST_ERROR_BYTES:
                        response.close()
                        return
        finally:
            self.left_open.pop(flight, None)

    async def _require_status(self, response: aiohttp.ClientResponse) -> None:
        """Raise Refused for another status than 200, Unfit for a packed response."""
        coding = response.headers.get("Content-Encoding", "identity").lower()
        if coding not in ("", "identity"):
            raise Unfit(f"the server packed its answer ({error_text(coding)}), which was not requested")
        if response.status == 200:
            return
        location = response.headers.get("Location")
        raise Refused(
            response.status,
            await _error(response) if response.status >= 400 else "",
            response.headers.get("Retry-After"),
            None if location is None else shown_url(location),
        )


def _take(events: list[Any], call: Call) -> None:
    """Hand events to the collector, up to the end of the answer."""
    for event in events:
        if event is DONE:
            call.collector.is_done = True
            return
        if call.collector.take(event):
            call.first()


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


async def _body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Return the body; raises Unfit for a larger one."""
    body = bytearray()
    async for received in response.content.iter_any():
        body += received
        if len(body) > most_bytes:
            raise Unfit(f"the server answered with more than {most_bytes:,} bytes")
    return bytes(body)


async def _error(response: aiohttp.ClientResponse) -> str:
    """Return the server's error message in one line, cut off where it is too long."""
    body = bytearray()
    with contextlib.suppress(aiohttp.ClientError):
        async for received in response.content.iter_any():
            body += received
            if len(body) > _LARGEST_ERROR_BYTES:
                break
    return body_text(bytes(body))
