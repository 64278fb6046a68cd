"""Rules of the recipe get-python3 for versions: what order they have and whether one fits the limits asked for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_STAGES = {"a": 0, "b": 1, "rc": 2, "": 3}  # an alpha is older than a beta, than a candidate, than the release


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The versions asked for, "" where nothing is asked.

    `maximum_usable` counts as the maximum where none is given: CM means by it the newest version known to work.
    """

    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    maximum_usable: str = ""

    @property
    def minor(self) -> str:
        """The minor version that would fit, such as "3.10"; "" where nothing is asked."""
        text = self.exact or self.minimum or self.maximum or self.maximum_usable
        return ".".join(str(number) for number in numbers(text)[:2]) if text else ""

    def describe(self) -> str:
        """What is asked for, in words."""
        if self.exact:
            return f"version {self.exact}"
        parts = [f"{self.minimum} or newer"] if self.minimum else []
        newest = self.maximum or self.maximum_usable
        parts += [f"{newest} or older"] if newest else []
        return "version " + " and ".join(parts) if parts else "any version"


def sort_key(version: str) -> tuple[int, int, int, int, int]:
    """A key that puts versions in order; missing numbers are 0, so 3.11 equals 3.11.0.

    Raises ValueError for a text that is not a version of Python.
    """
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:(a|b|rc)(\d+))?\+?", version.strip())
    if not found:
        raise ValueError(f"{version!r} is not a version of Python, such as 3.11 or 3.11.7 or 3.13.0rc1")
    numbers_of = [int(part or 0) for part in found.group(1, 2, 3)]
    return (numbers_of[0], numbers_of[1], numbers_of[2], _STAGES[found[4] or ""], int(found[5] or 0))


def numbers(version: str) -> tuple[int, int, int]:
    """Major, minor and patch number of a version."""
    return sort_key(version)[:3]


def nearest(limits: Limits, found: Sequence[str]) -> str:
    """The newest of these with the minor version that is asked for, else the newest of all; `found` is not empty."""
    newest_first = sorted(found, key=sort_key, reverse=True)
    wanted = limits.minor
    return next((one for one in newest_first if wanted and numbers(one)[:2] == numbers(wanted)[:2]), newest_first[0])


def misfit(version: str, limits: Limits) -> str:
    """Why a version does not fit the limits, "" when it does. An exact version wins over the other limits."""
    key = sort_key(version)
    if limits.exact:
        return "" if key == sort_key(limits.exact) else f"version {version} is not {limits.exact}"
    if limits.minimum and key < sort_key(limits.minimum):
        return f"version {version} is older than {limits.minimum}"
    newest = limits.maximum or limits.maximum_usable
    if newest and key > sort_key(newest):
        return f"version {version} is newer than {newest}"
    return ""
