"""What texts for a terminal and answers for programs share: lines that fit, and types as plain values."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 100
_START = re.compile(r" *([*=-] )?")


def wrapped(*lines: str) -> Iterator[str]:
    """Lines of at most ``WIDTH`` letters; long words, such as paths, stay whole.

    Continuation lines are indented by two letters more than the text, which starts behind the indent and a mark.
    """
    for line in lines:
        start = _START.match(line)
        indent = " " * ((start.end() if start else 0) + 2)
        yield from textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]


def plain(value: Any) -> Any:
    """A value as JSON holds it: types become mappings, tuples lists."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
