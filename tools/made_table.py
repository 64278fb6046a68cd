"""A page of the docs with one table that a program makes, between two marks."""

import argparse
from pathlib import Path

END = "<!-- end of what it makes -->\n"


def page_with_table(page: str, program: str, table: str) -> str:
    """The page with the table as it must be. program: its name in tools/; raises ValueError when the page has no place
    for the table."""
    mark = f"<!-- made by tools/{program} -->\n"
    before, begin, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page is missing the line {mark if not begin else END}")
    return before + begin + table + end + after


def main(target: Path, program: str, table: str, description: str | None) -> int:
    """Writes the page, or with ``--check`` tells whether it is up to date by the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write no file, exit with 1 if the page would change")
    page = target.read_text(encoding="utf-8")
    made = page_with_table(page, program, table)
    if parser.parse_args().check:
        return 0 if made == page else 1
    target.write_text(made, encoding="utf-8")
    return 0
