"""How long the fuzzing runs, and the guard that every case runs under."""

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from types import FrameType

import pytest
from hypothesis import HealthCheck, Verbosity, settings
from recipe_engine.actions.run import RECURSION_LIMIT

CASES = {"normal": 25, "full": int(os.environ.get("CROWDPERF_FUZZ_CASES", "600"))}
"""Cases per test. The normal suite draws the same ones each time; the full one draws new ones and tells the seed."""
WATCHDOG_S = 60
"""A case takes milliseconds; one that takes this long counts as a hang."""

FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "os.kill")
"""Audit events of Python (sys.addaudithook) that no recipe without code of its own may cause."""


class Hang(BaseException):
    """A case that does not end; nothing that is tested may catch it."""


class Executed(BaseException):
    """A case made the engine start a process or open a connection."""


_is_guarded = False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _is_guarded and event in FORBIDDEN:
        raise Executed(f"{event}{arguments!r}")


def _bark(number: int, frame: FrameType | None) -> None:
    raise Hang("no end in sight")


@contextlib.contextmanager
def guarded(limit_s: int = WATCHDOG_S) -> Iterator[None]:
    """Inside the block nothing may start a process, open a connection or take longer than the limit."""
    global _is_guarded
    before = signal.signal(signal.SIGALRM, _bark)
    signal.alarm(limit_s)
    _is_guarded = True
    try:
        yield
    finally:
        _is_guarded = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(name="guarded", scope="session")
def guarded_fixture() -> object:
    """The guard, as a function to use with ``with``."""
    return guarded


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_watch)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))  # as the first run would; hypothesis minds
    common = {
        "deadline": None,
        "database": None,
        "suppress_health_check": [
            HealthCheck.too_slow,
            HealthCheck.function_scoped_fixture,
            HealthCheck.data_too_large,
        ],
    }
    settings.register_profile("normal", max_examples=CASES["normal"], derandomize=True, **common)
    settings.register_profile("full", max_examples=CASES["full"], print_blob=True, verbosity=Verbosity.normal, **common)
    settings.load_profile("full" if config.getoption("--full") else "normal")
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "hypothesis"))
