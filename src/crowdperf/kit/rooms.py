"""Optional rooms: folders of this package that may be deleted, and what a recipe answers that asks for one then.

A recipe that cannot load without a room goes with it. One that needs a room for some of its variations or inputs only
stays, and its hook asks here first: tools/without_room.py reads these calls.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


class MissingRoom(ValueError):
    """What was requested needs a room that this checkout does not have; `str()` says so, with a hint."""


def require_room(room: str, what: str, instead: str) -> None:
    """Raise MissingRoom where the room was deleted. what: the variation or input that needs it. instead: what to do."""
    if not (PACKAGE / room / "__init__.py").is_file():
        raise MissingRoom(
            f"{what} needs src/crowdperf/{room}, which this checkout of crowdperf does not have\n"
            f"hint: {instead}, or restore the folder: git -C {PACKAGE.parents[1]} checkout -- src/crowdperf/{room}"
        )
