"""Writes the table of docs/reference/audit.md from the codes that the audit knows.

python tools/make_audit_page.py [--check]
"""

import sys
from pathlib import Path

import engine_package  # noqa: F401 - the next imports need it
import made_table
from reader import exit_code
from recipe_engine.auditing.findings import CODES, LEVELS

CHECKOUT = Path(__file__).resolve().parent.parent
TARGET = CHECKOUT / "docs" / "reference" / "audit.md"
NAME = Path(__file__).name


def table() -> str:
    """All codes, the worst first, in the order of findings.py."""
    rows = ["| code | level | problem | why it matters |", "|---|---|---|---|"]
    for level in LEVELS:
        rows += [
            f"| `{code}` | {kind.level} | {kind.meaning} | {kind.why} |"
            for code, kind in CODES.items()
            if kind.level == level
        ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(exit_code(made_table.main, TARGET, NAME, table(), __doc__))
