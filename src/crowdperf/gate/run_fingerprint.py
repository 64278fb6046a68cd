"""Every LoadGen run of a tree by what tells it from others: where its log lies, its content, its process, its build.

A rule that compares runs asks the register of the tree. It notes each detail log when that is read for the rules on it,
and reads what is left at the first question. Where one submitter is checked, only its runs are in it: another one's
copies are not its fault.

Tells a run from a copy whose latencies were all shifted, all scaled, or both: they keep their proportions. Pure.

Of the 877 different runs of the published round v5.1 no two have one percentile in such a proportion by chance.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TypeAlias, TypeVar

from crowdperf.gate.documents import TextFile, as_text_file, limit_of, read_bytes, read_text
from crowdperf.gate.listing import Listing
from crowdperf.gate.log_view import LogView, log_view
from crowdperf.kit.text_documents import Json
from crowdperf.logs.score_lines import parse_hashes

LATENCIES = (
    "result_50.00_percentile_latency_ns", "result_90.00_percentile_latency_ns", "result_99.00_percentile_latency_ns",
    "result_min_latency_ns", "result_95.00_percentile_latency_ns", "result_97.00_percentile_latency_ns",
    "result_99.90_percentile_latency_ns", "result_max_latency_ns",
)  # fmt: skip
"""In nanoseconds. The first three give the proportion by which a copy is found."""

Latencies: TypeAlias = Sequence[float]

_MIN_SPREAD_NS = 100_000
"""From the median to the 99th percentile. Below it nanoseconds agree by chance."""

_WRITTEN_NS = 2.0
"""Latencies are whole nanoseconds in both logs."""

_ENOUGH = 3


def proportion(latencies: Latencies) -> float | None:
    """Return the position of the 90th percentile between the median, 0, and the 99th, 1, or None if they are too
    near."""
    median, p90, p99 = latencies[:3]
    return (p90 - median) / (p99 - median) if p99 - median >= _MIN_SPREAD_NS else None


def slack(latencies: Latencies) -> float:
    """Return how far the proportion of a copy may be from this one's, because it was written in whole nanoseconds."""
    return 4 * _WRITTEN_NS / (latencies[2] - latencies[0])


def is_copy(one: Latencies, other: Latencies) -> bool:
    """Return whether at least three more latencies of the one give those of the other by one factor and one summand."""
    spread = one[2] - one[0]
    factor = (other[2] - other[0]) / spread
    agreeing = {
        mine
        for mine, its in zip(one, other, strict=True)
        if mine not in (one[0], one[2])
        and abs(other[0] + factor * (mine - one[0]) - its)
        <= _WRITTEN_NS * (1 + max(1.0, factor) * abs(mine - one[0]) / spread)
    }
    return len(agreeing) >= _ENOUGH


DETAIL_NAME, RESPONSES_NAME = "mlperf_log_detail.txt", "mlperf_log_accuracy.json"
_TOPS = ("results", "compliance")
_SCENARIO_PARTS = 6
"""division/submitter/results/SYSTEM/MODEL/SCENARIO, and `compliance` instead of `results` up to v5.1."""

_KINDS = re.compile(r"performance/run_[0-9]+|accuracy|TEST[^/]+/(performance/run_[0-9]+|accuracy)")
_LEVEL = re.compile(r"-(95|99|99\.9)$")
_KEPT = (
    "test_datetime", "loadgen_version", "loadgen_build_date_utc", "sut_name", "qsl_name", "power_begin",
    "effective_scenario", "qsl_reported_total_count", "effective_accuracy_sample_count",
    "effective_performance_sample_count", "effective_qsl_rng_seed", "effective_sample_index_rng_seed",
    "effective_schedule_rng_seed", "effective_samples_per_query",
)  # fmt: skip
FIGURES = (
    "result_query_count", "result_min_latency_ns", "result_max_latency_ns", "result_mean_latency_ns",
    "result_50.00_percentile_latency_ns",
)  # fmt: skip
_CHOICE = (
    "loadgen_build_date_utc", "effective_qsl_rng_seed", "qsl_reported_total_count",
    "effective_performance_sample_count", "effective_scenario", "effective_samples_per_query",
)  # fmt: skip
SOURCES = "loadgen_file_sha1"
_EQUALLY = "effective_sample_concatenate_permutation"
_LARGEST = 2.0**63
MAX_ALIKE = 50
"""So many logs with one digest or proportion are made by hand, and each is the copy of another."""

