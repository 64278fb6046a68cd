"""Which cores an instance runs on. Pure, but for `at_cores`, which moves the calling thread."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence


def available_cores() -> tuple[int, ...]:
    """Return the numbers of the cores this process may use, sorted; 0 to n - 1 where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def share_out(cores: Sequence[int], instances: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """Return the cores of each instance: neighbours, none shared. Empty where they are too few, or nothing is gained
    by it (one instance)."""
    if instances < 2 or instances * threads > len(cores):
        return ()
    return tuple(tuple(cores[number * threads : (number + 1) * threads]) for number in range(instances))


@contextlib.contextmanager
def at_cores(cores: Sequence[int]) -> Iterator[None]:
    """Keep the calling thread on `cores` while the block runs; without cores, or where the system cannot (macOS,
    Windows), nothing happens."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    thread = threading.get_native_id()
    before = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(thread, before)
