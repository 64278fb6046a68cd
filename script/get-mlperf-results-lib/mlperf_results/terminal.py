"""Colours for a person's terminal: VALID green, INVALID red, warnings yellow. The text itself stays the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TextIO

_GREEN, _RED, _YELLOW, _END = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_VERDICTS = re.compile(r"\b(?:INVALID|VALID)\b")


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