_ENTRY = b'"qsl_idx"'
_TOUCH_S = 2.0
"""test_datetime is cut to seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLocation:
    """The place of a log. kind: `performance/run_1`, `accuracy`, `TEST01/performance/run_1` or `TEST01/accuracy`."""

    division: str
    submitter: str
    system: str
    model: str
    scenario: str
    kind: str

    @property
    def folder(self) -> tuple[str, ...]:
        """The common key of the logs of one result."""
        return (self.division, self.submitter, self.system, self.model, self.scenario)

    @property
    def test(self) -> str:
        """The compliance test, empty for a run of the result itself."""
        return self.kind.partition("/")[0] if self.kind.startswith("TEST") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """What is kept of a detail log. fields: the values of `_KEPT`, and under `SOURCES` one digest of LoadGen's sources;
    none of a log that is damaged, which other rules refuse. loaded: the digest of the samples that a performance run
    loaded, empty of other runs. clock: when queries were generated and when the run ended by the log's own clock, in
    milliseconds. latencies: those of `LATENCIES`, None where one is missing. answer_tokens: the mean
    length of the answers of a run that issued all samples equally often, None of other runs. span_s: when queries were
    generated and when the run ended, in seconds since 1970.
    """

    path: str
    place: LogLocation
    digest: str
    process: int | None
    fields: Mapping[str, Json]
    loaded: str = ""
    clock: tuple[float, float] | None = None
    latencies: tuple[float, ...] | None = None
    answer_tokens: float | None = None
    span_s: tuple[float, float] | None = None

    @property
    def choice(self) -> tuple[Json, ...] | None:
        """The settings that decide which samples a performance run loads, and in which order. None for an accuracy
        run."""
        return tuple(self.fields.get(key) for key in _CHOICE) if self.loaded else None

    @property
    def folder(self) -> tuple[str, ...]:
        """The common key with the other logs of its result."""
        return self.place.folder

    @property
    def model(self) -> tuple[str, ...]:
        """The common key with the runs of its model in other scenarios."""
        return self.place.folder[:-1]

    @property
    def build(self) -> str | None:
        """When its LoadGen was built: with microseconds, so that one build has one moment."""
        return self.text("loadgen_build_date_utc")

    @property
    def start(self) -> tuple[str, str, int] | None:
        """LoadGen's build, the second of the start and the process, or None if one is missing."""
        build, second = self.build, self.text("test_datetime")
        return (build, second, self.process) if build and second and self.process is not None else None

    @property
    def figures(self) -> tuple[Json, ...] | None:
        """A key that no second run can share: its latencies in nanoseconds. None for an accuracy run."""
        found = tuple(self.fields.get(key) for key in FIGURES)
        return found if all(isinstance(one, int) and one > 0 for one in found) else None

    def text(self, key: str) -> str | None:
        """Return a text, or None for a key that is missing or has another value."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesMark:
    """One accuracy log with at least one response. hash: in the accuracy.txt next to it, None without one."""

    path: str
    place: LogLocation
    digest: str
    hash: str | None

    @property
    def folder(self) -> tuple[str, ...]:
        """The common key with the other logs of its result."""
        return self.place.folder


def task_of(model: str) -> str:
    """Return a model's name without its level of accuracy: bert of bert-99 and bert-99.9."""
    return _LEVEL.sub("", model)


