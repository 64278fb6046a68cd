"""A collector in a process of its own, as the recipe starts it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from web_builder import ROOT


@dataclass
class Running:
    """A started collector; tokens by name, from its file."""

    process: subprocess.Popen[str]
    url: str
    tokens: dict[str, str]
    greeting: list[str]

    def end(self, number: int = signal.SIGTERM, timeout_s: float = 10.0) -> int:
        """Send a signal and wait; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)


def environment() -> dict[str, str]:
    """The caller's, with the packages on the path."""
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


@contextlib.contextmanager
def running(database: Path, *words: str) -> Iterator[Running]:
    """A collector on a free port, ended at the end of the block."""
    command = [sys.executable, "-m", "crowdperf.web", f"--db={database}", "--port=0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout is not None
        greeting = []
        for line in process.stdout:
            greeting.append(line.rstrip())
            if line.startswith(("Share", "Pages only")):
                break
        assert greeting, "the collector did not start"
        path = database.with_name(f"{database.name}.tokens")
        tokens = dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}
        yield Running(process, greeting[0].split()[1], tokens, greeting)
    finally:
        process.kill()
        process.wait()
