"""Verdicts of the compliance tests that read a language model's answers, from the logs of the tests' runs. Pure.

    TEST06   of each answer: the first token reported is the first of the answer, one end token at most, the length
    TEST07   the answers of a performance run score what they must
    TEST09   the answers of a performance run have as many tokens on average as they must

The lines are those of run_verification.py of compliance/TEST06, TEST07 and TEST09 of mlcommons/inference at b66003e1
(August 2026). Stricter here: TEST06 fails without an answer, and looks for all end tokens of the model (the script's
own number, 2, is no end token of Llama 3.1 or DeepSeek, and one given on its command line stays a text, which equals
no token); TEST07 and TEST09 fail where samples are missing, or come twice.
"""

import math
import struct
from collections.abc import Collection, Iterable

from crowdperf.compliance.verdict_lines import PASS
from crowdperf.compliance.verification import ELEMENT_FORMATS, FAIL, Verdict, elements_of
from crowdperf.logs.accuracy_log import DamagedLog, entries, sample_of
from crowdperf.rules.names import Scenario

_RULE, _THIN_RULE = "=" * 80, "-" * 40
_LOG_NAME = "the test's accuracy log"
_TOKEN_BYTES = 4


def _tokens(data: object, element: str) -> tuple[float, ...]:
    raw, one = bytes.fromhex(str(data)), ELEMENT_FORMATS[element]
    return struct.unpack(f"{one[0]}{len(raw) // struct.calcsize(one)}{one[1]}", raw)


def _has_several_ends(tokens: tuple[float, ...], end_tokens: Collection[int]) -> bool:
    """Whether an answer ends with more than one end token; its first token is not looked at."""
    return len(tokens) > 2 and tokens[-1] in end_tokens and tokens[-2] in end_tokens


def verify_answers(
    tested: Iterable[str],
    scenario: Scenario,
    end_token: int | Collection[int] | None = 2,
    element: str = "int32",
) -> Verdict:
    """Return TEST06's verdict on the answers that it logged; no first token is reported in Offline.

    end_token: one, or all that end an answer; None where it is not known, and the end of an answer is not looked at.
    """
    ends = () if end_token is None else (end_token,) if isinstance(end_token, int) else end_token
    checks = {"first": True, "end": True, "length": True}
    count = 0
    try:
        for entry in entries(tested, _LOG_NAME):
            count += 1
            tokens = _tokens(entry["data"], element)
            checks["end"] &= not _has_several_ends(tokens, ends)
            checks["length"] &= len(tokens) == int(str(entry["token_count"]))
            if scenario is not Scenario.OFFLINE:
                first = _tokens(entry["token_data"], element)
                checks["first"] &= tokens[: len(first)] == first[: len(tokens)]
    except KeyError as error:
        words = f"an answer has no {error}. LoadGen logs it only for benchmarks with token latencies"
        return Verdict(is_passed=False, lines=(f"TEST06 verification failed: {words}",))
    except (DamagedLog, ValueError, struct.error) as error:
        return Verdict(is_passed=False, lines=(f"TEST06 verification failed: {error}",))
    is_passed = count > 0 and all(checks.values())
    first_text = "Skipped" if scenario is Scenario.OFFLINE else str(checks["first"])
    lines = (
        f"First token check pass: {first_text}",
        f"EOS check pass: {checks['end']}",
        f"Sample length check pass: {checks['length']}",
        f"TEST06 verification {'complete' if is_passed else 'failed'}",
    )
    return Verdict(is_passed=is_passed, lines=lines)


def _missing_samples(counts: dict[int, int], sample_count: int) -> str:
    """Return why a log does not hold each sample of its data set once; empty where it does."""
    lacking = sum(index not in counts for index in range(sample_count))
    repeated = sum(count > 1 for count in counts.values())
    unknown = sum(not 0 <= index < sample_count for index in counts)
    if not (lacking or repeated or unknown):
        return ""
    return f"{lacking} of {sample_count} samples are missing, {repeated} come twice, {unknown} are unknown"


def verify_score(line: str, score: float | None, least: float) -> Verdict:
    """Return TEST07's verdict. line: what the accuracy script printed; score: the exact_match on it, in percent, None
    where there is none. least: what it must be."""
    head = (line, "", _RULE, "TEST07 Verification Summary", _RULE)
    if score is None or not math.isfinite(score):
        return Verdict(is_passed=False, lines=(*head, "Error: Could not parse accuracy score", FAIL))
    is_passed = score >= least
    said = (f"Accuracy score: {score}", f"Accuracy threshold: {least}", f"Accuracy check pass: {is_passed}")
    return Verdict(is_passed=is_passed, lines=(*head, *said, PASS if is_passed else FAIL))


def answer_lengths(tested: Iterable[str]) -> tuple[list[int], dict[int, int]]:
    """Return the tokens of each answer of a log, int32 each, and how often each sample is in it; raises DamagedLog."""
    lengths: list[int] = []
    counts: dict[int, int] = {}
    for entry in entries(tested, _LOG_NAME):
        index = sample_of(entry, f"an entry of {_LOG_NAME}")
        lengths.append(len(elements_of(entry, "int32", _LOG_NAME)) // _TOKEN_BYTES)
        counts[index] = counts.get(index, 0) + 1
    return lengths, counts


def verify_lengths(tested: Iterable[str], bounds: tuple[float, float], sample_count: int) -> Verdict:
    """Return TEST09's verdict. bounds: between what the mean of tokens must lie. sample_count: of the data set, of
    which each sample must be there once."""
    try:
        lengths, counts = answer_lengths(tested)
    except DamagedLog as error:
        return Verdict(is_passed=False, lines=(f"{FAIL}: {error}",))
    if not lengths:
        return Verdict(is_passed=False, lines=(f"{FAIL}: {_LOG_NAME} contains no answers",))
    mean = sum(lengths) / len(lengths)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in lengths) / len(lengths))
    checks = mean >= bounds[0], mean <= bounds[1]
    missing = _missing_samples(counts, sample_count)
    is_passed = all(checks) and not missing
    text = f"""{_RULE}
TEST09: Verify Output Token Length in Performance Mode
{_RULE}

Output Token Length Statistics
{_THIN_RULE}
Total samples: {len(lengths)}
Mean output tokens: {mean:.2f}
Min output tokens: {min(lengths)}
Max output tokens: {max(lengths)}
Std deviation: {deviation:.2f}

{_RULE}
Verification Results
{_RULE}
Mean output tokens: {mean:.2f}
Min threshold: {bounds[0]}
Max threshold: {bounds[1]}
Min check pass: {checks[0]}
Max check pass: {checks[1]}

{PASS if is_passed else f"{FAIL}: {missing}" if missing else FAIL}"""
    return Verdict(is_passed=is_passed, lines=tuple(text.split("\n")))
