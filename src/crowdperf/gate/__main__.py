"""The command `check-mlperf-submission DIR --version=v6.1`, also `python -m crowdperf.gate`.

Exit codes: 0 accepted, 1 refused, 2 not judged (a wrong call, or a folder that cannot be read).
"""

import json
import sys

from crowdperf.gate import command
from crowdperf.gate.evidence import evidence_of
from crowdperf.gate.rulebook import ALL_DIVISIONS, RULES

ACCEPTED, REFUSED, NOT_JUDGED = 0, 1, 2


def list_rules() -> str:
    """Return every rule with its source and its evidence, as text."""
    lines = []
    for rule in RULES.values():
        where = "" if rule.divisions == ALL_DIVISIONS else f" [{', '.join(rule.divisions)}]"
        since = f" since {rule.since}" if rule.since else ""
        until = f" until {rule.until}" if rule.until else ""
        head = f"{rule.identity} ({rule.severity.value}{since}{until}){where} {rule.text}"
        lines.append(
            f"{head}\n    source: {rule.source}\n    made by: {rule.step.value}\n    tried: {evidence_of(rule)}"
        )
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = sys.argv[1:] if words is None else words
    if "--list_rules" in given:
        sys.stdout.write(list_rules())
        return ACCEPTED
    try:
        asked = command.parse(given)
        answer = command.run(asked)
    except (command.CallError, OSError) as error:
        hint = "hint: check-mlperf-submission DIR --version=v6.1"
        sys.stderr.write(f"check-mlperf-submission: {error}\n{hint}\n")
        return NOT_JUDGED
    if asked.format == "json":
        sys.stdout.write(json.dumps(command.as_json(asked, answer), indent=2) + "\n")
    else:
        sys.stdout.write(command.as_text(asked, answer))
    return ACCEPTED if answer.verdict.is_accepted else REFUSED


if __name__ == "__main__":
    sys.exit(main())
