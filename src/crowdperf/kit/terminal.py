"""For a person's terminal: tables as text, colors (VALID green, INVALID red, warnings yellow), standard output."""

import io
import os
import re
import sys
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


def takes_color(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether to color the output to a stream. NO_COLOR forbids it (https://no-color.org), FORCE_COLOR
    (https://force-color.org) and CLICOLOR_FORCE (https://bixense.com/clicolors) request it, each unless empty, the
    latter two unless `0`. Otherwise a terminal whose TERM is not `dumb` gets colors (pages read November 2026)."""
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    try:
        return stream.isatty() and environment.get("TERM") != "dumb"
    except ValueError:  # a closed stream
        return False


def colored(text: str, stream: TextIO, environment: Mapping[str, str], warnings: Sequence[str] = ()) -> str:
    """Return the text for this stream: verdicts and the lines of `warnings` are colored if the stream gets colors."""
    if not takes_color(stream, environment):
        return text
    lines = {line for warning in warnings for line in warning.splitlines()}
    return "\n".join(_line(line, line in lines) for line in text.split("\n"))


def _line(line: str, is_warning: bool) -> str:
    if is_warning:
        return f"{_YELLOW}{line}{_END}" if line else line
    return _VERDICTS.sub(lambda found: f"{_GREEN if found[0] == 'VALID' else _RED}{found[0]}{_END}", line)


def write_output(text: str) -> str:
    """Write a whole text to standard output, with escapes for letters that its encoding lacks. Return an empty text, or
    why it could not be written: a full disk, a reader that ended early. A closed standard output takes every text.

    After a failure it is /dev/null: otherwise Python would try once more at its end, and change the exit code.
    """
    stream = sys.stdout
    if stream is None:
        return ""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        reason = "the program that read standard output ended early"
    except OSError as error:
        reason = f"cannot write standard output: {error.strerror}"
    else:
        return ""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return reason
