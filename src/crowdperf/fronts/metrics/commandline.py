"""Reads the lists of VirtualClient's command line: `k=v,,,k=v` and timespans. Pure.

Source: microsoft/VirtualClient, OptionFactory.cs (53e432ad, read November 2026).
"""

import re
from datetime import timedelta

DELIMITERS = (",,,", ";", ",")
"""The first of these that a text has splits it."""

_TIMESPAN = re.compile(r"(?:(\d{1,8})\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,7}))?")


class CommandLineError(ValueError):
    """A value of the command line cannot be used."""


def parse_list(text: str) -> tuple[str, ...]:
    """Return the parts of a list without empty ones."""
    mark = next((mark for mark in DELIMITERS if mark in text), ",")
    return tuple(part.strip() for part in text.split(mark) if part.strip())


def parse_pairs(text: str, option: str) -> dict[str, str]:
    """Return pairs by name; the first `=` splits, quotes around a value go. Raises CommandLineError."""
    found: dict[str, str] = {}
    for part in parse_list(text):
        name, mark, value = part.partition("=")
        if not mark or not name.strip():
            raise CommandLineError(f"{option}: {part!r} has no name=value")
        if name.strip().lower() in map(str.lower, found):
            raise CommandLineError(f"{option}: {name.strip()!r} is repeated")
        found[name.strip()] = value.strip().strip("\"'")
    return found


def parse_timespan(text: str) -> timedelta | None:
    """Return the time that C#'s `d.hh:mm:ss.fffffff` means; None for another text."""
    found = _TIMESPAN.fullmatch(text.strip())
    if found is None or int(found[2]) > 23 or int(found[3]) > 59 or int(found[4]) > 59:
        return None
    fraction = int((found[5] or "0").ljust(7, "0")) // 10
    return timedelta(int(found[1] or 0), int(found[4]), fraction, minutes=int(found[3]), hours=int(found[2]))
