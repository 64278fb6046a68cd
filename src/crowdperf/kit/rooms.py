"""Optional rooms: folders of this package that may be deleted, and the answer of a recipe that needs a deleted one.

A recipe that cannot load without a room is deleted with it. A recipe that needs a room only for some variations or
inputs stays, and its hook checks here first: tools/without_room.py reads these calls.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


class MissingRoom(ValueError):
    """The request needs a room that this checkout does not have. `str()` is the message, with a hint."""


def require_room(room: str, what: str, instead: str) -> None:
    """Raise MissingRoom if the room was deleted. what: the variation or input that needs it. instead: the
    alternative."""
    if not (PACKAGE / room / "__init__.py").is_file():
        raise MissingRoom(
            f"{what} needs src/crowdperf/{room}, which this checkout of crowdperf does not have\n"
            f"hint: {instead}, or restore the folder: git -C {PACKAGE.parents[1]} checkout -- src/crowdperf/{room}"
        )
