"""Reads a stream of server-sent events from bytes that the network may split anywhere. Pure.

    data: {"choices": [{"text": " word"}]}

    data: [DONE]

Format: "Server-sent events", HTML Living Standard, section 9.2: lines end with LF, CR LF or CR, a byte order mark may
come first, and an event may have a name. `[DONE]` and JSON in `data` are OpenAI's, whose events have no name. An event
named `error` is an error, others (`ping`) are counted and ignored. Only whole lines are decoded, so a character of
several bytes is never split. Unreadable parts are counted.
"""

import json
from collections.abc import Callable
from typing import Any, Final

DONE: Final = "[DONE]"
LONGEST_LINE_BYTES = 1 << 20
"""The longest line: 1 MiB, this project's choice. The longest that are known repeat the prompt's tokens."""
_KNOWN_FIELDS = (b"id", b"retry")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLAIN_NAMES = (b"", b"message")


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def begins_events(body: bytes) -> bool:
    """Return whether a body begins as a stream of events does, whatever its type: with a field or a comment."""
    return body.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n").startswith(_FIELDS)


class StreamError(Exception):
    """The rest of a stream cannot be read. The text gives the reason."""


class EventStream:
    """Turns bytes into the JSON objects of the events, and DONE. parse: reads JSON as json.loads does, or returns a
    tuple for an object that it knows in short. skipped: number of unreadable lines and events. ignored: number of
    events with other names. ignored_name: the first name."""

    def __init__(self, largest_bytes: int, parse: Callable[[bytes], Any] = json.loads) -> None:
        self._largest_bytes = largest_bytes
        self._parse = parse
        self._size_bytes = 0
        self._rest = b""
        self._data: list[bytes] = []
        self._name = b""
        self._may_have_mark = True
        self._ended_with_return = False
        self.skipped = 0
        self.ignored = 0
        self.ignored_name = ""

    def feed(self, received: bytes) -> list[Any]:
        """Return the events that `received` completes. Raises StreamError for a line or a stream without an end."""
        self._size_bytes += len(received)
        if self._size_bytes > self._largest_bytes:
            raise StreamError(f"the stream is longer than {self._largest_bytes:,} bytes, the most for this request")
        if self._is_one_event(received) and (event := self._object(received[6:-2])) is not None:
            return [event]
        received = self._with_plain_ends(received)
        lines = (self._rest + received).split(b"\n") if self._rest else received.split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE_BYTES:
            raise StreamError(f"a line of the stream is longer than {LONGEST_LINE_BYTES:,} bytes")
        events: list[Any] = []
        for line in lines:
            self._take(line, events)
        return events

    @property
    def is_between_events(self) -> bool:
        """Whether the next byte is the first one of an event."""
        return not (self._rest or self._data or self._name or self._may_have_mark or self._ended_with_return)

    def pass_over(self, size_bytes: int) -> bool:
        """Count bytes of whole events that are read elsewhere. Returns False, and counts nothing, if they are too
        many."""
        is_less = self._size_bytes + size_bytes <= self._largest_bytes
        self._size_bytes += size_bytes * is_less
        return is_less

    def _is_one_event(self, received: bytes) -> bool:
        """Whether bytes are one whole event of JSON and nothing else, as in nearly all reads of a stream."""
        return (
            received.startswith(b"data: {")
            and received.find(b"\n") == len(received) - 2
            and received.endswith(b"\n\n")
            and b"\r" not in received
            and self.is_between_events
        )

    def _with_plain_ends(self, received: bytes) -> bytes:
        """Return bytes whose lines all end with LF. A CR LF may be split in the middle."""
        if self._ended_with_return and received:
            received = received.removeprefix(b"\n")
            self._ended_with_return = False
        if b"\r" in received:
            self._ended_with_return = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return received

    def end(self) -> list[Any]:
        """Return the event that the end of the stream completes, where its empty line is missing."""
        events: list[Any] = []
        if self._rest:
            self._take(self._rest, events)
            self._rest = b""
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[Any]) -> None:
        if self._may_have_mark:
            line, self._may_have_mark = line.removeprefix(_BYTE_ORDER_MARK), False
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            if self._data:
                self._dispatch(b"\n".join(self._data), events)
                self._data.clear()
            self._name = b""
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ")
        elif not line.startswith(b":") and line.partition(b":")[0] not in _KNOWN_FIELDS:
            self.skipped += 1

    def _dispatch(self, data: bytes, events: list[Any]) -> None:
        if not data.strip():  # it holds nothing that could be lost
            return
        if data == b"[DONE]":
            events.append(DONE)
        elif self._name == b"error":
            events.append(self._error(data))
        elif self._name in _PLAIN_NAMES:
            event = self._object(data)
            if event is None:
                self.skipped += 1
            else:
                events.append(event)
        else:
            self.ignored += 1
            self.ignored_name = self.ignored_name or self._name.decode(errors="replace")

    def _object(self, data: bytes) -> Any | None:
        """Return the JSON object of an event, or its short form, or None for any other content."""
        try:
            event = self._parse(data)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            return None
        return event if isinstance(event, dict | tuple) else None

    def _error(self, data: bytes) -> dict[str, Any]:
        """Return an event named `error` in the form that OpenAI's errors have."""
        event = self._object(data)
        if isinstance(event, dict) and event.get("error"):
            return event
        return {"error": event or data.decode(errors="replace") or "no words"}
