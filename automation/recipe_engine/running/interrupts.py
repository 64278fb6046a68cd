"""Signals that end a run become an exception, at a moment when everything that must be tidied up is known.

A signal that comes while a child process is being started waits until it can be ended with the run.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..rules.errors import Interrupted

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C, ``kill``, and the end of the terminal."""

_waiting: list[int] = []
_depth: list[int] = []


def interrupt(number: int, _frame: Any) -> None:
    """The signal handler: raises Interrupted, now or at the end of the block that holds it back."""
    if _depth:
        _waiting.append(number)
    else:
        raise Interrupted(signal.Signals(number).name, 128 + number)


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that come inside the block raise Interrupted at its end."""
    _depth.append(1)
    try:
        yield
    finally:
        _depth.pop()
        if _waiting and not _depth:
            number = _waiting[0]
            _waiting.clear()
            interrupt(number, None)


@contextmanager
def raised_as_interrupted() -> Iterator[None]:
    """Inside the block the signals of SIGNALS raise Interrupted; those that are ignored stay so (nohup).

    Does nothing outside the main thread, where Python allows no handlers: cmind is used as a library there.
    """
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    wanted = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    try:
        before = [(number, signal.signal(number, interrupt)) for number in wanted]
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
