"""What all listings share: lines on standard output that fit the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from ..documents.console_text import WIDTH


def listing_width() -> int:
    """How many columns a line of a listing may have: those of the terminal, at most ``WIDTH``."""
    try:
        return min(WIDTH, os.get_terminal_size(1).columns or WIDTH)
    except OSError:  # standard output is not a terminal
        return WIDTH


def print_lines(lines: Iterable[str]) -> None:
    """Prints what a user asked for."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