def place_of(path: str) -> LogLocation | None:
    """Return the place of a log by its path in the tree, or None for a file that is not a log of a run."""
    parts = path.split("/")
    kind = "/".join(parts[_SCENARIO_PARTS:-1])
    if len(parts) <= _SCENARIO_PARTS or parts[2] not in _TOPS or not _KINDS.fullmatch(kind):
        return None
    division, submitter, _, system, model, scenario = parts[:_SCENARIO_PARTS]
    return LogLocation(division=division, submitter=submitter, system=system, model=model, scenario=scenario, kind=kind)


class RunRegister:
    """All runs of a tree."""

    def __init__(self, listing: Listing, submitter: str | None) -> None:
        self._listing = listing
        self._submitter = submitter
        self._marks: dict[str, RunMark] = {}
        self._runs: dict[str, _Groups[RunMark]] = {}
        self._responses: dict[str, _Groups[ResponsesMark]] = {}

    def _place_of(self, path: str) -> LogLocation | None:
        place = place_of(path)
        return place if place and self._submitter in (None, place.submitter) else None

    def _contents(self, name: str) -> Iterator[tuple[str, LogLocation, bytes]]:
        for path in self._listing.sizes:
            place = self._place_of(path) if path.endswith(f"/{name}") and path not in self._marks else None
            content = read_bytes(self._listing, path) if place else ""
            if place and isinstance(content, bytes):
                yield path, place, content

    def log(self, path: str) -> LogView:
        """Return the content of a detail log, and keep the mark of its run, so that it is read once."""
        if path not in self._listing.sizes:
            return log_view(TextFile(path=path, is_missing=True))
        content, place = read_bytes(self._listing, path, limit_of(path)), self._place_of(path)
        if isinstance(content, str):
            return log_view(TextFile(path=path, problem=content))
        log = log_view(as_text_file(path, content))
        if place:
            self._marks[path] = _run_mark(path, place, content, log)
        return log

    @cached_property
    def runs(self) -> tuple[RunMark, ...]:
        """Every detail log that can be read: those that were read as `log`, and the others, which are read now."""
        for path, place, content in self._contents(DETAIL_NAME):
            self._marks[path] = _run_mark(path, place, content, log_view(as_text_file(path, content)))
        return tuple(self._marks[path] for path in self._listing.sizes if path in self._marks)

    @cached_property
    def responses(self) -> tuple[ResponsesMark, ...]:
        """Every accuracy log of accuracy runs and compliance tests that contains a response."""
        return tuple(
            ResponsesMark(
                path=path, place=place, digest=hashlib.sha256(content).hexdigest(), hash=self._hash_beside(path)
            )
            for path, place, content in self._contents(RESPONSES_NAME)
            if place.kind.endswith("accuracy") and _ENTRY in content
        )

    def _hash_beside(self, path: str) -> str | None:
        hashes = parse_hashes(read_text(self._listing, path.replace(RESPONSES_NAME, "accuracy.txt")).text)
        return hashes[0].value if hashes else None

    def runs_with(self, name: str, value: object) -> tuple[RunMark, ...]:
        """Return the runs whose attribute `name` has a value, or none for None, which means unknown."""
        if name not in self._runs:
            self._runs[name] = _grouped(self.runs, name)
        return self._runs[name].get(value, ())

    @cached_property
    def _by_proportion(self) -> tuple[list[float], list[RunMark]]:
        """The proportions of all runs' latencies, rising, and the runs in that order."""
        rows = [(proportion(mark.latencies), mark) for mark in self.runs if mark.latencies is not None]
        known = sorted(((share, mark) for share, mark in rows if share is not None), key=lambda row: row[0])
        return [share for share, _ in known], [mark for _, mark in known]

    def copies_of(self, mark: RunMark) -> Iterator[RunMark]:
        """Yield the runs with this one's latencies, shifted or scaled, except those whose log is the same."""
        share = None if mark.latencies is None else proportion(mark.latencies)
        if mark.latencies is None or share is None:
            return
        shares, marks = self._by_proportion
        near = slack(mark.latencies)
        begin, end = bisect_left(shares, share - near), bisect_right(shares, share + near)
        for other in marks[begin : min(end, begin + MAX_ALIKE)]:
            if other.latencies is not None and other.digest != mark.digest and is_copy(mark.latencies, other.latencies):
                yield other

    @cached_property
    def overlaps(self) -> Mapping[str, RunMark]:
        """By the path of a run: another one of its system that ran at the same moment. A copy is not a second run."""
        systems: dict[tuple[str, ...], dict[str, RunMark]] = {}
        for mark in self.runs:
            systems.setdefault(mark.folder[:3], {}).setdefault(mark.digest, mark)
        found: dict[str, RunMark] = {}
        for marks in systems.values():
            spans = [(mark.span_s, mark) for mark in marks.values() if mark.span_s is not None]
            latest: tuple[tuple[float, float], RunMark] | None = None
            for span, mark in sorted(spans, key=lambda row: row[0]):
                if latest is not None and span[0] < latest[0][1] - _TOUCH_S:
                    found.setdefault(mark.path, latest[1])
                    found.setdefault(latest[1].path, mark)
                latest = (span, mark) if latest is None or span[1] > latest[0][1] else latest
        return found

    def responses_with(self, name: str, value: object) -> tuple[ResponsesMark, ...]:
        """Return the accuracy logs whose attribute `name` has a value."""
        if name not in self._responses:
            self._responses[name] = _grouped(self.responses, name)
        return self._responses[name].get(value, ())


