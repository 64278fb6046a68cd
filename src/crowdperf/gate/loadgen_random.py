"""LoadGen's random draws, repeated: a seed decides them, and every C++ library draws alike. Pure.

    std::mt19937 engine(seed)                    the lower 32 bits of the seed; 5489 without one
    std::generate_canonical<double, 53>(engine)  two numbers of the engine, the first is the lower half of 64 bits
    std::exponential_distribution(rate)          -log(1 - canonical) / rate

Draws that differ between libraries are not repeated here: std::shuffle and std::uniform_int_distribution. Python's
`random` has the same engine, and gets the initial state of C++. Source: ScheduleDistribution and IssueQueries in
loadgen.cc, SequenceGen in issue_query_controller.h, LoadGen 4.1 to 6.0.17.
"""

from __future__ import annotations

import bisect
import functools
import math
import random
from array import array
from collections.abc import Callable

MAX_DRAWS = 1_000_000
"""Later draws are never needed: that many need about 0.3 s and 8 MB, once for all logs of a tree."""

_STATE_WORDS, _WORD = 624, 0xFFFFFFFF
_DEFAULT_SEED = 5489


def engine(seed: int) -> random.Random:
    """Return the generator that std::mt19937 is with this seed. `getrandbits(32)` returns its numbers."""
    words = [seed & _WORD]
    for number in range(1, _STATE_WORDS):
        words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + number) & _WORD)
    found = random.Random()
    found.setstate((3, (*words, _STATE_WORDS), None))
    return found


def _canonical(source: random.Random) -> float:
    return source.getrandbits(64) / 2**64


class _Row:
    """Numbers that follow from each other, made as far as somebody asks."""

    def __init__(self, first: float, following: Callable[[float], float]) -> None:
        self._made, self._following = array("d", [first]), following

    def __getitem__(self, number: int) -> float:
        while len(self._made) <= number:
            self._made.append(self._following(self._made[-1]))
        return self._made[number]

    def first(self, count: int) -> array[float]:
        """The numbers before number `count`."""
        if count > 0:
            self[count - 1]
        return self._made[: max(count, 0)]


@functools.lru_cache(maxsize=4)
def _arrivals(seed: int) -> _Row:
    source = engine(seed)
    return _Row(0.0, lambda before: before - math.log(1.0 - _canonical(source)))


def arrival(seed: int, number: int) -> float:
    """Return the time at which query `number` from 0 is scheduled in Server, in units of the mean interval. 0 for the
    first.

    As `number`, the count of all queries gives the time that LoadGen calls generated_query_duration.
    """
    return _arrivals(seed)[number]


@functools.cache
def _log_draws() -> _Row:
    source = engine(_DEFAULT_SEED)
    return _Row(_canonical(source), lambda _: _canonical(source))


@functools.lru_cache(maxsize=4)
def _log_offset(seed: int) -> float:
    return _canonical(engine(seed))


def log_value(seq_id: int, seed: int) -> float:
    """Return the number from 0 to 1 that a sample has: it is logged where that is at most the share that is logged.

    seed: accuracy_log_rng_seed.
    """
    value = _log_draws()[seq_id] + _log_offset(seed)
    return value if value < 1.0 else value - 1.0


@functools.lru_cache(maxsize=8)  # tests of one system have the same few counts
def _ordered_log_values(count: int, seed: int) -> array[float]:
    offset = _log_offset(seed)
    values = [one + offset for one in _log_draws().first(count)]
    return array("d", sorted(value if value < 1.0 else value - 1.0 for value in values))


def logged_count(count: int, seed: int, share: float) -> int:
    """Return how many of the samples before number `count` have a number (see `log_value`) of at most `share`."""
    return bisect.bisect_right(_ordered_log_values(count, seed), share)
