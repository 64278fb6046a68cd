"""Says on stderr, every ten seconds, how long a run has been going; it costs a run nothing per sample."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

_INTERVAL_S = 10.0


@contextlib.contextmanager
def progress(title: str, at_least_s: float) -> Iterator[None]:
    """Report while the block runs; `at_least_s` is the shortest time that the run can take."""
    done = threading.Event()
    start = time.monotonic()

    def report() -> None:
        while not done.wait(_INTERVAL_S):
            sys.stderr.write(f"harness: {title}: {time.monotonic() - start:.0f} s of at least {at_least_s:.0f} s\n")
            sys.stderr.flush()

    thread = threading.Thread(target=report, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
