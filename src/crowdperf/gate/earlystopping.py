"""LoadGen's early stopping as arithmetic: how many queries over the limit a run of a length tolerates.

LoadGen (early_stopping.cc, results.cc, 4.1 to 6.0.17) asks for 99 % confidence that the share of queries over the
limit is at most 1 - percentile. So `t` are tolerated among `n` where P[Binomial(n, 1 - percentile) <= t] < 0.01. The
stream scenarios discard the t - 1 slowest and report the next one; Server counts those over its limit.
"""

from __future__ import annotations

import math

CONFIDENCE = 0.99
_MIN_SHARE = 1e-18
_MAX_QUERIES = 10**10
"""Above it no answer is given: such a run would take LoadGen hundreds of gigabytes."""


def tolerated(queries: int, percentile: float) -> int | None:
    """Return the greatest number of queries over the limit; -1 where the run is too short for any.

    None where the arguments are no run: a count below 1 or beyond reason, a percentile outside of 0..1.
    """
    if not (0 < queries <= _MAX_QUERIES and 0.0 < percentile < 1.0):
        return None
    share, risk = 1.0 - percentile, 1.0 - CONFIDENCE
    odds = share / percentile
    deviation = math.sqrt(queries * share * percentile)
    count = min(queries, max(0, int(queries * share - 2.33 * deviation)))
    term = math.exp(_log_probability(queries, count, percentile))
    total = _at_most(queries, count, term, odds)
    while total >= risk and count >= 0:
        total -= term
        term *= count / ((queries - count + 1) * odds)
        count -= 1
    while count < queries:
        term = math.exp(_log_probability(queries, count + 1, percentile))
        if total + term >= risk:
            break
        total += term
        count += 1
    return count


def _log_probability(queries: int, count: int, percentile: float) -> float:
    """Of exactly so many over the limit."""
    ways = math.lgamma(queries + 1) - math.lgamma(count + 1) - math.lgamma(queries - count + 1)
    return ways + count * math.log1p(-percentile) + (queries - count) * math.log(percentile)


def _at_most(queries: int, count: int, term: float, odds: float) -> float:
    """Of so many or fewer; `term` is the probability of exactly so many."""
    total = 0.0
    while count >= 0 and term > _MIN_SHARE * total:
        total += term
        term *= count / ((queries - count + 1) * odds)
        count -= 1
    return total
