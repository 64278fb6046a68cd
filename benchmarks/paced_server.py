"""A server with OpenAI's API on 127.0.0.1 that paces its answers as a GPU server does, for `endpoint_client.py`.

One thread, epoll, everything written beforehand: a token costs one `send`, so that this is not what is measured. The
first part of a URL's path gives the pace: `http://127.0.0.1:PORT/20-10/v1` waits 20 ms for the first token and then
sends one token each 10 ms, each as one event, one chunk of HTTP and one write. `/20-10-5/v1` waits 5 ms more between
tokens for each request in flight, as a server that is busier with each. `/burst/v1` sends a whole answer in one
write. Requests with `"stream": false` get one JSON object when the last token is due. The tokens of an answer are
1, 2, 3 ...

GET .../stats gives {"ttft_ms": [p50, p99], "tpot_ms": [p50, p99], "tokens": n} by this program's clock since the last
such question. GET .../log gives the requests answered since the last such question, in the order of their arrival:
[asked, first token, last token, tokens], the times in s of CLOCK_MONOTONIC.
"""

import heapq
import json
import re
import select
import socket
import statistics
import sys
import time
from dataclasses import dataclass, field

MODEL = "paced"
_PACE = re.compile(r"burst|\d+(\.\d+)?(-\d+(\.\d+)?){1,2}")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(event), event)


def _event(content: object) -> bytes:
    return _chunk(b"data: " + json.dumps(content).encode() + b"\n\n")


def _object(choices: list[object], **values: object) -> dict[str, object]:
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL, "choices": choices, **values}


class Script:
    """What is written for an answer of `count` tokens: `parts` for a stream, `whole` for an answer in one object."""

    def __init__(self, count: int, prompt: int) -> None:
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        self.parts = []
        for token in range(1, count + 1):
            reason = "length" if token == count else None
            choice = {"index": 0, "text": f" w{token}", "logprobs": None, "finish_reason": reason, "token_ids": [token]}
            self.parts.append(_event(_object([choice])))
        self.parts[0] = _HEAD + self.parts[0]
        self.parts[-1] += _event(_object([], usage=usage)) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        text = "".join(f" w{token}" for token in range(1, count + 1))
        ids = list(range(1, count + 1))
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "length", "token_ids": ids}
        self.whole = _json(_object([choice], usage=usage))


def _json(content: object, status: bytes = b"200 OK") -> bytes:
    body = json.dumps(content).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


@dataclass(eq=False, slots=True)
class Stream:
    """One connection. parts: what is still to be written, `place` the next one. asked_s, first_s: of
    time.perf_counter(). slower_s: what each request in flight adds to gap_s."""

    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    parts: list[bytes] = field(default_factory=list)
    place: int = 0
    asked_s: float = 0.0
    first_s: float = 0.0
    gap_s: float = 0.0
    slower_s: float = 0.0
    tokens: int = 0


