"""LoadGen's detail log, read once: its messages with their lines, the last value of each key, errors and warnings.

:::MLLOG {"key": "result_validity", "value": "VALID", "time_ms": 3273.9, "namespace": "mlperf::logging", ...}

The only reader of this file: results, harness, store and the submission gate look at what it finds, each by its own
rules. A line as LoadGen 4.1 to 6.0.17 write it (logging.cc, AsyncLog) is taken apart by its form, any other by JSON.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from crowdperf.kit.records import Kind, Values, number_of
from crowdperf.kit.text_documents import Json

MARKER = ":::MLLOG"
"""What each message begins with."""

_BLANKS = " \t\n\r"
_MAX_SHOWN, _SHOWN = 100, 200
_PLAIN = r'[^"\\\x00-\x1f]*'
_WHOLE = "(?:0|[1-9][0-9]{0,17})"
_HEAD = re.compile(rf'{MARKER} \{{"key": "({_PLAIN})", "value": ')
_TIME = ', "time_ms": '
_TAIL = re.compile(
    rf'((?:0|[1-9][0-9]{{0,17}})\.[0-9]{{1,18}}), "namespace": "{_PLAIN}", "event_type": "{_PLAIN}", '
    rf'"metadata": \{{"is_error": (true|false), "is_warning": (true|false), "file": "{_PLAIN}", '
    rf'"line_no": {_WHOLE}, "pid": ({_WHOLE}), "tid": {_WHOLE}\}}\}}[ \t\r]*'
)


class LogError(Exception):
    """A log that is missing, damaged, or ends before the result; the text names the file, the line and the key."""


class DamagedLine(LogError):
    """A line that is no message of LoadGen, or one behind the last that is read. number: from 1; reason: why."""

    def __init__(self, number: int, reason: str, line: str = "") -> None:
        text = f": {line[:120]!r}" if line else ""
        super().__init__(f"line {number} of the detail log is damaged ({reason}){text}")
        self.number, self.reason, self.line = number, reason, line[:120]


class LogEvent(NamedTuple):
    """One message. time_ms: from the start of the log, as written: None where there is none. process: the writer's.
    doubled: names that an object in it has twice, with both values: such a message is JSON, but LoadGen writes none.
    A tuple, because there are many."""

    key: str
    value: Json
    time_ms: Json
    is_error: bool
    is_warning: bool
    line: int
    process: int | None
    doubled: tuple[str, ...] = ()


def _decoder(doubled: list[str]) -> json.JSONDecoder:
    """Return a reader of JSON that adds the names which an object has twice. (It refers to no object that refers to it:
    a cycle would keep the lists of each log until a garbage collection.)"""

    def object_of(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) != len(pairs) and len(doubled) < _MAX_SHOWN:
            seen: dict[str, Json] = {}
            for name, value in pairs:
                if name in seen:
                    doubled.append(f"{name!r}: {str(seen[name])[:60]}, then {str(value)[:60]}")
                    break
                seen[name] = value
        return found

    return json.JSONDecoder(object_pairs_hook=object_of)


def _only(decoder: json.JSONDecoder, text: str) -> Any:
    """Return the one value in a text. Raises ValueError where there is none, or more."""
    text = text.strip(_BLANKS)
    value, end = decoder.raw_decode(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _event(decoder: json.JSONDecoder, doubled: list[str], line: str, number: int) -> LogEvent:
    """Return the message in a line of any form; raises DamagedLine."""
    doubled.clear()
    try:
        record = _only(decoder, line[len(MARKER) :])
        key, value, metadata = record["key"], record["value"], record["metadata"]
        is_error, time_ms = metadata["is_error"], record.get("time_ms")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedLine(number, f"{type(error).__name__}: {error}", line) from error
    if not isinstance(key, str) or not isinstance(is_error, bool):
        raise DamagedLine(number, "key or is_error of a wrong type", line)
    is_warning, process = metadata.get("is_warning", key.startswith("warning_")) is True, metadata.get("pid")
    process = process if isinstance(process, int) else None
    return LogEvent(key, value, time_ms, is_error, is_warning, number, process, tuple(doubled))


class DetailLog:
    """A detail log, of which no more is read than is asked for, and nothing twice.

    Whoever goes through it gets each message once, in order; `last`, `errors`, `warnings` and `invalid_reasons` hold
    what was gone through so far, `values` all there is. hidden: the first lines with the marker behind something else,
    which LoadGen never writes. Raises DamagedLine, each time anew, where a line is none that can be read.
    """

    def __init__(self, text: str, most_lines: int | None = None) -> None:
        """most_lines: what has more is damaged, and not read further."""
        self._text = text
        self._most_lines = most_lines
        self._problem: tuple[int, str, str] | None = None
        self._begun: Iterator[LogEvent] | None = None
        self.last: dict[str, LogEvent] = {}
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.invalid_reasons: list[str] = []
        self.hidden: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[LogEvent]:
        """Go through the messages that nobody has gone through yet."""
        left = self._left()
        while (event := next(left, None)) is not None:  # a `yield from` ends for all where one of them stops
            yield event
        if self._problem is not None:
            raise DamagedLine(*self._problem)

    @property
    def values(self) -> LoggedValues:
        """The last value of each key, of the whole log."""
        self.read()
        return LoggedValues(self.last.values())

    def read(self) -> DetailLog:
        """Go through what is left, and return the log."""
        deque(self._left(), maxlen=0)
        if self._problem is not None:
            raise DamagedLine(*self._problem)
        return self

    def _left(self) -> Iterator[LogEvent]:
        if self._begun is None:
            self._begun = self._messages()
        return self._begun

    def _messages(self) -> Iterator[LogEvent]:
        try:
            for event in self._parsed():
                self.last[event.key] = event
                if event.is_error:
                    self.errors.append(str(event.value))
                if event.is_warning:
                    self.warnings.append(str(event.value))
                if event.key == "result_invalid_reason":
                    self.invalid_reasons.append(str(event.value).strip())
                yield event
        except DamagedLine as problem:
            self._problem = problem.number, problem.reason, problem.line
        self._text = ""

    def _parsed(self) -> Iterator[LogEvent]:
        """Yield the messages. Each line by itself: a list of them would be as large as the text again."""
        text, most_lines = self._text, self._most_lines
        number, start, size, doubled = 0, 0, len(text), list[str]()
        decoder = _decoder(doubled)
        head_of, tail_of, scan, place = _HEAD.match, _TAIL.fullmatch, decoder.raw_decode, len(_TIME)
        while start < size:
            number, end = number + 1, text.find("\n", start)
            end = size if end < 0 else end
            if most_lines is not None and number > most_lines:
                raise DamagedLine(number, f"more than {most_lines} lines, so the rest was not read")
            event, head = None, head_of(text, start, end)
            if head is not None:
                # What is between head and tail is the value, if it is one JSON value to its end: then the message has
                # each name once, and JSON of the whole line would give the same.
                value_at, tail_at = head.end(), text.rfind(_TIME, start, end)
                tail = tail_of(text, tail_at + place, end) if tail_at >= value_at else None
                if tail is not None:
                    doubled.clear()
                    try:
                        value, value_end = scan(text, value_at)
                    except (ValueError, RecursionError):
                        value, value_end = None, -1  # said by the reading of the whole line, below
                    if value_end == tail_at:
                        time_text, is_error, is_warning, process = tail.groups()
                        event = LogEvent(head[1], value, float(time_text), is_error == "true", is_warning == "true",
                                         number, int(process), tuple(doubled))  # fmt: skip
            if event is not None:
                yield event
            elif text.startswith(MARKER, start):
                yield _event(decoder, doubled, text[start:end], number)
            elif len(self.hidden) < _MAX_SHOWN and text.find(MARKER, start, end) >= 0:
                self.hidden.append((number, text[start:end][:_SHOWN]))
            start = end + 1


class LoggedValues(Values[NoReturn]):
    """The last value of each key, fetched with its type checked: LogError for a missing or another one."""

    numbers = Kind(
        "a number", lambda value: None if isinstance(value, bool) or not isinstance(value, int | float) else value
    )

    def __init__(self, events: Iterable[LogEvent]) -> None:
        self.values = {event.key: event.value for event in events}

    def has(self, key: str) -> bool:
        return key in self.values

    def beginning(self, *prefixes: str) -> dict[str, Json]:
        """Return the values of the keys that begin with one of these, by key."""
        return {key: value for key, value in self.values.items() if key.startswith(prefixes)}

    def _without(self, key: str, allowed: str) -> NoReturn:
        if key not in self.values:
            raise LogError(f"the detail log has no key {key!r}: the run ended early, or this LoadGen is not known here")
        raise LogError(f"the detail log's {key!r} should be {allowed}, found {self.values[key]!r}")

    def integer(self, key: str) -> int:
        found = number_of(self.number(key))
        return int(self._without(key, "a finite number") if found is None else found)

    def integer_or_none(self, key: str) -> int | None:
        return self.integer(key) if self.has(key) else None
