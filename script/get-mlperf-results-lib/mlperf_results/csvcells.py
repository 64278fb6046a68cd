"""Texts as cells of a CSV file that no spreadsheet takes for a formula. Pure."""

from __future__ import annotations

STARTS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What begins a formula in spreadsheets (OWASP, CSV Injection); such a cell gets an apostrophe before it."""


def guarded(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would calculate it."""
    return f"'{text}" if text.startswith(STARTS_OF_FORMULAS) else text


def cell(value: object) -> str:
    """A value as a cell: its text, guarded; empty for None."""
    return "" if value is None else guarded(str(value))
