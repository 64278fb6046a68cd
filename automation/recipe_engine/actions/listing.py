"""What an action prints when the console asked for it, and what the flags that most listings share mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..documents.console_text import WIDTH
from ..rules.schema import is_yes


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


def show(i: Mapping[str, Any], *lines: str) -> None:
    """Prints lines when the caller of an action is the console, and not a program."""
    if i.get("out") == "con":
        print_lines(lines)


def is_verbose(i: Mapping[str, Any]) -> bool:
    """Whether ``-v`` or ``--verbose`` asks for more."""
    return is_yes(i.get("v")) or is_yes(i.get("verbose"))


def is_forced(i: Mapping[str, Any]) -> bool:
    """Whether ``-f`` or ``--force`` answers a question beforehand."""
    return is_yes(i.get("f")) or is_yes(i.get("force"))
