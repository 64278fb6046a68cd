"""Ends this process when the one that started it is gone, so that no orphan keeps measuring.

A recipe names its own process in OWNER_VARIABLE (run.sh). Where none is named, as in a run started from a shell or
with nohup, nothing is watched. Linux reports the end of any process through a pidfd (pidfd_open(2), Linux 5.3), so the
thread that waits for it sleeps until then and costs a run nothing. On systems without pidfd nothing is watched either.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Mapping

OWNER_VARIABLE = "HARNESS_ENDS_WITH"
"""Environment variable: the number of the process that this one ends with."""


def open_owner(environment: Mapping[str, str]) -> int | None:
    """Return a pidfd of the process that OWNER_VARIABLE names; None without one, and where it cannot be watched."""
    number = environment.get(OWNER_VARIABLE, "")
    if not (number.isascii() and number.isdigit()) or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(int(number))
    except (OSError, OverflowError):  # of another namespace, or the system forbids it
        return None


def end_with_owner(environment: Mapping[str, str]) -> None:
    """Watch the owner from now on: this process gets SIGTERM when it has ended. LoadGen's threads end with it, and no
    result.json is written."""
    descriptor = open_owner(environment)
    if descriptor is None:
        return

    def wait() -> None:
        select.select([descriptor], [], [])
        sys.stderr.write("harness: the process that started this run has ended, so the run ends too\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="owner").start()
