"""A plugin of pytest for copies without a room: a test whose failure is the refusal of that room is skipped.

Recipes that stay ask for the room where a variation needs it (crowdperf.kit.rooms.require_room). Which tests run such
a variation is decided by values, so that their code does not show it. tools/without_room.py loads this with -p, and
puts the rooms that went into CROWDPERF_MISSING_ROOMS.

Only the exception that a test or a fixture fails with counts, with its causes and the output of a command that it
reports: a test that met the refusal and fails with something else fails.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

VARIABLE = "CROWDPERF_MISSING_ROOMS"
MISSING = frozenset(os.environ.get(VARIABLE, "").split(","))  # read now, because tests change their environment


def refused_rooms(text: str) -> set[str]:
    """The rooms that a text refuses. pytest breaks long texts into several quoted ones."""
    joined = re.sub(r"['\"\s]*(?:\n|\\n)[E\s+-]*['\"]*|\s+", " ", text)
    return set(re.findall(r"needs src/crowdperf/(\w+), which this checkout of crowdperf does not have", joined))


def texts_of(error: BaseException | None) -> Iterator[str]:
    """What an exception and its causes say, with the output of a failed command."""
    while error is not None:
        yield str(error)
        for name in ("stdout", "stderr"):
            output = getattr(error, name, None)
            if isinstance(output, str | bytes):
                yield output if isinstance(output, str) else output.decode(errors="replace")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turns such a failure into a skip that names the room."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and call.excinfo is not None:
        rooms = {room for text in texts_of(call.excinfo.value) for room in refused_rooms(text)} & MISSING
        if rooms:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: it needs {', '.join(sorted(rooms))}")
