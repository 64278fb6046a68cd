"""Writes the table of docs/reference/submission-rules.md from the rules of check,mlperf,submission.

python tools/make_submission_rules_page.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TARGET = CHECKOUT / "docs" / "reference" / "submission-rules.md"
BEGIN = "<!-- made by tools/make_submission_rules_page.py -->\n"
END = "<!-- end of what it makes -->\n"
for name in ("check-mlperf-submission", "get-mlperf-results-lib"):
    folder = str(CHECKOUT / "script" / name)
    if folder not in sys.path:
        sys.path.insert(0, folder)

from mlperf_gate import gate  # noqa: E402, F401 - the rules register themselves
from mlperf_gate.evidence import EXCEPTIONS, published, tried_of  # noqa: E402
from mlperf_gate.rulebook import ALL_DIVISIONS, RULES, Rule  # noqa: E402


def _row(rule: Rule) -> str:
    tried = tried_of(rule)
    bounds = [f"since {rule.since}" if rule.since else "", f"until {rule.until}" if rule.until else ""]
    bounds.append("" if rule.divisions == ALL_DIVISIONS else ", ".join(rule.divisions))
    text = " ".join([rule.text, *(f"({bound})" for bound in bounds if bound)])
    exception = EXCEPTIONS.get(rule.identity, "")
    counts = (f"{tried.asked:,}", str(tried.refused), str(tried.warned)) if tried.asked else ("not asked", "", "")
    cells = (rule.identity, rule.severity.value, text, rule.source, *counts, exception)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table() -> str:
    """All rules, in the order in which they are applied."""
    head = f"Tried on the {published()[0]}.\n\n"
    names = ("rule", "is a", "text", "source", "asked", "refused", "warned", "what the refused ones have")
    rows = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names), *map(_row, RULES.values())]
    return head + "\n".join(rows) + "\n"


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
