"""Reads the lines of LoadGen's detail log, and the values in them with their types checked.

:::MLLOG {"key": "result_validity", "value": "VALID", "time_ms": 3273.9, ..., "metadata": {"is_error": false,
...}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What a JSON file can hold."""

_PREFIX = ":::MLLOG "
_BLANKS = " \t\n\r"
_DECODER = json.JSONDecoder()  # asked itself, because json.loads costs as much again for so short texts


class LogError(Exception):
    """A log that is missing, damaged, or ends before the result; the text names the file, the line and the key."""


class LogEvent(NamedTuple):
    """One line of the detail log; `time_ms` counts from the start of the log. A tuple, because there are many."""

    key: str
    value: Json
    time_ms: float
    is_error: bool
    is_warning: bool


def decoded(decoder: json.JSONDecoder, text: str) -> Any:
    """Return the one value in a text. Raises ValueError where there is none, or more."""
    text = text.strip(_BLANKS)
    value, end = decoder.raw_decode(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_events(text: str) -> tuple[LogEvent, ...]:
    """Return the events of a detail log in order; raises LogError with the line number for a damaged line."""
    events = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith(_PREFIX):
            continue
        try:
            record = decoded(_DECODER, line[len(_PREFIX) :])
            metadata = record["metadata"]
            event = LogEvent(
                key=record["key"],
                value=record["value"],
                time_ms=record["time_ms"],
                is_error=metadata["is_error"],
                is_warning=metadata["is_warning"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise LogError(f"line {number} of the detail log is damaged ({error}): {line[:120]!r}") from error
        events.append(event)
    return tuple(events)


class Values:
    """The last value of each key, fetched with its type checked."""

    def __init__(self, events: Sequence[LogEvent]) -> None:
        self._values = {event.key: event.value for event in events}

    def has(self, key: str) -> bool:
        return key in self._values

    def _get(self, key: str) -> Json:
        if key not in self._values:
            raise LogError(f"the detail log has no key {key!r}: the run ended early, or this LoadGen is not known here")
        return self._values[key]

    def number(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise LogError(f"the detail log's {key!r} should be a number, found {value!r}")
        return value

    def integer(self, key: str) -> int:
        return int(self.number(key))

    def integer_or_none(self, key: str) -> int | None:
        return self.integer(key) if self.has(key) else None

    def truth(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise LogError(f"the detail log's {key!r} should be true or false, found {value!r}")
        return value

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise LogError(f"the detail log's {key!r} should be a text, found {value!r}")
        return value
