"""CSV files without cells that a spreadsheet would read as formulas. Pure."""

import csv
import io
from collections.abc import Iterable

STARTS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of formulas in spreadsheets (OWASP, CSV Injection). Such a cell gets an apostrophe before it."""


def guarded(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would calculate it."""
    return f"'{text}" if text.startswith(STARTS_OF_FORMULAS) else text


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """The text of a CSV file. Numbers have every digit, texts are guarded, and a cell of None is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in (columns, *rows):
        writer.writerow(guarded(value) if isinstance(value, str) else value for value in row)
    return stream.getvalue()
