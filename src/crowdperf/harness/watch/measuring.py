"""Says when another benchmark is measuring on this machine: two at once disturb each other. Nobody waits for anybody.

Every measuring process holds a shared lock (flock(2)) on one file of the machine; the lock ends with the process,
however that ends. The file is empty and never written. Where it cannot be opened or locked, nothing is said.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from crowdperf.kit.file_locks import is_alone

LOCK_FILE = Path("/tmp/crowdperf-measuring.lock")
"""In /tmp, which all users share; TMPDIR may be a user's own."""

MESSAGE = "another benchmark is running on this machine, so both results will be too low"


def _open(path: Path) -> int:
    """Return a descriptor of the lock file. O_CREAT comes second: the kernel may refuse it for a file of another user
    (fs.protected_regular)."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, 0o644)


@contextlib.contextmanager
def measuring(path: Path = LOCK_FILE) -> Iterator[None]:
    """Be known as measuring inside the block; one line on stderr says when another process is."""
    try:
        descriptor = _open(path)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            if not is_alone(descriptor):
                sys.stderr.write(f"harness: {MESSAGE}\n")
                sys.stderr.flush()
        yield
    finally:
        os.close(descriptor)
