"""The command `check-mlperf-submission DIR --version=v6.1`, also `python -m crowdperf.gate`.

Exit codes: 0 accepted, 1 refused, 2 not judged (a wrong call, or a folder that cannot be read) or not written (the
output is lost), 130 interrupted by Ctrl-C.
"""

import json
import sys

from crowdperf.gate import command
from crowdperf.gate.evidence import evidence_of
from crowdperf.gate.rulebook import RULES
from crowdperf.kit.terminal import write_output
from crowdperf.logs.tree import DIVISIONS

ACCEPTED, REFUSED, NOT_JUDGED, INTERRUPTED = 0, 1, 2, 130


def list_rules() -> str:
    """Return every rule with its source and its evidence, as text."""
    lines = []
    for rule in RULES.values():
        where = "" if rule.divisions == DIVISIONS else f" [{', '.join(rule.divisions)}]"
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
    try:
        code, text = (ACCEPTED, list_rules()) if "--list_rules" in given else _judged(given)
    except (command.CallError, OSError) as error:
        return _not_judged(f"{error}\nhint: check-mlperf-submission DIR --version=v6.1")
    except KeyboardInterrupt:
        _not_judged("interrupted: no verdict")
        return INTERRUPTED
    if reason := write_output(text):
        return _not_judged(f"{reason}\nhint: check-mlperf-submission ... > FILE on another disk")
    return code


def _judged(given: list[str]) -> tuple[int, str]:
    asked = command.parse(given)
    answer = command.run(asked)
    is_json = asked.format == "json"
    text = json.dumps(command.as_json(asked, answer), indent=2) + "\n" if is_json else command.as_text(asked, answer)
    return (ACCEPTED if answer.verdict.is_accepted else REFUSED), text


def _not_judged(why: str) -> int:
    print(f"check-mlperf-submission: {why}", file=sys.stderr)
    return NOT_JUDGED


if __name__ == "__main__":
    sys.exit(main())
