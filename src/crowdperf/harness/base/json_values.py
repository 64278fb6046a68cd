"""Takes the values of a JSON object one by one, and collects what is wrong with them. A converter returns None for a
value that it refuses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from crowdperf.harness.base.errors import Problem
from crowdperf.rules.names import UnknownName

Value = TypeVar("Value")


def _without_login(text: str) -> str:
    """Return a text without the user and password of URLs in it."""
    return re.sub(r"//[^/\s\"]*@", "//********@", text)


class Reader:
    """Takes the values of a mapping one by one and collects what is wrong with them."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._read: list[str] = []
        self.problems: list[Problem] = []

    def note(self, key: str, found: str, allowed: str) -> None:
        """Note a problem: where, what is there, what could be there."""
        self.problems.append(Problem(key, found, allowed))

    def take(self, key: str, allowed: str, convert: Callable[[object], Value | None]) -> Value | None:
        """Return the converted value; None, with a problem noted, where it is missing or `convert` refuses it."""
        self._read.append(key)
        if key not in self._values:
            self.note(key, "nothing", f"{allowed} (every key is always there)")
            return None
        converted = convert(self._values[key])
        if converted is None:
            self.note(key, _without_login(json.dumps(self._values[key])), allowed)
        return converted

    def optional(self, key: str, allowed: str, convert: Callable[[object], Value | None]) -> Value | None:
        """As `take`, but null is fine and gives None."""
        if key in self._values and self._values[key] is None:
            self._read.append(key)
            return None
        return self.take(key, f"{allowed}, or null", convert)

    def take_over(self, key: str, inner: Reader) -> None:
        """Note the problems in the object `key`, all of whose keys `inner` has read."""
        inner.refuse_others()
        for problem in inner.problems:
            self.note(f"{key}.{problem.key}", problem.found, problem.allowed)

    def refuse_others(self) -> None:
        """Note a problem for each key that was not read."""
        for key in sorted(set(self._values) - set(self._read)):
            self.note(key, json.dumps(self._values[key]), f"no such key; known: {', '.join(self._read)}")


def one_of(names: tuple[str, ...]) -> Callable[[object], str | None]:
    """Return the converter that takes one of `names`."""
    return lambda value: value if isinstance(value, str) and value in names else None


def named(parse: Callable[[str], Value]) -> Callable[[object], Value | None]:
    """Return the converter that takes what `parse` knows (it raises UnknownName for others)."""

    def convert(value: object) -> Value | None:
        try:
            return parse(value) if isinstance(value, str) else None
        except UnknownName:
            return None

    return convert


def text(value: object) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def path(value: object) -> Path | None:
    """Return a path."""
    return Path(value) if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """Return a whole number from 1."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**63
    return value if is_whole and isinstance(value, int) else None


def truth(value: object) -> bool | None:
    """Return true or false."""
    return value if isinstance(value, bool) else None


def positive(value: object) -> float | None:
    """Return a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= sys.float_info.max else None


def gpu_numbers(value: object) -> tuple[int, ...] | None:
    """Return the numbers of GPUs, none twice."""
    if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
        return None
    numbers = [item for item in value if isinstance(item, int) and not isinstance(item, bool) and item >= 0]
    return tuple(numbers) if len(numbers) == len(value) else None


def batch_sizes(value: object) -> tuple[int, ...] | None:
    """Return batch sizes, smallest first."""
    if not isinstance(value, list) or not value or any(whole(item) is None for item in value):
        return None
    return tuple(sorted(set(value)))


def whole_from_zero(value: object) -> int | None:
    """Return a whole number from 0."""
    return 0 if value == 0 and not isinstance(value, bool | float) else whole(value)


def url(value: object) -> str | None:
    """Return the URL of a web server."""
    return value if isinstance(value, str) and value.startswith(("http://", "https://")) else None
