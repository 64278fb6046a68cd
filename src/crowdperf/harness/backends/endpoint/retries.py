"""Requests that a server refuses for the moment (429, or 503 with Retry-After): whether and when to send them again."""

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from crowdperf.call.model_server import asks_to_wait
from crowdperf.harness.backends.endpoint.faults import Refused

_Found = TypeVar("_Found")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _JITTER = 0.5, 60.0, 0.25
LONGEST_WAIT_S = 30.0
"""Before a run, while somebody may wait for its first line: this project's choice."""


def _asked_s(retry_after: str, now_s: float) -> float | None:
    """Return the seconds of a Retry-After header, or None if it cannot be read."""
    try:
        seconds = float(retry_after)
        return None if math.isnan(seconds) else seconds
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(retry_after).timestamp() - now_s
    except (TypeError, ValueError, OverflowError):
        return None


def pause_s(retry_after: str | None, tries: int, now_s: float, chance: float) -> float:
    """Return the pause before the next try: the value of Retry-After (seconds or a date), at least 0.5 s. Without a
    value, or with a time in the past: 0.5 s, doubled each time. At most 60 s, and up to a quarter more by `chance`
    (0 to 1), so that requests which were refused together are not resent together. now_s: of time.time()."""
    asked_s = None if retry_after is None else _asked_s(retry_after, now_s)
    if asked_s is not None and asked_s > 0.0:
        wait_s = max(asked_s, _FIRST_PAUSE_S)
    else:
        wait_s = _FIRST_PAUSE_S * 2.0 ** min(tries, 10)
    return min(wait_s, _LONGEST_PAUSE_S) * (1.0 + _JITTER * chance)


def is_to_retry(error: BaseException) -> bool:
    return isinstance(error, Refused) and asks_to_wait(error.status, error.retry_after)


async def patiently(ask: Callable[[], Awaitable[_Found]]) -> _Found:
    """Return what `ask` gives, and ask again while the server asks to wait, for LONGEST_WAIT_S in all. Raises what it
    raises."""
    begin_s, tries = time.monotonic(), 0
    while True:
        try:
            return await ask()
        except Refused as error:
            wait_s = pause_s(error.retry_after, tries, time.time(), random.random())
            if not is_to_retry(error) or time.monotonic() - begin_s + wait_s > LONGEST_WAIT_S:
                raise
        tries += 1
        await asyncio.sleep(wait_s)
