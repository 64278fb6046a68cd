"""An HTTP server for tests, in a thread of the test's process: serves given bytes, with ranges and with faults.

    with LocalServer() as server:
        server.put("/model.bin", b"...", faults=[Truncate(10), Status(503)])
        requests.get(server.url("/model.bin"))

Each request takes the next fault of its path; when none is left it is answered properly. `server.requests` lists the
requests seen, with the Range and If-Range headers.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True)
class Status:
    """Answer with this status code and a short text."""

    code: int
    retry_after_s: int | None = None
    reason: str | None = None
    location: str | None = None


@dataclass(frozen=True)
class Truncate:
    """Promise the whole length, send this many bytes of the body, close the connection."""

    size_bytes: int


@dataclass(frozen=True)
class Slow:
    """Send the body in this many pieces with a pause between them."""

    pieces: int
    pause_s: float


@dataclass(frozen=True)
class IgnoreRange:
    """Answer 200 with the whole body though a range was asked for."""


@dataclass(frozen=True)
class Unpromised:
    """Send the body without its length and close the connection."""


Fault = Status | Truncate | Slow | IgnoreRange | Unpromised


@dataclass
class _File:
    data: bytes
    etag: str | None
    faults: list[Fault]


@dataclass(frozen=True)
class SeenRequest:
    """One request as it came in."""

    path: str
    range: str | None
    if_range: str | None
    status: int


@dataclass
class LocalServer:
    """The server; `put` files, then ask for `url(path)`."""

    files: dict[str, _File] = field(default_factory=dict)
    requests: list[SeenRequest] = field(default_factory=list)

    def __enter__(self) -> LocalServer:
        owner = self

        class Handler(_Handler):
            server_state = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def put(self, path: str, data: bytes, *, etag: str | None = '"one"', faults: Iterable[Fault] = ()) -> None:
        """Serve these bytes at this path, after the faults."""
        self.files[path] = _File(data=data, etag=etag, faults=list(faults))

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{path}"

    @property
    def statuses(self) -> list[int]:
        """The status codes given, in order."""
        return [seen.status for seen in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: LocalServer

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        file = self.server_state.files.get(path)
        if file is None:
            self._answer(404, b"no such file")
            return
        fault = file.faults.pop(0) if file.faults else None
        if isinstance(fault, Status):
            extra = {} if fault.retry_after_s is None else {"Retry-After": str(fault.retry_after_s)}
            extra |= {} if fault.location is None else {"Location": fault.location}
            self._answer(fault.code, b"fault", extra, fault)
            return
        self._send_file(file, fault)

    def _send_file(self, file: _File, fault: Fault | None) -> None:
        start = self._range_start(file, fault)
        total = len(file.data)
        headers = {} if file.etag is None else {"ETag": file.etag}
        if start is not None and start >= total:
            self._answer(416, b"", {"Content-Range": f"bytes */{total}"})
            return
        if start is None:
            self._answer(200, file.data, headers, fault)
        else:
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
            self._answer(206, file.data[start:], headers, fault)

    def _range_start(self, file: _File, fault: Fault | None) -> int | None:
        """The first byte asked for, None for the whole file."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if not asked or isinstance(fault, IgnoreRange) or (condition is not None and condition != file.etag):
            return None
        return int(asked[1])

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, fault: Fault | None = None
    ) -> None:
        self.server_state.requests.append(
            SeenRequest(self.path, self.headers.get("Range"), self.headers.get("If-Range"), status)
        )
        self.send_response(status, fault.reason if isinstance(fault, Status) else None)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if not isinstance(fault, Unpromised):
            self.send_header("Content-Length", str(len(body)))
        if isinstance(fault, Truncate | Unpromised):
            self.send_header("Connection", "close")
        self.end_headers()
        if isinstance(fault, Truncate):
            self.wfile.write(body[: fault.size_bytes])
            self.close_connection = True
        elif isinstance(fault, Slow):
            step = max(1, -(-len(body) // fault.pieces))
            for at in range(0, len(body), step):
                self.wfile.write(body[at : at + step])
                self.wfile.flush()
                time.sleep(fault.pause_s)
        else:
            self.wfile.write(body)
