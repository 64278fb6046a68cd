"""Judges a published round and writes crowdperf/gate/published_round.json: how often each rule was asked, and refused.

    PYTHONPATH=src python tests/gate/record_published.py --tree=DIR --round=v5.1 --commit=HEX [--check]

DIR is a checkout of mlcommons/inference_results_<round>: closed/ and open/ with all files, links as links. Takes three
minutes. The figures are what the rules rest on (crowdperf/gate/evidence.py); `--check` writes nothing and fails on a
difference.
"""

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crowdperf.gate import gate
from crowdperf.gate.evidence import PUBLISHED
from crowdperf.gate.rulebook import RULES, Check, Severity, Violation
from crowdperf.gate.views import Options


def counting(identity: str, check: Check, asked: Counter[str]) -> Check:
    """Return a rule's function that notes each time it is asked."""

    def counted(view: Any) -> Iterator[Violation]:
        asked[identity] += 1
        return check(view)

    return counted


def judged(tree: Path, round_name: str, commit: str) -> dict[str, object]:
    """Return what the file says."""
    asked: Counter[str] = Counter()
    for identity, rule in RULES.items():
        RULES[identity] = dataclasses.replace(rule, check=counting(identity, rule.check, asked))
    verdict = gate.check(tree, round_name, Options(infer_scenarios=True))
    found = {
        severity: Counter(one.rule for one in verdict.findings if one.severity is severity) for severity in Severity
    }
    rows = {name: [asked[name], found[Severity.ERROR][name], found[Severity.WARNING][name]] for name in sorted(RULES)}
    logs = sum(path.endswith("mlperf_log_detail.txt") for path in gate.read_listing(tree).sizes)
    head = {"round": round_name, "commit": commit, "results": len(verdict.results), "logs": logs}
    return head | {"rules": {name: row for name, row in rows.items() if row[0]}}


def main() -> int:
    """Judge, and write or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--round", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    found = judged(given.tree, given.round, given.commit)
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.pop("rules").items())
    head = "".join(f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in found.items())
    text = f'{{\n{head} "rules": {{\n{rows}\n }}\n}}\n'
    if given.check:
        is_same = PUBLISHED.read_text(encoding="utf-8") == text
        print("as recorded" if is_same else "the round is judged otherwise than recorded")
        return 0 if is_same else 1
    PUBLISHED.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
