"""Verdicts of the MLPerf compliance tests, from the logs of the test and of the runs that it is about. Pure.

    TEST01   performance within a tenth of the submitted run's, either way; each logged response that of the accuracy
             run
    TEST04   no more than a tenth faster when the same sample is asked for again and again
    TEST05   no more than a twentieth slower with other seeds

Those of language models (TEST06, 07, 09) are in answer_checks.py, TEST08's in entropy_checks.py.

Short latencies get a fifth instead: up to 0.2 ms in SingleStream, 1.6 ms in MultiStream. TEST04's script compares the
queries per second of a stream with the same two numbers, so that there all but the shortest get it: those of 5 us and
more (MultiStream: 0.625 us). Sources: compliance/TEST01 and TEST04 of mlcommons/inference at b66003e1 (August
2026), compliance/nvidia/TEST05 at v4.0. Where a run has errors or no score, or a response differs after its first
element, the verdict here is the stricter one; `tests/compliance/test_verification.py` has the list.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from crowdperf.compliance.verdict_lines import PASS
from crowdperf.logs.accuracy_log import DamagedLog, entries, response_of, sample_of
from crowdperf.logs.round_tables import load_round
from crowdperf.logs.run_log import LoadGenLog
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.official_names import checker_name
from crowdperf.rules.rounds import rounds_of

FAIL = "TEST FAIL"

_SHORT = {Scenario.SINGLE_STREAM: 200_000, Scenario.MULTI_STREAM: 1_600_000}
_TOLERANCES = {"TEST01": 0.10, "TEST04": 0.10, "TEST05": 0.05}
_SHORT_TOLERANCE = 0.20
_WHOLE, _TESTED = "the accuracy run's log", "the test's accuracy log"

ELEMENT_FORMATS = {"byte": "<b", "float32": "<f", "int32": "<i", "int64": "<q", "int16": "<h"}
"""The element types that the official scripts know; numbers in a log are little-endian."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a check passes, and the lines of the file that says so (verify_performance.txt, verify_accuracy.txt)."""

    is_passed: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the file."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesVerdict(Verdict):
    """`is_passed` is the official verdict, on the first element of each response; `is_identical` compares all bytes."""

    is_identical: bool


def _failed(reason: str) -> Verdict:
    return Verdict(is_passed=False, lines=(f"{FAIL}: {reason}",))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """What is compared of a performance run. problem: why it cannot be, empty for a run that can.

    score: samples per second, or the latency of a stream in ns; None or 0 where the run has none.
    """

    scenario: Scenario
    score: float | None
    target_latency_ns: float | None
    problem: str = ""


def run_score(log: LoadGenLog) -> RunScore:
    """Return what a compliance test compares of a run."""
    problem = "" if log.mode is Mode.PERFORMANCE else "is not a performance run"
    if not problem and not log.is_valid:
        problem = f"is INVALID: {'; '.join(log.invalid_reasons) or 'LoadGen says so'}"
    score = None if log.metric is None else log.metric.value
    if log.scenario.is_stream and log.early_stopping is not None:
        stopping = log.early_stopping
        score = stopping.p90_estimate_ns if log.scenario is Scenario.SINGLE_STREAM else stopping.p99_estimate_ns
    limit = log.effective.target_latency_ns
    return RunScore(scenario=log.scenario, score=score, target_latency_ns=limit, problem=problem)


def _score(test: str, run: RunScore) -> float | None:
    """Return the figure that a test prints: in TEST04 how many latencies of a stream go into a second."""
    if not run.score or run.score < 0:
        return None
    return 1e9 / run.score if test == "TEST04" and run.scenario.is_stream else run.score


def _is_within(test: str, scenario: Scenario, reference: float, score: float) -> tuple[bool, float]:
    tolerance = _SHORT_TOLERANCE if reference <= _SHORT.get(scenario, -1) else _TOLERANCES[test]
    least, most = reference * (1 - tolerance), reference * (1 + tolerance)
    if test == "TEST01":
        return least <= score <= most, tolerance
    if test == "TEST04":
        return score < most, tolerance
    return (score < most if scenario.is_stream else score > least), tolerance


def verify_performance(test: str, reference: LoadGenLog, tested: LoadGenLog) -> Verdict:
    """Return whether the score of a test's run is what the submitted run's allows (TEST01, TEST04, TEST05)."""
    return compare_scores(test, run_score(reference), run_score(tested))


def compare_scores(test: str, reference: RunScore, tested: RunScore) -> Verdict:
    """Return the verdict on two runs of which no more is known than what is compared."""
    for name, run in (("submitted run", reference), ("run of the test", tested)):
        if run.problem:
            return _failed(f"the {name} {run.problem}")
    if reference.scenario is not tested.scenario:
        return _failed(f"scenarios differ: {reference.scenario.value} and {tested.scenario.value}")
    limits = (reference.target_latency_ns, tested.target_latency_ns)
    if reference.scenario is Scenario.SERVER and limits[0] != limits[1]:
        return _failed(f"Server latency limits differ: {limits[0]} ns and {limits[1]} ns")
    scores = (_score(test, reference), _score(test, tested))
    if scores[0] is None or scores[1] is None:
        return _failed("a run has no score")
    is_passed, tolerance = _is_within(test, reference.scenario, scores[0], scores[1])
    lines = (f"reference score = {scores[0]!r}", f"test score = {scores[1]!r}", f"tolerance = {tolerance:.0%}")
    return Verdict(is_passed=is_passed, lines=(*lines, PASS if is_passed else f"{FAIL}: score out of tolerance"))


def tested_scores(test: str, reference: RunScore, tested: RunScore) -> Mapping[str, float | None]:
    """Return the figures that the verification of two runs prints, by the same names."""
    return {"reference": _score(test, reference), "test": _score(test, tested)}


