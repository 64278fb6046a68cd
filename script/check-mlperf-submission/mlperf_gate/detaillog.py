"""Reads LoadGen's mlperf_log_detail.txt for the rules: values, errors, and what is odd, each with its line.

Stricter than the official parsers where they would stop with an exception, and blind to nothing: the official ones take
the first value of a key that comes twice, so that a second, honest one would go unseen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from mlperf_gate.documents import Json, TextFile

_MARKER = ":::MLLOG"
_SETTINGS = ("effective_", "requested_", "result_", "early_stopping_", "loadgen_version", "sut_name", "num_errors")
"""Keys of which a log has one value; an accuracy run repeats others for each part that it loads."""

_TIME = "%m-%d-%Y %H:%M:%S.%f"
_QUOTED = 200


@dataclass(frozen=True, slots=True)
class Message:
    """A text of the log with its line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLog:
    """values, lines: of the first message of each key. elapsed_s: from the first power_begin to the last
    power_end. end_time_s: when the last power_end was written, by the log's own clock, which begins before the run."""

    path: str
    is_missing: bool = False
    problem: Message | None = None
    values: Mapping[str, Json] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[Message, ...] = ()
    conflicts: tuple[Message, ...] = ()
    elapsed_s: float | None = None
    end_time_s: float | None = None

    @property
    def is_usable(self) -> bool:
        """True where the whole log could be read."""
        return not self.is_missing and self.problem is None

    def number(self, key: str) -> float | None:
        """Return a finite number, None for a key that is missing or holds anything else."""
        return number_of(self.values.get(key))

    def text(self, key: str) -> str | None:
        """Return a text, None for a key that is missing or holds anything else."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None


def number_of(value: Json) -> float | None:
    """Return a finite number, None for anything else (a truth value is none)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer of thousands of digits
        return None


class _Collector:
    """What was seen so far."""

    def __init__(self) -> None:
        self.values: dict[str, Json] = {}
        self.lines: dict[str, int] = {}
        self.errors: list[Message] = []
        self.conflicts: list[Message] = []
        self.power_end: Json = None
        self.end_time_ms: float | None = None

    def add(self, line: str, number: int) -> str:
        """Take in one message; returns what is wrong with it, empty where nothing is."""
        try:
            record = json.loads(line[len(_MARKER) :])
            key, value, is_error = record["key"], record["value"], record["metadata"]["is_error"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return f"damaged message ({type(error).__name__}: {error})"
        if not isinstance(key, str) or not isinstance(is_error, bool):
            return "damaged message (key or is_error of a wrong type)"
        if is_error:
            self.errors.append(Message(str(value)[:_QUOTED], number))
        if key == "power_end":
            self.power_end, self.end_time_ms = value, number_of(record.get("time_ms"))
        if key not in self.values:
            self.values[key], self.lines[key] = value, number
        elif key.startswith(_SETTINGS) and self.values[key] != value:
            text = f"{key} = {self.values[key]!r} in line {self.lines[key]}, then {value!r}"
            self.conflicts.append(Message(text[:_QUOTED], number))
        return ""


def _moment(value: Json) -> datetime | None:
    try:
        return datetime.strptime(value, _TIME) if isinstance(value, str) else None
    except ValueError:
        return None


def parse_detail_log(source: TextFile) -> DetailLog:
    """Return what a detail log says."""
    if source.is_missing:
        return DetailLog(path=source.path, is_missing=True)
    if source.problem:
        return DetailLog(path=source.path, problem=Message(source.problem, 1))
    if not source.text.startswith(_MARKER):
        return DetailLog(path=source.path, problem=Message(f"the first line does not begin with {_MARKER}", 1))
    collector = _Collector()
    for number, line in enumerate(source.text.split("\n"), start=1):
        problem = collector.add(line, number) if line.startswith(_MARKER) else ""
        if problem:
            return DetailLog(path=source.path, problem=Message(problem, number))
    begin, end = _moment(collector.values.get("power_begin")), _moment(collector.power_end)
    return DetailLog(
        path=source.path,
        values=collector.values,
        lines=collector.lines,
        errors=tuple(collector.errors),
        conflicts=tuple(collector.conflicts),
        elapsed_s=(end - begin).total_seconds() if begin and end else None,
        end_time_s=None if collector.end_time_ms is None else collector.end_time_ms / 1000,
    )
