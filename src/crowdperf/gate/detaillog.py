"""Reads LoadGen's mlperf_log_detail.txt for the rules: values, errors, and what is odd, each with its line.

Stricter than the official parsers where they would stop with an exception, and blind to nothing: the official ones take
the first value of a key that comes twice, so that a second, honest one would go unseen.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from crowdperf.gate.documents import TextFile
from crowdperf.kit.text_documents import Json
from crowdperf.logs.log_lines import LogEvent, decoded

_MARKER = ":::MLLOG"
_SETTINGS = ("effective_", "requested_", "result_", "early_stopping_", "loadgen_version", "sut_name", "num_errors")
"""Keys of which a log has one value; an accuracy run repeats others for each part that it loads."""

_NUMBERS = (int, float)
_LOADED = "loaded_qsl_set"
_TIME = "%m-%d-%Y %H:%M:%S.%f"
_NATURAL_END, _AUDIT = "Ending naturally", "Found Audit Config file"
_QUOTED = 200
_KEPT = 100
"""Messages of one kind that are kept; the others are counted."""

TOKEN_RATES = {
    "Offline": ("result_tokens_per_second", "result_samples_per_second"),
    "Server": ("result_completed_tokens_per_second", "result_completed_samples_per_sec"),
    "SingleStream": ("result_token_throughput_with_loadgen_overhead", "result_qps_with_loadgen_overhead"),
}
"""By scenario the rate of tokens that has the same time as a rate of samples."""

_MOST_LINES = 30_000
"""The longest of 3,254 published logs of v5.1 has 4,721: an accuracy run that loads its samples in 388 parts."""

_BEFORE_START_MS = 1.8e13
"""LoadGen counts its clock in unsigned nanoseconds: a message from before its start has 2**64 ns less a little (seen in
4 of 3,254 published logs of v5.1). Such a time says nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    """A text of the log with its line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLog:
    """values, lines, times_ms: of the first message of each key, the times by the log's own clock, which begins before
    the run. elapsed_s: from the first power_begin to the last power_end. end_time_s: when the last power_end was
    written. error_count, warning_count: of all messages; `errors` are the first of them.

    What LoadGen never writes: `hidden`, lines with the marker behind something else; `doubled`, a JSON object with a
    name twice; `falls`, a time before that of the line above; `unflagged`, messages of an error's or a warning's key
    without its flag; more than one of `processes`.

    loaded_count: how many different samples LoadGen had loaded in the course of the run. ends_naturally: whether
    LoadGen says that no limit ended it. audit_line: of the message that there was an audit.config, None without.
    """

    path: str
    is_missing: bool = False
    problem: Message | None = None
    values: Mapping[str, Json] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[Message, ...] = ()
    error_count: int = 0
    warning_count: int = 0
    conflicts: tuple[Message, ...] = ()
    hidden: tuple[Message, ...] = ()
    doubled: tuple[Message, ...] = ()
    falls: tuple[Message, ...] = ()
    unflagged: tuple[Message, ...] = ()
    processes: tuple[int, ...] = ()
    loaded_count: int = 0
    ends_naturally: bool = False
    audit_line: int | None = None
    times_ms: Mapping[str, float] = field(default_factory=dict)
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

    @property
    def scenario(self) -> str | None:
        """The scenario that LoadGen ran."""
        return self.text("effective_scenario")

    @property
    def tokens_of_sample(self) -> float | None:
        """How many tokens a run answered a sample with on average; None where its rates do not say it."""
        tokens, samples = (self.number(key) for key in TOKEN_RATES.get(self.scenario or "", ("", "")))
        return tokens / samples if tokens is not None and samples is not None and min(tokens, samples) > 0 else None

    @property
    def loadgen_version(self) -> str | None:
        """The version without the revision: "6.0.17" of "6.0.17 @ d6147c7eb7"."""
        value = self.text("loadgen_version")
        return None if value is None else value.partition("@")[0].strip()

    @property
    def build_date(self) -> str | None:
        """When LoadGen was compiled, in UTC, ISO 8601."""
        return self.text("loadgen_build_date_utc")

    @property
    def git_status(self) -> str | None:
        """What git said of LoadGen's folder when it was compiled: "" where nothing was changed, "NA" without git."""
        return self.text("loadgen_git_status_message")

    @property
    def source_digest(self) -> str | None:
        """One SHA-256 over the names and SHA-1 digests of LoadGen's sources; None where the log lists none."""
        files = self.values.get("loadgen_file_sha1")
        if not isinstance(files, dict) or not files:
            return None
        return hashlib.sha256(json.dumps(files, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def number_of(value: Json) -> float | None:
    """Return a finite number, None for anything else (a truth value is none)."""
    if value is True or value is False or not isinstance(value, _NUMBERS):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer of thousands of digits
        return None


class _Messages:
    """The first ones of a kind, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Message] = []
        self.count = 0

    def add(self, text: str, line: int) -> None:
        self.count += 1
        if self.count <= _KEPT:
            self.kept.append(Message(text[:_QUOTED], line))


class _Collector:
    """What was seen so far."""

    def __init__(self, events: list[LogEvent] | None) -> None:
        self._events = events
        self.values: dict[str, Json] = {}
        self.lines: dict[str, int] = {}
        self.times_ms: dict[str, float] = {}
        self.errors, self.warnings, self.conflicts = _Messages(), _Messages(), _Messages()
        self.hidden, self.doubled, self.falls, self.unflagged = _Messages(), _Messages(), _Messages(), _Messages()
        self.processes: dict[int, None] = {}
        self.loaded: set[int] = set()
        self.ends_naturally = False
        self.audit_line: int | None = None
        self.power_end: Json = None
        self.end_time_ms: float | None = None
        self._time_ms = 0.0
        self._line = 0

    def object_of(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: dict[str, Json] = {}
            for name, value in pairs:
                if name in seen:
                    self.doubled.add(f"{name!r}: {str(seen[name])[:60]}, then {str(value)[:60]}", self._line)
                    break
                seen[name] = value
        return found

    def add(self, decoder: json.JSONDecoder, line: str, number: int) -> str:
        """Take in one message; returns what is wrong with it, empty where nothing is."""
        self._line = number
        try:
            record = decoded(decoder, line[len(_MARKER) :])
            key, value, metadata = record["key"], record["value"], record["metadata"]
            is_error = metadata["is_error"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return f"damaged message ({type(error).__name__}: {error})"
        if not isinstance(key, str) or not isinstance(is_error, bool):
            return "damaged message (key or is_error of a wrong type)"
        self._judge(key, value, metadata, number)
        time_ms = self._time(key, record)
        if key == _LOADED and isinstance(value, list):
            self.loaded.update({sample for sample in value if isinstance(sample, int)})
        if key == "power_end":
            self.power_end, self.end_time_ms = value, time_ms
        if self._events is not None:
            is_warning = metadata.get("is_warning") is True
            self._events.append(LogEvent(key, value, time_ms or 0.0, is_error, is_warning))
        if key not in self.values:
            self.values[key], self.lines[key] = value, number
            if time_ms is not None:
                self.times_ms[key] = time_ms
        elif key.startswith(_SETTINGS) and self.values[key] != value:
            self.conflicts.add(f"{key} = {self.values[key]!r} in line {self.lines[key]}, then {value!r}", number)
        return ""

    def _judge(self, key: str, value: Json, metadata: Mapping[str, Json], number: int) -> None:
        is_error, is_warning = metadata["is_error"], metadata.get("is_warning", key.startswith("warning_"))
        if is_error:
            self.errors.add(str(value), number)
        elif is_warning is True:
            self.warnings.add(str(value), number)
        if (key.startswith("error_") and not is_error) or (key.startswith("warning_") and is_warning is not True):
            self.unflagged.add(f"{key}: {value!s}", number)
        if isinstance(value, str) and value.startswith(_NATURAL_END):
            self.ends_naturally = True
        if key == "warning_generic_message" and str(value).startswith(_AUDIT):
            self.audit_line = number
        process = metadata.get("pid")
        if isinstance(process, int) and len(self.processes) < _KEPT:
            self.processes[process] = None

    def _time(self, key: str, record: Mapping[str, Json]) -> float | None:
        time_ms = number_of(record.get("time_ms"))
        if time_ms is None or time_ms >= _BEFORE_START_MS:
            return None
        if time_ms < self._time_ms:
            self.falls.add(f"{key} at {time_ms} ms, behind a message at {self._time_ms} ms", self._line)
        self._time_ms = time_ms
        return time_ms


def _moment(value: Json) -> datetime | None:
    try:
        return datetime.strptime(value, _TIME) if isinstance(value, str) else None
    except ValueError:
        return None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, one at a time: a list of them would be as large as the text again."""
    number, start = 1, 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, text[start:end]
        number, start = number + 1, end + 1


def parse_detail_log(source: TextFile, events: list[LogEvent] | None = None) -> DetailLog:
    """Return what a detail log says. events: a list to which every message is added, for who reads more of them."""
    if source.is_missing:
        return DetailLog(path=source.path, is_missing=True)
    if source.problem:
        return DetailLog(path=source.path, problem=Message(source.problem, 1))
    if not source.text.startswith(_MARKER):
        return DetailLog(path=source.path, problem=Message(f"the first line does not begin with {_MARKER}", 1))
    collector = _Collector(events)
    # One for all lines; the collector does not hold it: a cycle would keep each log's lists until a garbage collection.
    decoder = json.JSONDecoder(object_pairs_hook=collector.object_of)
    for number, line in _lines(source.text):
        if number > _MOST_LINES:
            problem = f"more than {_MOST_LINES} lines; not read further"
            return DetailLog(path=source.path, problem=Message(problem, number))
        if line.startswith(_MARKER):
            problem = collector.add(decoder, line, number)
            if problem:
                return DetailLog(path=source.path, problem=Message(problem, number))
        elif _MARKER in line:
            collector.hidden.add(line, number)
    return _log(source.path, collector)


def _log(path: str, found: _Collector) -> DetailLog:
    begin, end = _moment(found.values.get("power_begin")), _moment(found.power_end)
    return DetailLog(
        path=path,
        values=found.values,
        lines=found.lines,
        errors=tuple(found.errors.kept),
        error_count=found.errors.count,
        warning_count=found.warnings.count,
        conflicts=tuple(found.conflicts.kept),
        hidden=tuple(found.hidden.kept),
        doubled=tuple(found.doubled.kept),
        falls=tuple(found.falls.kept),
        unflagged=tuple(found.unflagged.kept),
        processes=tuple(found.processes),
        loaded_count=len(found.loaded),
        ends_naturally=found.ends_naturally,
        audit_line=found.audit_line,
        times_ms=found.times_ms,
        elapsed_s=(end - begin).total_seconds() if begin and end else None,
        end_time_s=None if found.end_time_ms is None else found.end_time_ms / 1000,
    )
