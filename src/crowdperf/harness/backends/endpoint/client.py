"""Sends requests and reads their streams. Everything here runs in one event loop.

Every wait has a limit: connecting, a request in all (timeout_s), and the silence in the middle of a stream (stall_s).
One watch looks at all requests in flight instead of a timer for each piece of each stream. Responses are not
unpacked (no gzip is asked for, and none accepted), redirects are not followed, cookies and .netrc are not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from crowdperf.call.model_server import body_text, error_text, one_line, packed_words, shown_url
from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.answers import Collector, LateAnswer, ShapedEvents
from crowdperf.harness.backends.endpoint.connection import Connection
from crowdperf.harness.backends.endpoint.connections import Pool
from crowdperf.harness.backends.endpoint.faults import CutOff, NotStreamed, Refused, Unfit
from crowdperf.harness.backends.endpoint.response_reader import Head
from crowdperf.kit.event_stream import DONE, EventStream, begins_events

try:
    import orjson
except ImportError:  # json reads the same, slower
    orjson = None

CONNECT_S = 20.0
_LARGEST_JSON_BYTES = 8 << 20
_LARGEST_ERROR_BYTES = 64 << 10
_BYTES_PER_TOKEN = 8 << 10
_BYTES_BESIDE = 2 << 20
"""The most of a stream: 8 KiB for each token asked for, and 2 MiB: this project's choice."""


STREAM, _WHOLE = "text/event-stream", "application/json"


