"""TEST08's verdict, from the logs of the test and of the accuracy run: dlrm-v3 answers as well when it is timed. Pure.

An answer is float32: time stamp, query, predictions; in the accuracy run also labels, weights and how many there are of
each. With the labels and weights that the accuracy run has for the same time stamp and query, the normalised entropy of
each answer that the test logged must be that of the accuracy run, within a relative tolerance.

The lines are those of compliance/TEST08/run_verification.py of mlcommons/inference at b66003e1 (August 2026). Stricter
here: an entropy that is no number is a mismatch (there it passes any comparison), and so are predictions of another
number than the labels (there a single one stands for all of them, any other number ends the script).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crowdperf.compliance.verdict_lines import PASS
from crowdperf.compliance.verification import FAIL, Verdict
from crowdperf.logs.accuracy_log import DamagedLog, entries

_LEAST, _MOST = array("f", (1e-7, 1 - 1e-7))
"""What predictions, labels and their mean are cut to; the script's NumPy rounds both to float32."""
_ROUNDING = 1e-5
"""The script sums in float32: a difference this little above the tolerance may be none there."""
_WIDTH, _HEAD, _SHOWN = 4, 2, 20
_WHOLE, _TESTED = "the accuracy run's log", "the test's log"

Key = tuple[int, int]
"""Time stamp and query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropiesVerdict(Verdict):
    """`counts`: the numbers that the script prints, by name."""

    counts: Mapping[str, int]


def _cut(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


def normalised_entropy(predictions: Sequence[float], labels: Sequence[float], weights: Sequence[float]) -> float:
    """Return the cross entropy over that of the mean label; 0 where the weights sum up to 0, NaN where they cannot."""
    if not all(map(math.isfinite, weights)):
        return math.nan
    total = math.fsum(weights)
    if total == 0:
        return 0.0
    rows = [(_cut(one), _cut(label), weight) for one, label, weight in zip(predictions, labels, weights, strict=True)]
    cross = -math.fsum(w * (label * math.log(one) + (1 - label) * math.log(1 - one)) for one, label, w in rows)
    mean = _cut(math.fsum(w * label for _, label, w in rows) / total)
    base = -mean * math.log(mean) - (1 - mean) * math.log(1 - mean)
    return cross / (base * total)


def _floats(data: object, name: str) -> array[float]:
    try:
        found = array("f", bytes.fromhex(str(data)))
    except ValueError as error:
        raise DamagedLog(f"a response in {name} is not a list of float32 numbers ({error})") from error
    if len(found) <= _HEAD:
        raise DamagedLog(f"a response in {name} has {len(found)} numbers, no time stamp, query and predictions")
    return found


def _key(values: Sequence[float], name: str) -> Key:
    try:
        return int(values[0]), int(values[1])
    except (ValueError, OverflowError) as error:
        raise DamagedLog(f"a response in {name} has no time stamp and query ({error})") from error


def _agree(reference: float, tested: float, tolerance: float) -> bool:
    """Whether two entropies are the same but for the tolerance; 0 is like nothing but 0."""
    if reference == 0 or tested == 0:
        return reference == tested
    return abs(tested - reference) / abs(reference) <= tolerance + _ROUNDING


def _mismatch(key: Key, whole: Sequence[float], tested: Sequence[float], tolerance: float) -> str:
    """Return what the script prints of an answer whose entropy is another one; empty where it is the same."""
    count = int(whole[-1]) if math.isfinite(whole[-1]) else -1
    if count < 0 or len(whole) != _HEAD + 3 * count + 1:
        raise DamagedLog(f"a response in {_WHOLE} has {len(whole)} numbers for {whole[-1]:g} candidates")
    predictions, labels, weights = (whole[_HEAD + part * count : _HEAD + (part + 1) * count] for part in range(3))
    if len(tested) != count:
        return f"  NE mismatch at {key}: {len(tested)} predictions for {count} candidates"
    acc, perf = (normalised_entropy(one, labels, weights) for one in (predictions, tested))
    return "" if _agree(acc, perf, tolerance) else f"  NE mismatch at {key}: acc_ne={acc:.6f}, perf_ne={perf:.6f}"


def _tested_answers(tested: Iterable[str]) -> dict[Key, list[array[float]]]:
    """Return the predictions that the test logged; raises DamagedLog."""
    found: dict[Key, list[array[float]]] = {}
    for entry in entries(tested, _TESTED):
        values = _floats(entry.get("data"), _TESTED)
        found.setdefault(_key(values, _TESTED), []).append(values[_HEAD:])
    return found


def verify_entropies(reference: Iterable[str], tested: Iterable[str], tolerance: float) -> EntropiesVerdict:
    """Return the verdict on the lines of the accuracy run's log and of the test's, both whole.

    Of the accuracy run's only the answers that the test logged are decoded. Where it has a time stamp and query twice,
    the last one counts.
    """
    whole_count = 0
    compared: dict[Key, list[str]] = {}
    try:
        answers = _tested_answers(tested)
        for entry in entries(reference, _WHOLE):
            whole_count += 1
            data = str(entry.get("data"))
            key = _key(_floats(data[: 2 * _WIDTH * (_HEAD + 1)], _WHOLE), _WHOLE)
            if key in answers:
                whole = _floats(data, _WHOLE)
                compared[key] = [_mismatch(key, whole, one, tolerance) for one in answers[key]]
    except DamagedLog as error:
        return EntropiesVerdict(is_passed=False, lines=(f"{FAIL}: {error}",), counts={})
    count, matched = (sum(map(len, one.values())) for one in (answers, compared))
    mismatches = [line for lines in compared.values() for line in lines if line]
    counts = {
        "num_acc_log_entries": whole_count,
        "num_perf_log_entries": count,
        "num_matched": matched,
        "num_unmatched": count - matched,
        "num_ne_mismatch": len(mismatches),
    }
    is_passed = 0 < matched == count and not mismatches
    said = (*mismatches[:_SHOWN], *(f"{name} = {number}" for name, number in counts.items()))
    lines = (*said, f"tolerance = {tolerance:.2%}", "", PASS if is_passed else FAIL)
    return EntropiesVerdict(is_passed=is_passed, lines=lines, counts=counts)