@dataclass(frozen=True, slots=True)
class _Print:
    """What is kept of a response: enough to compare it, however large it is."""

    digest: bytes
    size: int
    first: float | None


def elements_of(entry: Mapping[str, object], element: str, name: str) -> bytes:
    """Return the response of an entry, whole elements; raises DamagedLog for one without them."""
    data = response_of(entry, f"an entry of {name}")
    if len(data) % struct.calcsize(ELEMENT_FORMATS[element]):
        raise DamagedLog(f"a response in {name} has {len(data)} bytes, which is not a whole number of {element} values")
    return data


def _print_of(entry: Mapping[str, object], element: str, name: str) -> _Print:
    data = elements_of(entry, element, name)
    first = struct.unpack_from(ELEMENT_FORMATS[element], data)[0] if data else None
    return _Print(hashlib.sha256(data).digest(), len(data), first)


def _agree(one: _Print, other: _Print) -> bool:
    """Whether the official script takes two responses for the same: their first elements are equal."""
    return one.first == other.first if one.size and other.size else one.size == other.size


def first_element(data: str, element: str) -> float | None:
    """Return what the official script compares of a response in hexadecimal digits; None for one that is too short."""
    width = 2 * struct.calcsize(ELEMENT_FORMATS[element])
    if len(data) < width:
        return None
    return float(struct.unpack(ELEMENT_FORMATS[element], bytes.fromhex(data[:width]))[0])


def verify_responses(reference: Iterable[str], tested: Iterable[str], element: str = "byte") -> ResponsesVerdict:
    """Return whether the responses that TEST01 logged are those of the accuracy run.

    Both are the lines of LoadGen's untruncated accuracy logs, which are read once, without keeping responses. A sample
    may come more than once.
    """
    try:
        return _verify_responses(reference, tested, element)
    except DamagedLog as error:
        return ResponsesVerdict(is_passed=False, is_identical=False, lines=(f"{FAIL}: {error}",))


def _verify_responses(reference: Iterable[str], tested: Iterable[str], element: str) -> ResponsesVerdict:
    sampled: dict[int, list[_Print]] = {}
    for entry in entries(tested, _TESTED):
        sampled.setdefault(sample_of(entry, f"an entry of {_TESTED}"), []).append(_print_of(entry, element, _TESTED))
    total = sum(map(len, sampled.values()))
    seen, entry_count, repeated, unequal_repeats = dict[int, _Print](), 0, 0, 0
    for entry in entries(reference, _WHOLE):
        entry_count += 1
        index = sample_of(entry, f"an entry of {_WHOLE}")
        if index not in sampled:
            continue
        found = _print_of(entry, element, _WHOLE)
        if index in seen:
            repeated += 1
            unequal_repeats += found != seen[index]
        else:
            seen[index] = found
    pairs = [(seen[index], found) for index, prints in sampled.items() if index in seen for found in prints]
    mismatched = sum(not _agree(*pair) for pair in pairs)
    unequal = sum(one.digest != other.digest for one, other in pairs)
    missing = total - len(pairs)
    is_passed = bool(pairs) and not mismatched and not missing
    lines = (
        f"num_acc_log_entries = {entry_count}",
        f"num_acc_log_duplicate_keys = {repeated}",
        f"num_acc_log_data_mismatch = {unequal_repeats}",
        f"num_perf_log_entries = {total}",
        f"num_perf_log_qsl_idx_match = {len(pairs)}",
        f"num_perf_log_data_mismatch = {mismatched}",
        f"num_perf_log_whole_response_mismatch = {unequal}",
        f"num_missing_qsl_idxs = {missing}",
        PASS if is_passed else FAIL,
    )
    return ResponsesVerdict(is_passed=is_passed, is_identical=is_passed and not unequal, lines=lines)


def _largest_delta_percent(benchmark: str, metric: str) -> float:
    """Return how far apart the scores of a model that does not repeat itself may be, in its newest round."""
    if benchmark not in BENCHMARKS:
        return 1.0
    return load_round(rounds_of(benchmark)[-1]).models[checker_name(benchmark)].delta_of(metric)


def verify_scores(benchmark: str, baseline: Mapping[str, float], compliance: Mapping[str, float]) -> Verdict:
    """Return whether the responses of TEST01 score like the accuracy run's on the same samples, metric by metric: what
    counts where the bytes differ."""
    lines = []
    is_passed = bool(baseline) and baseline.keys() == compliance.keys()
    for name in sorted(baseline.keys() | compliance.keys()):
        one, other = baseline.get(name), compliance.get(name)
        if not one or not other:  # as the checkers do, a score of 0 counts as none
            is_passed = False
            lines.append(f"{name}: accuracy run {one}, test {other}: not comparable")
            continue
        delta, limit = abs(1 - one / other) * 100, _largest_delta_percent(benchmark, name)
        is_passed &= delta <= limit
        lines.append(f"{name}: accuracy run {one!r}, test {other!r}: {delta:.4g} % apart, allowed {limit:g} %")
    return Verdict(is_passed=is_passed, lines=(*lines, PASS if is_passed else FAIL))


def baseline_lines(reference: Iterable[str], tested: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a log with the accuracy run's responses of the samples that the test logged; raises
    DamagedLog. Each sample comes once."""
    wanted = {sample_of(entry, f"an entry of {_TESTED}") for entry in entries(tested, _TESTED)}
    yield "[\n"
    separator = ""
    for entry in entries(reference, _WHOLE):
        index = sample_of(entry, f"an entry of {_WHOLE}")
        if index in wanted:
            wanted.discard(index)
            yield separator + json.dumps(entry)
            separator = ",\n"
    yield "\n]\n"
