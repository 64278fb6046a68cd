"""Writes the table of docs/reference/audit.md from the codes that the audit knows.

python tools/make_audit_page.py [--check]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ENGINE = CHECKOUT / "automation" / "recipe_engine"
TARGET = CHECKOUT / "docs" / "reference" / "audit.md"
BEGIN = "<!-- made by tools/make_audit_page.py -->\n"
END = "<!-- end of what it makes -->\n"

if "recipe_engine" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["recipe_engine"])

from recipe_engine.auditing.findings import CODES, LEVELS  # noqa: E402


def table() -> str:
    """All codes, the worst first, in the order of findings.py."""
    rows = ["| code | level | what is wrong | why it matters |", "|---|---|---|---|"]
    for level in LEVELS:
        rows += [
            f"| `{code}` | {kind.level} | {kind.meaning} | {kind.why} |"
            for code, kind in CODES.items()
            if kind.level == level
        ]
    return "\n".join(rows) + "\n"


def page_with_table(page: str) -> str:
    """The page with the table as it must be; raises ValueError when the page has no place for it."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{TARGET} lacks the line {BEGIN if not begin else END}")
    return before + begin + table() + end + after


def main() -> int:
    """Writes the page, or with ``--check`` tells whether it is up to date by the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when the page would change")
    page = TARGET.read_text(encoding="utf-8")
    if parser.parse_args().check:
        return 0 if page_with_table(page) == page else 1
    TARGET.write_text(page_with_table(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
