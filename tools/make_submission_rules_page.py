"""Writes the table of docs/reference/submission-rules.md from the rules of check,mlperf,submission.

python tools/make_submission_rules_page.py [--check]
"""

import sys
from pathlib import Path

import made_table

CHECKOUT = Path(__file__).resolve().parent.parent
TARGET = CHECKOUT / "docs" / "reference" / "submission-rules.md"
NAME = Path(__file__).name
sys.path.append(str(CHECKOUT / "src"))

from reader import exit_code  # noqa: E402

from crowdperf.gate import gate  # noqa: E402, F401 - the rules register themselves
from crowdperf.gate.evidence import EXCEPTIONS, published, tried_of  # noqa: E402
from crowdperf.gate.rulebook import RULES, Rule  # noqa: E402
from crowdperf.logs.tree import DIVISIONS  # noqa: E402


def _row(rule: Rule) -> str:
    tried = tried_of(rule)
    bounds = [f"since {rule.since}" if rule.since else "", f"until {rule.until}" if rule.until else ""]
    bounds.append("" if rule.divisions == DIVISIONS else ", ".join(rule.divisions))
    text = " ".join([rule.text, *(f"({bound})" for bound in bounds if bound)])
    exception = EXCEPTIONS.get(rule.identity, "")
    counts = (f"{tried.asked:,}", str(tried.refused), str(tried.warned)) if tried.asked else ("not asked", "", "")
    cells = (rule.identity, rule.severity.value, text, rule.source, *counts, exception)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table() -> str:
    """All rules, in the order in which they are applied."""
    head = f"Tried on the {published()[0]}.\n\n"
    names = ("rule", "is a", "text", "source", "asked", "refused", "warned", "the refused ones")
    rows = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names), *map(_row, RULES.values())]
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(exit_code(made_table.main, TARGET, NAME, table(), __doc__))
