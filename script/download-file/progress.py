"""Tells how a download goes: one line that is rewritten on a terminal, one line a second elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

TERMINAL_PAUSE_S = 0.2
LINE_PAUSE_S = 1.0


def terminal_progress(
    name: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
) -> Callable[[int, int | None], None]:
    """A function to call with the bytes there and the bytes in all (None if unknown); it writes now and then."""
    is_terminal = stream.isatty()
    pause_s = TERMINAL_PAUSE_S if is_terminal else LINE_PAUSE_S
    started_s = last_s = clock()
    first_bytes = -1

    def report(done_bytes: int, total_bytes: int | None) -> None:
        nonlocal last_s, first_bytes
        now_s = clock()
        if first_bytes < 0:
            first_bytes = done_bytes
        is_end = total_bytes is not None and done_bytes >= total_bytes
        if now_s - last_s < pause_s and not is_end:
            return
        last_s = now_s
        rate = (done_bytes - first_bytes) / max(now_s - started_s, 1e-9)
        line = progress_line(name, done_bytes, total_bytes, rate)
        if is_terminal:
            stream.write(f"\r{line}" + ("\n" if is_end else ""))
        else:
            stream.write(line + "\n")
        stream.flush()

    return report


def progress_line(name: str, done_bytes: int, total_bytes: int | None, bytes_per_s: float) -> str:
    """One line of progress, sizes in MiB."""
    mebibyte = 1024 * 1024
    done = f"{done_bytes / mebibyte:.1f}"
    if total_bytes is None:
        amount = f"{done} MiB"
    else:
        percent = 100 * done_bytes // total_bytes if total_bytes else 100
        amount = f"{done} of {total_bytes / mebibyte:.1f} MiB ({percent} %)"
    return f"download {name}: {amount}, {bytes_per_s / mebibyte:.1f} MiB/s"
