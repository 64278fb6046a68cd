"""For a person's terminal: tables as text, and colours (VALID green, INVALID red, warnings yellow)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TextIO

_GREEN, _RED, _YELLOW, _END = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_VERDICTS = re.compile(r"\b(?:INVALID|VALID)\b")


def aligned(rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """Return the lines of a table, two blanks between its columns. right: headings of columns that align so."""
    columns = []
    for column in zip(*rows, strict=True):
        width, pad = max(map(len, column)), str.rjust if column[0] in right else str.ljust
        columns.append([pad(text, width) for text in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def takes_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal that may get colours: NO_COLOR is unset or empty (https://no-color.org,
    read November 2026), and TERM is not `dumb`."""
    try:
        is_terminal = stream.isatty()
    except ValueError:  # a closed stream
        return False
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def coloured(text: str, stream: TextIO, environment: Mapping[str, str], warnings: Sequence[str] = ()) -> str:
    """Return the text for this stream: verdicts and the lines of `warnings` in colour where it takes colours."""
    if not takes_colour(stream, environment):
        return text
    lines = {line for warning in warnings for line in warning.splitlines()}
    return "\n".join(_line(line, line in lines) for line in text.split("\n"))


def _line(line: str, is_warning: bool) -> str:
    if is_warning:
        return f"{_YELLOW}{line}{_END}" if line else line
    return _VERDICTS.sub(lambda found: f"{_GREEN if found[0] == 'VALID' else _RED}{found[0]}{_END}", line)
