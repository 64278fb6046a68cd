"""What became of the requests of a run: how many, how long their answers are, why they ended, what went wrong.

No request is lost: issued = completed + failed, or the run is INVALID and says so. A request that failed is given to
LoadGen as an answer of 0 tokens, which LoadGen counts as an error, so that the run ends.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from crowdperf.harness.text.engine import OTHER_FAILURE, Answer
from crowdperf.harness.text.timings import Timings
from crowdperf.logs.run_log import Json
from crowdperf.rules.names import counted

MIN_TOKENS = 2
"""LoadGen 6.0.17 takes an answer of fewer tokens for an error (logging.cc, RecordSampleCompletion): the time per output
token is that of those after the first one."""

_REASONS = 3
"""So many reasons of failed requests are kept, each once."""

_AT_ONCE_PART = 0.5
"""Where more answers come whole in one piece the server does not stream; short answers may (tokens that are guessed
ahead). This project's choice."""
_MAX_BARS = 20
_PERCENTILES = (50, 90, 99)


def length_of(answer: Answer) -> int:
    """Return how many tokens of an answer count."""
    return len(answer.tokens) if answer.counted is None else answer.counted


def percentile(lengths: Mapping[int, int], part: float) -> int:
    """Return the smallest length that at least `part` of all answers do not exceed. lengths: answers by length."""
    wanted, seen = part * sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= wanted:
            return length
    return 0


def bar_width(longest: int) -> int:
    """Return the width of a histogram's bars: 1, 2 or 5 times a power of ten, so that there are few of them."""
    widths = (int(f"{digit}{'0' * zeros}") for zeros in count() for digit in (1, 2, 5))
    return next(width for width in widths if longest < _MAX_BARS * width)


def lengths_record(lengths: Mapping[int, int]) -> dict[str, Json]:
    """Return the lengths of answers for result.json: bounds, mean, percentiles, and a histogram whose bars begin at
    `from` and are `bar_width` tokens wide; None for all where there is no answer. lengths: answers by length."""
    if not lengths:
        return {"min": None, "mean": None, "max": None, "percentiles": None, "bar_width": None, "histogram": []}
    width, longest = bar_width(max(lengths)), max(lengths)
    bars = Counter[int]()
    for length, answers in lengths.items():
        bars[length // width] += answers
    return {
        "min": min(lengths),
        "mean": sum(length * count for length, count in lengths.items()) / sum(lengths.values()),
        "max": longest,
        "percentiles": {str(one): percentile(lengths, one / 100) for one in _PERCENTILES},
        "bar_width": width,
        "histogram": [
            {"from": number * width, "count": bars[number]} for number in range(min(bars), longest // width + 1)
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an answer came. is_first_late: its first token was told only with the last; is_whole_at_once: all its tokens
    came in one piece, which was told as the first. began_with: tokens that were told as the first ones. behind_end:
    tokens that came behind its end. prompt_tokens: of its prompt, None if unknown."""

    began_with: int = 0
    is_first_late: bool = False
    is_whole_at_once: bool = False
    behind_end: int = 0
    prompt_tokens: int | None = None


@dataclass(slots=True)
class Tally:
    """The counts of a run; engines may write from several threads.

    tokens_in: of prompts that came as tokens; prompts_without: those that did not. finishes: answers by the reason of
    their end. padded: answers with tokens behind their end; behind_end: those tokens, which do not count. kinds: failed
    requests by kind. skipped: pieces of streams that could not be read. late_first: answers whose first token was told
    only with the last. at_once: answers that arrived in one piece. began_with: tokens of first pieces. unasked: what
    was told of requests that were not in flight (any more). timings: when answers came.
    """

    issued: int = 0
    completed: int = 0
    failed: int = 0
    tokens_in: int = 0
    prompts_without: int = 0
    tokens_out: int = 0
    skipped: int = 0
    late_first: int = 0
    short: int = 0
    unasked: int = 0
    at_once: int = 0
    began_with: int = 0
    padded: int = 0
    behind_end: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    finishes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, int] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def issue(self, prompts: int, tokens: int, without: int) -> None:
        """Note requests that are given to the engine, the tokens of their prompts, and how many prompts have none."""
        with self._lock:
            self.issued += prompts
            self.tokens_in += tokens
            self.prompts_without += without

    def complete(self, answer: Answer, ended: Ended) -> None:
        length = length_of(answer)
        with self._lock:
            self.completed += 1
            self.tokens_out += length
            self.lengths[length] += 1
            self.finishes[answer.finish.value] += 1
            self.skipped += answer.skipped
            self.late_first += ended.is_first_late
            self.at_once += ended.is_whole_at_once
            self.began_with += ended.began_with
            self.short += length < MIN_TOKENS
            self.padded += ended.behind_end > 0
            self.behind_end += ended.behind_end
            if answer.times is not None:
                self.timings.take(answer.times, ended.prompt_tokens, length, ended.began_with)

    def fail(self, why: str, kind: str = OTHER_FAILURE) -> None:
        with self._lock:
            self.failed += 1
            self.kinds[kind] += 1
            if why in self.reasons or len(self.reasons) < _REASONS:
                self.reasons[why] = self.reasons.get(why, 0) + 1

    def tell_unasked(self) -> None:
        """Note that the engine told something of a request that is not in flight."""
        with self._lock:
            self.unasked += 1

    @property
    def in_flight(self) -> int:
        """Requests that are neither answered nor failed."""
        return self.issued - self.completed - self.failed

    def problems(self, *, has_token_latencies: bool) -> tuple[str, ...]:
        """Return why the figures of the run are not to be used; empty where nothing is wrong."""
        found = []
        if self.failed:
            reasons = "; ".join(f"{why} ({count:,} times)" if count > 1 else why for why, count in self.reasons.items())
            found.append(f"{self.failed:,} of {counted(self.issued, 'request')} got no answer: {reasons}")
        if self.in_flight:
            found.append(f"of {self.issued:,} requests {self.completed:,} were answered and {self.failed:,} failed")
        if self.skipped:
            found.append(f"{counted(self.skipped, 'piece')} of the answers' streams could not be read")
        if self.late_first and has_token_latencies:
            found.append(f"the engine gave the first token of {counted(self.late_first, 'answer')} only with the last")
        if self.at_once > _AT_ONCE_PART * self.completed and has_token_latencies:
            words = f"{self.at_once:,} of {counted(self.completed, 'answer')} arrived in one piece"
            found.append(f"{words}: the first token cannot be distinguished from the last one")
        if self.unasked:
            found.append(f"the engine reported {self.unasked:,} times on a request that was not in flight")
        if self.short and has_token_latencies:
            words = f"{counted(self.short, 'answer')} had fewer than {MIN_TOKENS} tokens"
            found.append(f"{words}: LoadGen can measure no time per token, and counts none of them")
        return tuple(found)

    def record(self) -> dict[str, Json]:
        return {
            "issued": self.issued,
            "completed": self.completed,
            "failed": self.failed,
            "failures": dict(self.reasons),
            "failure_kinds": dict(sorted(self.kinds.items())),
            "tokens_in": None if self.prompts_without else self.tokens_in,
            "tokens_out": self.tokens_out,
            "lengths": lengths_record(self.lengths),
            "finish_reasons": dict(sorted(self.finishes.items())),
            "skipped_pieces": self.skipped,
            "late_first_tokens": self.late_first,
            "short_answers": self.short,
            "padded_answers": self.padded,
            "tokens_behind_end": self.behind_end,
            "whole_at_once": self.at_once,
            "mean_first_tokens": self.began_with / self.completed if self.completed else None,
            "unasked": self.unasked,
        }
