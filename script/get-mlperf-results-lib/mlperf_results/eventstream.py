"""Reads a stream of server-sent events from bytes, however the network cuts them. Pure.

    data: {"choices": [{"text": " word"}]}

    data: [DONE]

Format: "Server-sent events", HTML Living Standard, section 9.2; `[DONE]` and JSON in `data` are OpenAI's. Only whole
lines are decoded, so a character of several bytes is never cut. What cannot be read is counted, not passed over.
"""

from __future__ import annotations

import json
from typing import Any, Final

DONE: Final = "[DONE]"
LONGEST_LINE_BYTES = 1 << 20
"""The longest line: 1 MiB, this project's choice. The longest that are known repeat the prompt's tokens."""
_KNOWN_FIELDS = (b"event", b"id", b"retry")


class StreamError(Exception):
    """A stream that cannot be read on; the text says why."""


class EventStream:
    """Turns bytes into the JSON objects of the events, and DONE. skipped: lines and events that could not be read."""

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        self._size_bytes = 0
        self._rest = b""
        self._data: list[bytes] = []
        self.skipped = 0

    def feed(self, received: bytes) -> list[Any]:
        """Return the events that `received` completes; raises StreamError for a line or a stream without an end."""
        self._size_bytes += len(received)
        if self._size_bytes > self._largest_bytes:
            raise StreamError(f"the stream is longer than {self._largest_bytes:,} bytes, the most for this request")
        lines = (self._rest + received).split(b"\n") if self._rest else received.split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE_BYTES:
            raise StreamError(f"a line of the stream is longer than {LONGEST_LINE_BYTES:,} bytes")
        events: list[Any] = []
        for line in lines:
            self._take(line.removesuffix(b"\r"), events)
        return events

    def end(self) -> list[Any]:
        """Return the event that the end of the stream completes, where its empty line is missing."""
        events: list[Any] = []
        if self._rest:
            self._take(self._rest.removesuffix(b"\r"), events)
            self._rest = b""
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[Any]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            if self._data:
                self._dispatch(b"\n".join(self._data), events)
                self._data.clear()
        elif not line.startswith(b":") and line.partition(b":")[0] not in _KNOWN_FIELDS:
            self.skipped += 1

    def _dispatch(self, data: bytes, events: list[Any]) -> None:
        if data == b"[DONE]":
            events.append(DONE)
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            self.skipped += 1
            return
        if isinstance(event, dict):
            events.append(event)
        else:
            self.skipped += 1