_Mark = TypeVar("_Mark", RunMark, ResponsesMark)
_Groups = Mapping[object, tuple[_Mark, ...]]


def _grouped(marks: tuple[_Mark, ...], name: str) -> _Groups[_Mark]:
    found: dict[object, dict[object, _Mark]] = {}
    for mark in marks:
        if (value := getattr(mark, name)) is not None:
            found.setdefault(value, {}).setdefault(_told_apart(mark, name), mark)
    return {value: tuple(group.values()) for value, group in found.items()}


def _told_apart(mark: RunMark | ResponsesMark, name: str) -> object:
    """The differences between the marks of one group, for the rules that need them: thousands of copies are compared
    at once."""
    if name == "build" and isinstance(mark, RunMark):
        return mark.text("loadgen_version"), mark.text(SOURCES)
    return (mark.digest, bool(mark.place.test)) if name in ("start", "figures", "clock", "hash") else mark.path


def _run_mark(path: str, place: LogLocation, content: bytes, log: LogView) -> RunMark:
    fields = {key: log.values[key] for key in (*_KEPT, *FIGURES) if key in log.values}
    if log.source_digest:
        fields[SOURCES] = log.source_digest
    return RunMark(
        path=path,
        place=place,
        digest=hashlib.sha256(content).hexdigest(),
        process=log.processes[0] if log.processes else None,
        fields=fields,
        loaded=_digest_of_loaded(log),
        clock=_clock(log),
        latencies=_latencies(log),
        answer_tokens=log.tokens_of_sample if log.values.get(_EQUALLY) is True else None,
        span_s=_span_s(log),
    )


def _clock(log: LogView) -> tuple[float, float] | None:
    begin_ms, end_s = log.times_ms.get("generated_query_count"), log.end_time_s
    return None if begin_ms is None or end_s is None else (begin_ms, end_s * 1000)


def _span_s(log: LogView) -> tuple[float, float] | None:
    clock = _clock(log)
    try:
        start = datetime.strptime(log.text("test_datetime") or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return None if clock is None else (start.timestamp() + clock[0] / 1000, start.timestamp() + clock[1] / 1000)


def _latencies(log: LogView) -> tuple[float, ...] | None:
    found = [number for number in map(log.number, LATENCIES) if number is not None]
    return tuple(map(float, found)) if len(found) == len(LATENCIES) and max(found) < _LARGEST else None


def _digest_of_loaded(log: LogView) -> str:
    loaded = log.values.get("loaded_qsl_set")
    if log.text("effective_test_mode") != "PerformanceOnly" or not isinstance(loaded, list):
        return ""
    return hashlib.sha256(repr(loaded).encode("utf-8", "surrogatepass")).hexdigest()
