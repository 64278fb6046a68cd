"""What happens when a backend or model raises inside LoadGen: the first error is kept and the run is ended.

An exception that leaves a LoadGen callback breaks the process ("terminate called"), and an unanswered query blocks
it for ever. So callbacks and threads record the error here, answer with zeros, and LoadGen ends by itself; the run then
fails with the error. Where LoadGen would go on for long (a stream goes on until its minimum duration) or for ever (the
completion itself failed, or a thread ended), a watchdog ends the process with the same message.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from crowdperf.harness.base.errors import hint_of

_GRACE_S = 3.0
"""How long LoadGen may take to end by itself after the first error; as long again while it writes its log."""


class Failures:
    """The first error of a run; `is_set` is read before each inference. log: what LoadGen writes at the end of the run;
    as long as it grows, the process is not ended, so that the log which would explain the error is whole."""

    def __init__(self, grace_s: float = _GRACE_S) -> None:
        self.log: Path | None = None
        self._log_bytes = 0
        self._grace_s = grace_s
        self._lock = threading.RLock()  # `forget` settles
        self._watchdog: threading.Timer | None = None
        self.is_set = False
        self.first: BaseException | None = None

    def guarded(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return `call` with every exception recorded: for what LoadGen or a thread calls."""

        def call_and_record(*arguments: object) -> None:
            try:
                call(*arguments)
            except BaseException as error:  # a SystemExit would end the thread without a word
                self.record(error)

        return call_and_record

    def record(self, error: BaseException) -> None:
        """Keep the first error and start the watchdog; later errors are only its consequences."""
        with self._lock:
            if self.first is not None:
                return
            self.first = error
            self.is_set = True
            self._log_bytes = self._written_bytes()
            self._start_watchdog()

    def forget(self) -> None:
        """Go on as if there had been no error: for a search, which tries what may not work."""
        with self._lock:
            self.settle()
            self.first, self.is_set = None, False

    def settle(self) -> None:
        """Stop the watchdog: LoadGen has ended."""
        with self._lock:
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._watchdog = None

    def _start_watchdog(self) -> None:
        self.settle()
        self._watchdog = threading.Timer(self._grace_s, self._end_process)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _written_bytes(self) -> int:
        try:
            return 0 if self.log is None else self.log.stat().st_size
        except OSError:
            return 0  # it is not there yet

    def _end_process(self) -> None:
        with self._lock:
            if self._watchdog is None:  # settled or forgotten while this waited for the lock
                return
            before, self._log_bytes = self._log_bytes, self._written_bytes()
            if self._log_bytes > before:
                self._start_watchdog()
                return
        if self.first is not None:
            if self.first.__traceback__ is not None:  # what was never raised has its words only
                sys.stderr.write("".join(traceback.format_exception(self.first)))
            sys.stderr.write(f"harness: error: inference failed during the run: {self.first}\n")
            if hint := hint_of(self.first):
                sys.stderr.write(f"harness: hint: {hint}\n")
        sys.stderr.flush()
        os._exit(1)  # LoadGen cannot be stopped in any other way
