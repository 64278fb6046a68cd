"""Reads the responses of an accuracy run one by one, and judges a score.

The first response of a sample counts. Every validation sample must be present, except in the log of a compliance test,
which has those that LoadGen selected.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score
from crowdperf.logs.accuracy_log import DamagedLog, entries, response_of, sample_of
from crowdperf.rules.benchmarks import BENCHMARKS, AccuracyTarget

_HINT = "score a log before it is truncated for a submission, or rerun the accuracy run"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricVerdict:
    """One metric of a score with its target, None if no target applies."""

    name: str
    value: float
    reference: float | None = None
    target: float | None = None
    upper_limit: float | None = None

    @property
    def is_passed(self) -> bool | None:
        """Whether the value is within its limits, None without a target."""
        if self.target is None:
            return None
        return self.value >= self.target and (self.upper_limit is None or self.value <= self.upper_limit)


class ResponseLog:
    """Reads a log once, yields the first response of each sample, and then reports the problems of the log."""

    def __init__(self, path: Path, sample_count: int, *, is_part: bool = False) -> None:
        """is_part: samples may be missing."""
        self._path = path
        self._is_part = is_part
        self._seen = bytearray(sample_count)
        self._digest = hashlib.sha256()
        self.duplicate_count = 0
        self.response_count = 0

    def _lines(self) -> Iterator[str]:
        """Yield the lines, and update their digest. Raises HarnessError if the log is missing."""
        try:
            with self._path.open("rb") as file:
                for raw in file:
                    self._digest.update(raw)
                    yield raw.decode(errors="replace")
        except OSError as error:
            message = f"cannot read {self._path}: {error.strerror}"
            raise HarnessError(message, "run the accuracy run first") from error

    def _responses(self) -> Iterator[tuple[int, bytes]]:
        """Yield sample and response of each entry. Raises HarnessError for a log that is cut off or damaged."""
        try:
            for position, entry in enumerate(entries(self._lines(), str(self._path))):
                where = f"entry {position} of {self._path}"
                yield sample_of(entry, where), response_of(entry, where)
        except DamagedLog as error:
            raise HarnessError(str(error), _HINT) from error

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield sample index and response bytes. Raises HarnessError, at the end also for missing samples."""
        unknown: list[int] = []
        for index, data in self._responses():
            if not 0 <= index < len(self._seen):
                unknown.append(index)
            elif self._seen[index]:
                self.duplicate_count += 1
            else:
                self._seen[index] = 1
                self.response_count += 1
                yield index, data
        self._require_all(unknown)

    def _require_all(self, unknown: list[int]) -> None:
        if not self.response_count and not unknown:
            hint = "score an accuracy run (a performance run does not log responses)"
            raise HarnessError(f"{self._path} no responses logged", hint)
        missing = [index for index, is_there in enumerate(self._seen) if not is_there and not self._is_part]
        for found, words in ((missing, "is missing a response for"), (unknown, "contains responses for unknown")):
            if found:
                shown = ", ".join(str(index) for index in found[:5]) + (", ..." if len(found) > 5 else "")
                raise HarnessError(
                    f"{self._path} {words} {len(found)} samples ({shown}), "
                    f"the validation set has 0 to {len(self._seen) - 1}",
                    "use the data set and the log of one and the same accuracy run",
                )

    @property
    def sha256(self) -> str:
        """The digest of the log, once it has been gone through."""
        return self._digest.hexdigest()


def official_targets(name: str) -> tuple[AccuracyTarget, ...]:
    """Return the closed division's requirements for a benchmark, or none for a model that MLPerf does not know."""
    row = BENCHMARKS.get(name)
    return () if row is None else row.targets()


def judge(
    score: Score,
    official: tuple[AccuracyTarget, ...],
    reference: Mapping[str, float] | None,
    part: float,
    most: Mapping[str, float] = MappingProxyType({}),
) -> tuple[MetricVerdict, ...]:
    """Return each metric of a score with its target: the official one where given, else `part` of the reference.

    most: the parts of the reference that are too much, of metrics that have a window. More is better in every metric,
    also in "WER", which is 100 less the error rate.
    """
    rows = {target.metric: target for target in official}
    judged = []
    for name, value in score.values.items():
        row = rows.get(name)
        if row is not None:
            found = MetricVerdict(
                name=name, value=value, reference=row.reference, target=row.target, upper_limit=row.upper_limit
            )
        elif not official and reference is not None and name in reference:
            own = reference[name]
            limit = most[name] * own if name in most else None
            found = MetricVerdict(name=name, value=value, reference=own, target=part * own, upper_limit=limit)
        else:
            found = MetricVerdict(name=name, value=value)
        judged.append(found)
    return tuple(judged)


def all_passed(judged: tuple[MetricVerdict, ...]) -> bool | None:
    """Return whether every metric with a target passes, or None if there is no target."""
    verdicts = [item.is_passed for item in judged if item.is_passed is not None]
    return all(verdicts) if verdicts else None
