"""The parts of a detail log that the rules use: values, errors, and oddities, each with its line.

`crowdperf.logs.detail_log` reads it. Stricter than the official parsers where they would stop with an exception, and
complete: the official ones use the first value of a key that occurs twice, so that they would miss a second, honest
one.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from crowdperf.gate.documents import TextFile
from crowdperf.kit.records import FINITE, Values, number_of
from crowdperf.kit.text_documents import Json
from crowdperf.logs.detail_log import MARKER, DamagedLine, DetailLog, LogEvent

_SETTINGS = ("effective_", "requested_", "result_", "early_stopping_", "loadgen_version", "sut_name", "num_errors")
"""Keys with one value in a log. An accuracy run repeats others for each part that it loads."""

_LOADED = "loaded_qsl_set"
_TIME = "%m-%d-%Y %H:%M:%S.%f"
_NATURAL_END, _AUDIT = "Ending naturally", "Found Audit Config file"
_QUOTED = 200
_KEPT = 100
"""Messages of one kind that are kept. The others are counted."""

TOKEN_RATES = {
    "Offline": ("result_tokens_per_second", "result_samples_per_second"),
    "Server": ("result_completed_tokens_per_second", "result_completed_samples_per_sec"),
    "SingleStream": ("result_token_throughput_with_loadgen_overhead", "result_qps_with_loadgen_overhead"),
}
"""By scenario the rate of tokens that has the same time as a rate of samples."""

MAX_LINES = 30_000
"""The longest of 3,254 published logs of v5.1 has 4,721: an accuracy run that loads its samples in 388 parts."""

_BEFORE_START_MS = 1.8e13
"""LoadGen counts its clock in unsigned nanoseconds: a message from before its start has 2**64 ns less a little (seen
in 4 of 3,254 published logs of v5.1). Such a time is meaningless."""


@dataclass(frozen=True, slots=True)
class Message:
    """A text of the log with its line."""

    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class LogView(Values[None]):
    """values, lines, times_ms: of the first message of each key, the times by the log's own clock, which begins before
    the run. elapsed_s: from the first power_begin to the last power_end. end_time_s: the time at which the last
    power_end was written. error_count, warning_count: of all messages (`errors` are the first of them).

    Content that LoadGen never writes: `hidden`, lines with the marker after other text. `doubled`, a JSON object with a
    name twice. `falls`, a time before that of the line above. `unflagged`, messages of an error's or a warning's key
    without its flag. More than one of `processes`.

    loaded_count: number of different samples that LoadGen loaded during the run. ends_naturally: whether the log shows
    that the run was not ended by a limit. audit_line: of the message about an audit.config, None without one.
    """

    numbers = FINITE

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
        """True if the whole log could be read."""
        return not self.is_missing and self.problem is None

    def _without(self, key: str, allowed: str) -> None:
        """A rule decides what it means that a value is missing or wrong."""

    @cached_property
    def loaded_samples(self) -> frozenset[int]:
        """The different samples of the first `loaded_qsl_set`."""
        return _samples_in(self.values.get(_LOADED))

    @property
    def scenario(self) -> str | None:
        """The scenario that LoadGen ran."""
        return self.text("effective_scenario")

    @property
    def tokens_of_sample(self) -> float | None:
        """The average number of tokens of an answer in a run, or None if its rates do not determine it."""
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
        """Git's description of LoadGen's folder when it was compiled: "" without changes, "NA" without git."""
        return self.text("loadgen_git_status_message")

    @property
    def source_digest(self) -> str | None:
        """One SHA-256 over the names and SHA-1 digests of LoadGen's sources, or None if the log lists none."""
        files = self.values.get("loadgen_file_sha1")
        if not isinstance(files, dict) or not files:
            return None
        return hashlib.sha256(json.dumps(files, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


class _Messages:
    """The first ones of a kind, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Message] = []
        self.count = 0

    def add(self, text: str, line: int) -> None:
        self.count += 1
        if self.count <= _KEPT:
            self.kept.append(Message(text[:_QUOTED], line))


def _samples_in(value: Json) -> frozenset[int]:
    """The whole numbers of a list. The types of all elements are looked at first, which is quick."""
    if not isinstance(value, list):
        return frozenset()
    is_plain = set(map(type, value)) <= {int}
    return frozenset(value if is_plain else [one for one in value if isinstance(one, int)])  # type: ignore[arg-type]


class _Collector:
    """The state so far."""

    def __init__(self) -> None:
        self.values: dict[str, Json] = {}
        self.lines: dict[str, int] = {}
        self.times_ms: dict[str, float] = {}
        self.errors, self.warnings, self.conflicts = _Messages(), _Messages(), _Messages()
        self.doubled, self.falls, self.unflagged = _Messages(), _Messages(), _Messages()
        self.processes: dict[int, None] = {}
        self.loaded: set[int] = set()
        self.ends_naturally = False
        self.audit_line: int | None = None
        self.power_end: Json = None
        self.end_time_ms: float | None = None
        self._time_ms = 0.0

    def add(self, event: LogEvent) -> None:
        """Add one message."""
        key, value, number = event.key, event.value, event.line
        for text in event.doubled:
            self.doubled.add(text, number)
        self._judge(event)
        time_ms = self._time(event)
        if key == _LOADED:
            self.loaded |= _samples_in(value)
        if key == "power_end":
            self.power_end, self.end_time_ms = value, time_ms
        if key not in self.values:
            self.values[key], self.lines[key] = value, number
            if time_ms is not None:
                self.times_ms[key] = time_ms
        elif key.startswith(_SETTINGS) and self.values[key] != value:
            self.conflicts.add(f"{key} = {self.values[key]!r} in line {self.lines[key]}, then {value!r}", number)

    def _judge(self, event: LogEvent) -> None:
        key, value, number = event.key, event.value, event.line
        if event.is_error:
            self.errors.add(str(value), number)
        elif event.is_warning:
            self.warnings.add(str(value), number)
        if (key.startswith("error_") and not event.is_error) or (key.startswith("warning_") and not event.is_warning):
            self.unflagged.add(f"{key}: {value!s}", number)
        if isinstance(value, str) and value.startswith(_NATURAL_END):
            self.ends_naturally = True
        if key == "warning_generic_message" and str(value).startswith(_AUDIT):
            self.audit_line = number
        if event.process is not None and len(self.processes) < _KEPT:
            self.processes[event.process] = None

    def _time(self, event: LogEvent) -> float | None:
        time_ms = number_of(event.time_ms)
        if time_ms is None or time_ms >= _BEFORE_START_MS:
            return None
        if time_ms < self._time_ms:
            self.falls.add(f"{event.key} at {time_ms} ms, behind a message at {self._time_ms} ms", event.line)
        self._time_ms = time_ms
        return time_ms


def _moment(value: Json) -> datetime | None:
    try:
        return datetime.strptime(value, _TIME) if isinstance(value, str) else None
    except ValueError:
        return None


def bounded_log(source: TextFile) -> DetailLog:
    """Return the detail log in a file, which is read as far as a log of a submission may go."""
    return DetailLog(source.text, MAX_LINES)


def log_view(source: TextFile, log: DetailLog | None = None) -> LogView:
    """Return the input of a rule. log: that of `bounded_log`, for rules that need more. It is read to its end."""
    if source.is_missing:
        return LogView(path=source.path, is_missing=True)
    if source.problem:
        return LogView(path=source.path, problem=Message(source.problem, 1))
    if not source.text.startswith(MARKER):
        return LogView(path=source.path, problem=Message(f"the first line does not begin with {MARKER}", 1))
    log, collector = log or bounded_log(source), _Collector()
    try:
        for event in log:
            collector.add(event)
    except DamagedLine as error:
        return LogView(path=source.path, problem=Message(_words_for(error), error.number))
    return _view(source.path, log, collector)


def _words_for(error: DamagedLine) -> str:
    return error.reason if error.number > MAX_LINES else f"damaged message ({error.reason})"


def _view(path: str, log: DetailLog, found: _Collector) -> LogView:
    begin, end = _moment(found.values.get("power_begin")), _moment(found.power_end)
    return LogView(
        path=path,
        values=found.values,
        lines=found.lines,
        errors=tuple(found.errors.kept),
        error_count=found.errors.count,
        warning_count=found.warnings.count,
        conflicts=tuple(found.conflicts.kept),
        hidden=tuple(Message(text, number) for number, text in log.hidden),
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
