"""Writes the table of docs/reference/audit.md from the codes that the audit knows.

python tools/make_audit_page.py [--check]
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import made_table

CHECKOUT = Path(__file__).resolve().parent.parent
ENGINE = CHECKOUT / "automation" / "recipe_engine"
TARGET = CHECKOUT / "docs" / "reference" / "audit.md"
NAME = Path(__file__).name

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


if __name__ == "__main__":
    sys.exit(made_table.main(TARGET, NAME, table(), __doc__))
