"""A plugin of pytest for copies without a room: a test that fails after a refusal of the room is skipped.

Recipes that stay ask for the room where a variation needs it (crowdperf.kit.rooms.require_room). Which tests call such
a variation is decided by values, so that their code does not show it. tools/without_room.py loads this with -p.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

REFUSAL = re.compile(r"needs src/crowdperf/\w+")
REFUSED: list[str] = []
"""The refusals of this process since the current test began."""


def is_refused(text: str) -> bool:
    """Whether the report of a failure holds a refusal: of another process, or of a fixture that several tests share.

    pytest shortens long texts, and breaks them into several quoted ones.
    """
    return bool(REFUSAL.search(re.sub(r"['\"\s]*\n[E\s]*['\"]*|\s+", " ", text)))


def pytest_configure() -> None:
    """Notes every refusal of this process."""
    from crowdperf.kit.rooms import MissingRoom

    def noted(self: MissingRoom, text: str) -> None:
        ValueError.__init__(self, text)
        REFUSED.append(text)

    setattr(MissingRoom, "__init__", noted)  # noqa: B010 - mypy allows no other way


def pytest_runtest_logstart() -> None:
    """A test begins."""
    REFUSED.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Turns such a failure into a skip that names the room."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and (REFUSED or is_refused(report.longreprtext)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: it needs a room that went")