def parsed(data: bytes) -> Any:
    """Return the content of JSON. Raises ValueError, RecursionError. orjson refuses halves of characters and numbers of
    many digits. json then reads them."""
    if orjson is not None:
        try:
            return orjson.loads(data)
        except ValueError:
            pass
    return json.loads(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: its path and body, the collector of its answer, and two callbacks.

    first: called at the first token. last: called once, at the end of the answer, with its time (time.monotonic()). The
    end of the response may still be on its way. is_streamed: False for a whole answer as one JSON object; `first` is
    not called then.
    """

    path: str
    body: bytes
    collector: Collector
    first: Callable[[], None]
    last: Callable[[float], None]
    timeout_s: float | None = None
    is_streamed: bool = True

    @property
    def most_bytes(self) -> int:
        return _BYTES_BESIDE + _BYTES_PER_TOKEN * self.collector.most_tokens


@dataclass(slots=True, eq=False)
class Flight:
    """One request on its way, and the connection that it has. Times in s of time.monotonic()."""

    task: asyncio.Task[Any]
    deadline_s: float
    connection: Connection | None = None
    heard_s: float = field(default_factory=time.monotonic)
    has_begun: bool = False
    why: str = ""

    def heard(self, at_s: float) -> None:
        self.heard_s = at_s
        self.has_begun = True

    def end(self, why: str) -> None:
        """Cancel the request, once, with the reason."""
        if not self.why:
            self.why = why
            self.task.cancel()


_SOON = 4
"""The first pieces of a stream, in which its shape is learned (ShapedEvents), are read as they come."""


class Arrival:
    """Reads one response as it comes: events of a stream at once, any other body as a whole. done: its result is the
    body, empty for a stream, whose events the call's collector has. most_bytes: of a body with status 200."""

    def __init__(self, client: Client, flight: Flight, most_bytes: int, call: Call | None = None) -> None:
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.head: Head | None = None
        self.stream: EventStream | None = None
        self.is_answered = False
        self._client, self.flight, self._call, self._most_bytes = client, flight, call, most_bytes
        self._body = bytearray()
        self._shaped: ShapedEvents | None = None
        self._may_be_events = False

    def begin(self, head: Head) -> None:
        self.head = head
        if packed := packed_words(head.headers.get("content-encoding")):
            raise Unfit(packed)
        call = self._call
        if head.status != 200:
            self._most_bytes = _LARGEST_ERROR_BYTES
        elif call is not None and call.is_streamed:
            self._may_be_events = True
            if head.header("content-type") == STREAM:
                self._read_events(call)
            else:
                self._most_bytes = _LARGEST_ERROR_BYTES

    def _read_events(self, call: Call) -> EventStream:
        self._shaped = ShapedEvents(parsed)
        self.stream = EventStream(call.most_bytes, self._shaped.read)
        return self.stream

    @property
    def content_type(self) -> str:
        """The type of the response for a message."""
        return one_line(self.head.header("content-type") if self.head else "") or "no content type"

    @property
    def is_steady(self) -> bool:
        """Whether an event stream is under way."""
        call = self._call if self.stream is not None and not self.is_answered else None
        return call is not None and call.collector.pieces > _SOON

    def take(self, body: bytes, at_s: float) -> None:
        if self.stream is not None:
            self.flight.heard(at_s)
            self._take_events(self.stream.feed(body))
            return
        self._body += body
        if self._may_be_events and self._call is not None and begins_events(bytes(self._body[:64])):
            stream, begun = self._read_events(self._call), bytes(self._body)
            self._body.clear()
            self._client.stream_type = self.content_type
            self.flight.heard(at_s)
            self._take_events(stream.feed(begun))
        elif len(self._body) > self._most_bytes:
            if self.head is not None and self.head.status == 200:
                raise Unfit(f"the server answered with more than {self._most_bytes:,} bytes")
            self._finish()  # enough of an error

    def take_alike(self, parts: Sequence[tuple[float, bytes]]) -> int:
        """Read those first ones of the parts that are one chunk with one event of the stream's shape, and return their
        number. A part that may be beyond a limit is not read."""
        call, stream, shaped = self._call, self.stream, self._shaped
        if call is None or stream is None or shaped is None or not stream.is_between_events:
            return 0
        collector = call.collector
        most = min(len(parts), collector.most_tokens - max(collector.pieces, len(collector.ids)))
        pieces, size_bytes = [], 0
        for _, part in parts[: max(most, 0)]:
            piece = shaped.in_chunk(part)
            if piece is None:
                break
            pieces.append(piece)
            size_bytes += len(part) - part.index(b"\r\n") - 4
        if not pieces or not stream.pass_over(size_bytes):
            return 0
        arrivals = [at_s for at_s, _ in parts[: len(pieces)]]
        collector.take_alike(pieces, arrivals)
        self.flight.heard(arrivals[-1])
        return len(pieces)

    def _take_events(self, events: list[Any]) -> None:
        """Hand events to the collector, up to the end of the answer."""
        call = self._call
        assert call is not None
        collector = call.collector
        before = collector.pieces
        for event in events:
            if event is DONE:
                collector.is_done = True
                break
            if collector.take(event):
                call.first()
        if collector.pieces > before:
            collector.arrivals.append(self.flight.heard_s)
        if collector.is_done:
            self._finish_stream(call)

    def end(self, at_s: float) -> None:
        if self.is_answered:
            return
        if self.stream is None:
            self._finish()
            return
        self.flight.heard(at_s)
        self._take_events(self.stream.end())
        if not self.is_answered and self._call is not None:
            self._finish_stream(self._call)

    def _finish_stream(self, call: Call) -> None:
        collector, stream = call.collector, self.stream
        assert stream is not None
        collector.skipped += stream.skipped
        self._client.ignored_events += stream.ignored
        if stream.ignored and collector.finish is None and not collector.pieces:
            raise Unfit(
                f"the server's stream has no events of OpenAI's API, but {stream.ignored} named "
                f"{one_line(stream.ignored_name)!r}"
            )
        call.last(self.flight.heard_s)
        self._finish()

    def _finish(self) -> None:
        self.is_answered = True
        if not self.done.done():
            self.done.set_result(bytes(self._body))

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Client:
    """The requests to one server. timeout_s: of one request in all. stall_s: the longest silence in a stream.
    most_open: responses that may stay open after their answers, in addition to the requests in flight."""

    def __init__(self, address: Address, timeout_s: float, stall_s: float, most_open: int = 64) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.stall_s = stall_s
        self.in_flight: set[Flight] = set()
        self.resent = 0
        self.ignored_events = 0
        self.stream_type = STREAM  # of the latest stream of another type
        self.pool = Pool(address, min(CONNECT_S, timeout_s), most_open)
        self._base_path = urlsplit(address.url).path
        self._watch: asyncio.Task[None] | None = None
        self._heads: dict[tuple[str, str, str], bytes] = {}

    async def open(self) -> None:
        """Begin to watch, in the loop that sends."""
        self._watch = asyncio.create_task(self._look_after_all())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self.pool.close()

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
            raise LateAnswer(flight.why) from None
        finally:
            self.in_flight.discard(flight)

    async def _look_after_all(self) -> None:
        """End late requests and connections that are not used."""
        pause_s = min(1.0, self.stall_s / 4, self.timeout_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            self.pool.tidy()
            self.end_late_ones(time.monotonic(), pause_s)

    def end_late_ones(self, now_s: float, pause_s: float) -> None:
        """Cancel late requests, with the reason. pause_s: since the last look."""
        for flight in tuple(self.in_flight):
            connection = flight.connection
            if connection is not None and connection.heard_since(now_s - pause_s):
                flight.heard(now_s)
            why = self._lateness(flight, now_s)
            if why and (connection is None or connection.is_still_awaited()):
                flight.end(why)

    def _lateness(self, flight: Flight, now_s: float) -> str:
        """Return why a request is late, "" if it is not."""
        if now_s > flight.deadline_s:
            came = "its answer had begun" if flight.has_begun else "no response"
            return f"no complete answer within the request timeout ({self.timeout_s:g} s), {came}"
        if flight.has_begun and now_s - flight.heard_s > self.stall_s:
            return f"the server stopped in the middle of its answer: silent for {self.stall_s:g} s"
        return ""

    def _head(self, method: str, path: str, accept: str) -> bytes:
        """Return the head of a request, up to the length of its body. path: behind the URL, or a whole URL of its
        host."""
        found = self._heads.get((method, path, accept))
        if found is None:
            target = urlsplit(path).path if "://" in path else self._base_path + path
            target = quote(target, safe="/%:@!$&'()*+,;=~")
            if self.address.query and "://" not in path:
                target += f"?{self.address.query}"
            start = self.pool.request_head(method, target)
            fields = {
                "Accept": accept, "Accept-Encoding": "identity", "User-Agent": "crowdperf",
                **self.address.key.headers(), "Content-Type": _WHOLE,
            }  # fmt: skip
            start += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            found = self._heads[method, path, accept] = f"{start}Content-Length: ".encode()
        return found

    async def _sent(self, head: bytes, body: bytes, arrival: Arrival, needs_new: bool = False) -> bytes:
        """Send a request and return the body of its response, which `arrival` read. Raises one of FAULTS. needs_new: on
        a new connection."""
        connection = arrival.flight.connection = await self.pool.take(needs_new)
        connection.send(b"%s%d\r\n\r\n%s" % (head, len(body), body), arrival)
        try:
            received = await arrival.done
        except asyncio.CancelledError:
            if not arrival.is_answered:  # another request may have the connection otherwise
                connection.abort()
            raise
        self._require_status(arrival.head, received)
        return received

    async def get_json(self, path: str, timeout_s: float) -> Any:
        """Return the JSON at a path behind the URL, or at a whole URL of its host; raises one of FAULTS."""
        with self.flight(timeout_s) as flight:
            body = await self._sent(self._head("GET", path, _WHOLE), b"", Arrival(self, flight, _LARGEST_JSON_BYTES))
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Unfit(
                f"the server answered {path} with something that is not JSON: {error_text(_text(body))}"
            ) from None

    async def ask(self, call: Call) -> None:
        """Send a request and read its stream into the call's collector; raises one of FAULTS.

        Resends it once if the server closed a kept connection without a response.
        """
        try:
            await self._ask(call)
        except CutOff as error:
            if error.has_begun:
                raise
            self.resent += 1
            await self._ask(call, needs_new=True)

    async def _ask(self, call: Call, needs_new: bool = False) -> None:
        head = self._head("POST", call.path, STREAM if call.is_streamed else _WHOLE)
        with self.flight(call.timeout_s) as flight:
            arrival = Arrival(self, flight, call.most_bytes, call)
            body = await self._sent(head, call.body, arrival, needs_new)
        if not call.is_streamed:
            _take_whole(body, call)
        elif arrival.stream is None and arrival.head is not None:
            raise NotStreamed(
                f"the server answered with {arrival.content_type} instead of a stream of events ({STREAM}): "
                f"{error_text(_text(body))}"
            )

    @staticmethod
    def _require_status(head: Head | None, body: bytes) -> None:
        """Raise Refused for another status than 200."""
        assert head is not None
        if head.status == 200:
            return
        location = head.headers.get("location")
        raise Refused(
            head.status,
            body_text(body) if head.status >= 400 else "",
            head.headers.get("retry-after"),
            None if location is None else shown_url(location),
        )


def _take_whole(body: bytes, call: Call) -> None:
    """Read an answer that comes as one JSON object, and have it judged."""
    collector = call.collector
    try:
        content = parsed(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Unfit(f"the server's answer is not a JSON object: {error_text(_text(body))}")
    collector.take(content)
    collector.is_done = True
    call.last(time.monotonic())


def _text(body: bytes) -> str:
    return body.decode(errors="replace")
