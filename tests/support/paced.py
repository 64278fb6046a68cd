"""benchmarks/paced_server.py as a process, for tests whose server must not depend on the machine."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from helpers import CHECKOUT


@contextmanager
def running_paced_server() -> Iterator[str]:
    """Yield the URL, which needs a pace as its path."""
    words = [sys.executable, str(CHECKOUT / "benchmarks" / "paced_server.py")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