class Server:
    """All connections, and when each is due."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self._listener.getsockname()[1]
        self._poll = select.epoll()
        self._poll.register(self._listener, select.EPOLLIN)
        self._streams: dict[int, Stream] = {}
        self._due: list[tuple[float, int, Stream]] = []
        self._scripts: dict[tuple[int, int], Script] = {}
        self._number = 0
        self._in_flight = 0
        self._ttfts_ms: list[float] = []
        self._tpots_ms: list[float] = []
        self._tokens = 0
        self._log: list[tuple[float, float, float, int]] = []

    def run(self) -> None:
        """Serve until standard input is closed."""
        self._poll.register(sys.stdin, select.EPOLLIN | select.EPOLLHUP)
        while True:
            wait_s = max(0.0, self._due[0][0] - time.perf_counter()) if self._due else 1.0
            for number, mask in self._poll.poll(wait_s):
                if number == sys.stdin.fileno():
                    return
                if number == self._listener.fileno():
                    self._accept()
                else:
                    self._ready(self._streams[number], mask)
            now_s = time.perf_counter()
            while self._due and self._due[0][0] <= now_s:
                due_s, _, stream = heapq.heappop(self._due)
                self._next(stream, due_s)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams[connection.fileno()] = Stream(connection)
        self._poll.register(connection, select.EPOLLIN)

    def _ready(self, stream: Stream, mask: int) -> None:
        if mask & select.EPOLLOUT:
            self._send(stream, b"")
        if mask & ~select.EPOLLOUT:
            try:
                received = stream.connection.recv(65536)
            except OSError:
                received = b""
            if not received:
                self._close(stream)
                return
            stream.received += received
            self._read(stream)

    def _close(self, stream: Stream) -> None:
        if stream.connection.fileno() >= 0:
            del self._streams[stream.connection.fileno()]
            self._poll.unregister(stream.connection)
            stream.connection.close()

    def _read(self, stream: Stream) -> None:
        head, blank, rest = bytes(stream.received).partition(b"\r\n\r\n")
        if not blank:
            return
        fields = {name.lower(): value for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
        length = int(fields.get(b"content-length", 0))
        if len(rest) < length:
            return
        stream.received.clear()
        self._answer(stream, head.split(b" ")[1].decode(), rest)

    def _answer(self, stream: Stream, path: str, body: bytes) -> None:
        if path.endswith(("/models", "/health")):
            self._send(stream, _json({"object": "list", "data": [{"id": MODEL, "owned_by": "paced"}]}))
        elif path.endswith("/stats"):
            self._send(stream, _json(self._stats()))
        elif path.endswith("/log"):
            self._send(stream, _json(sorted(self._log)))
            self._log = []
        elif not path.endswith("/completions"):
            self._send(stream, _json({"error": {"message": "no such path"}}, b"404 Not Found"))
        elif not _PACE.fullmatch(pace := path.split("/")[1]):
            allowed = "20-10 (ms to the first token and between), 20-10-5 (and for each request in flight), burst"
            words = f"found the pace {pace!r} in {path!r}; allowed: {allowed}"
            self._send(stream, _json({"error": {"message": words}}, b"404 Not Found"))
        else:
            self._begin(stream, pace, json.loads(body))

    def _begin(self, stream: Stream, pace: str, asked: dict[str, object]) -> None:
        text, count = asked["prompt"], int(str(asked.get("max_tokens", 16)))
        prompt = len(text.split() if isinstance(text, str) else text)  # type: ignore[arg-type]
        script = self._scripts.get((count, prompt))
        if script is None:
            script = self._scripts[count, prompt] = Script(count, prompt)
        wait_ms, gap_ms, slower_ms = (0.0, 0.0, 0.0) if pace == "burst" else (*map(float, pace.split("-")), 0.0)[:3]
        stream.asked_s, stream.place, stream.gap_s = time.perf_counter(), 0, gap_ms / 1e3
        stream.slower_s = slower_ms / 1e3
        self._in_flight += 1
        stream.parts = script.parts
        if not asked.get("stream"):
            stream.parts = [script.whole]
            wait_ms += (gap_ms + slower_ms * self._in_flight) * (count - 1)
        elif pace == "burst":
            stream.parts = [b"".join(script.parts)]
        stream.tokens = count
        self._tokens += count
        self._wait(stream, stream.asked_s + wait_ms / 1e3)

    def _wait(self, stream: Stream, due_s: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (due_s, self._number, stream))

    def _next(self, stream: Stream, due_s: float) -> None:
        self._send(stream, stream.parts[stream.place])
        now_s = time.perf_counter()
        if stream.place == 0:
            stream.first_s = now_s
            self._ttfts_ms.append((now_s - stream.asked_s) * 1e3)
        stream.place += 1
        if stream.place < len(stream.parts):
            self._wait(stream, due_s + stream.gap_s + stream.slower_s * self._in_flight)
        else:
            self._in_flight -= 1
            self._log.append((stream.asked_s, stream.first_s, now_s, stream.tokens))
            if stream.place > 1:
                self._tpots_ms.append((now_s - stream.first_s) * 1e3 / (stream.place - 1))

    def _send(self, stream: Stream, data: bytes) -> None:
        if stream.connection.fileno() < 0:
            return
        whole = bytes(stream.unsent) + data if stream.unsent else data
        try:
            sent = stream.connection.send(whole)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(stream)
            return
        if bool(stream.unsent) != (sent < len(whole)):
            wanted = select.EPOLLIN | (select.EPOLLOUT if sent < len(whole) else 0)
            self._poll.modify(stream.connection, wanted)
        stream.unsent[:] = whole[sent:]

    def _stats(self) -> dict[str, object]:
        found = {"ttft_ms": _percentiles(self._ttfts_ms), "tpot_ms": _percentiles(self._tpots_ms)}
        answer = {**found, "tokens": self._tokens}
        self._ttfts_ms, self._tpots_ms, self._tokens = [], [], 0
        return answer


def _percentiles(values: list[float]) -> list[float] | None:
    """Return [p50, p99], None for fewer than two values."""
    if len(values) < 2:
        return None
    found = statistics.quantiles(values, n=100, method="inclusive")
    return [found[49], found[98]]


def main() -> None:
    """Print the URL without a path, and serve."""
    server = Server()
    print(f"http://127.0.0.1:{server.port}", flush=True)
    server.run()


if __name__ == "__main__":
    main()
