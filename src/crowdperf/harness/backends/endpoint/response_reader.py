"""Reads one HTTP/1.1 response from bytes, however the network cuts them. Pure.

It supports a head and a body that ends with its last chunk, after Content-Length bytes, or with the connection
(RFC 9112). The body is handed out as it comes and never kept. Other protocols are refused with their first words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from crowdperf.call.model_server import error_text

_LARGEST_HEAD_BYTES = 64 << 10
_LONGEST_LINE_BYTES = 4 << 10
"""The largest head, and the longest line of a chunk's size: this project's choice."""
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_PLAIN_SIZE = 8
_WITHOUT_BODY = (204, 304)
WHOLE_EVENTS = b"\n\n\r\n", b"\r\n\r\n\r\n"
"""The ends of a chunk that ends with a whole event, whose lines end with LF or with CR LF."""
_UNTIL_CLOSE = -1


class NotHttp(Exception):
    """Bytes that are not a response of HTTP/1.1. The text shows the first of them."""

    def __init__(self, found: str) -> None:
        super().__init__(f"the server does not speak HTTP: {found}")


def _one_chunk(received: bytes) -> bytes:
    """Return the content of bytes that are one whole chunk, as most reads of a stream are. Empty for any other."""
    end = received.find(b"\r\n", 0, _PLAIN_SIZE + 2)
    size = _SIZE.fullmatch(received, 0, end) if end > 0 else None
    if size is None or len(received) != end + 4 + int(size[1], 16) or not received.endswith(b"\r\n"):
        return b""
    return received[end + 2 : -2]


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers, their names in small letters. keeps_open: whether the server keeps the connection."""

    status: int
    headers: Mapping[str, str]
    keeps_open: bool

    def header(self, name: str) -> str:
        """Return a header in small letters without its parameters, "" if it is missing."""
        return self.headers.get(name, "").partition(";")[0].strip().lower()


def _parsed(lines: list[bytes]) -> Head:
    """Return the head in lines. Raises NotHttp."""
    status_line = _STATUS_LINE.fullmatch(lines[0])
    if status_line is None:
        raise NotHttp(f"it began with {error_text(lines[0].decode(errors='replace'))!r}")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        found = _FIELD.fullmatch(line)
        if found is None:
            raise NotHttp(f"a header is {error_text(line.decode(errors='replace'))!r}")
        name, value = found[1].decode().lower(), found[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    options = {one.strip().lower() for one in headers.get("connection", "").split(",")}
    keeps_open = "close" not in options and (status_line[1] == b"1" or "keep-alive" in options)
    return Head(int(status_line[2]), headers, keeps_open)


class ResponseReader:
    """One response. head: None until it is there. is_complete: its end was read. behind: whether more came after it.
    is_tunnel: of CONNECT, whose good answer has no body."""

    def __init__(self, is_tunnel: bool = False) -> None:
        self.head: Head | None = None
        self.is_complete = False
        self.has_begun = False
        self.behind = False
        self.is_tunnel = is_tunnel
        self._is_chunked = False
        self._left = 0
        self._is_at_chunk_end = self._is_in_trailer = False
        self._rest = b""

    def feed(self, received: bytes) -> bytes:
        """Return the part of the body in `received`. Raises NotHttp."""
        self.has_begun = True
        if self._rest:
            received, self._rest = self._rest + received, b""
        while self.head is None:
            rest = self._read_head(received)
            if rest is None:
                return b""
            received = rest
        if self._is_chunked and not self.is_complete:
            whole = b"" if self._left or self._is_at_chunk_end or self._is_in_trailer else _one_chunk(received)
            return whole or self._chunks(received)
        if self._left == _UNTIL_CLOSE:
            return received
        body = received[: self._left]
        self._left -= len(body)
        self.is_complete = not self._left
        self.behind = self.behind or len(received) > len(body)
        return body

    @property
    def is_between_chunks(self) -> bool:
        """Whether the size of a chunk comes next."""
        is_inside = self._left or self._rest or self._is_at_chunk_end or self._is_in_trailer
        return self._is_chunked and not is_inside and not self.is_complete

    @property
    def can_be_used_again(self) -> bool:
        """Whether the next request may be sent on the connection."""
        return self.is_complete and not self.behind and self.head is not None and self.head.keeps_open

    def end(self) -> bool:
        """Note that the connection ended. Returns whether the response is complete."""
        self.is_complete = self.is_complete or (self.head is not None and self._left == _UNTIL_CLOSE)
        return self.is_complete

    def _read_head(self, received: bytes) -> bytes | None:
        """Read a head. Returns the bytes after it, None if it is not complete."""
        found = re.search(rb"\r?\n\r?\n", received)
        if found is None:
            first = received[:5]
            if len(received) > _LARGEST_HEAD_BYTES or not b"HTTP/".startswith(first):
                raise NotHttp(f"it began with {error_text(received[:80].decode(errors='replace'))!r}")
            self._rest = received
            return None
        if found.start() > _LARGEST_HEAD_BYTES:
            raise NotHttp(f"its headers are larger than {_LARGEST_HEAD_BYTES:,} bytes")
        head = _parsed(re.split(rb"\r?\n", received[: found.start()]))
        if head.status >= 200:  # those below come before the response
            self._begin(head)
        return received[found.end() :]

    def _begin(self, head: Head) -> None:
        self.head = head
        codings = head.headers.get("transfer-encoding", "").lower()
        length = {one.strip() for one in head.headers.get("content-length", "").split(",")} - {""}
        if head.status in _WITHOUT_BODY or (self.is_tunnel and head.status < 300):
            self._left = 0
        elif codings:
            if codings.strip() != "chunked":
                raise NotHttp(f"it is sent as {error_text(codings)} (Transfer-Encoding), allowed: chunked")
            self._is_chunked = True
        elif not length:
            self._left = _UNTIL_CLOSE
        elif len(length) > 1 or not _LENGTH.fullmatch(one := next(iter(length))):
            raise NotHttp(f"its length is {error_text(', '.join(sorted(length)))} (Content-Length)")
        else:
            self._left = int(one)
        self.is_complete = not self._left and not self._is_chunked

    def _chunks(self, received: bytes) -> bytes:
        """Return the body in chunks. An incomplete line is kept."""
        pieces, place, size = [], 0, len(received)
        while place < size:
            if self._left:
                piece = received[place : place + self._left]
                pieces.append(piece)
                place += len(piece)
                self._left -= len(piece)
                self._is_at_chunk_end = not self._left
                continue
            end = received.find(b"\n", place)
            if end < 0:
                self._rest = received[place:]
                if len(self._rest) > _LONGEST_LINE_BYTES:
                    raise NotHttp("the size of a chunk has no end")
                break
            line = received[place : end - 1 if received[end - 1 : end] == b"\r" and end > place else end]
            place = end + 1
            if self._take_line(line):
                self.behind = place < size
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_line(self, line: bytes) -> bool:
        """Read a line between two pieces of the body. Returns whether it was the last."""
        if self._is_at_chunk_end:
            if line:
                raise NotHttp("a chunk is longer than its size")
            self._is_at_chunk_end = False
        elif self._is_in_trailer:
            self.is_complete = not line
        else:
            found = _SIZE.fullmatch(line)
            if found is None:
                raise NotHttp(f"the size of a chunk is {error_text(line.decode(errors='replace'))!r}")
            self._left = int(found[1], 16)
            self._is_in_trailer = not self._left
        return self.is_complete
