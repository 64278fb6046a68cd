"""What texts for a terminal and answers for programs share: lines that fit, and types as plain values."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def cut(line: str, width: int) -> str:
    """A line of at most ``width`` letters; a longer one ends with an ellipsis."""
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"


def joined(names: Iterable[str], most: int = 12) -> str:
    """Names in one text; of more than ``most`` the first, and how many more there are."""
    names = list(names)
    rest = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *rest])


def table(
    rows: Sequence[Sequence[str]], width: int, rights: Iterable[int] = (), flexible: int | None = None
) -> Iterator[str]:
    """Rows in columns as wide as what they hold, two blanks apart; ``rights`` are columns flush right.

    What is too wide is cut in the column ``flexible``, down to the width of its title, then at the end of the line.
    """
    if not rows:
        return
    sides = [">" if number in set(rights) else "<" for number in range(len(rows[0]))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if flexible is not None:
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widths[flexible] = min(widths[flexible], max(widths[flexible] - excess, len(rows[0][flexible])))
    for row in rows:
        cells = (f"{cut(cell, size):{side}{size}}" for cell, side, size in zip(row, sides, widths, strict=True))
        yield cut("  ".join(cells).rstrip(), width)


def plain(value: Any) -> Any:
    """A value as JSON holds it: types become mappings, tuples lists."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
