"""Asks the newer official checker about the synthetic trees of v6.1 and writes data/round_verdicts.json.

    PYTHONPATH=src:tests/support python tests/gate/record_round_verdicts.py --inference=PATH [--check]

PATH is a checkout of mlcommons/inference; the Python that runs this needs PyYAML, numpy and pandas. Takes minutes. The
checker reads the trees only, and runs in a scratch folder. `--check` writes nothing and fails on a difference.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from disagreements import CASES
from round_trees import ROUND, build_endpoints, build_model

from crowdperf.gate.official import run_official
from crowdperf.logs.round_tables import load_round

VERDICTS = Path(__file__).resolve().parent / "data" / "round_verdicts.json"


def ask(root: Path, checkout: Path) -> str:
    """Return what the newer checker says to a tree."""
    return next(one.word for one in run_official(checkout, root, ROUND) if one.checker == "newer")


def verdicts(checkout: Path) -> dict[str, dict[str, str]]:
    """Ask about the tree of every model, in each layout that it may have, and about every change of a tree."""
    found: dict[str, dict[str, str]] = {"loadgen": {}, "endpoints": {}, "changes": {}}
    for name, table in load_round(ROUND).models.items():
        makers = {"loadgen": build_model} | ({"endpoints": build_endpoints} if table.may_be_endpoints else {})
        for layout, make in makers.items():
            with tempfile.TemporaryDirectory(prefix="round-tree-") as folder:
                found[layout][name] = ask(make(Path(folder), name), checkout)
    for case in CASES.values():
        with tempfile.TemporaryDirectory(prefix="round-tree-") as folder:
            root = case.build(Path(folder))
            case.change(root)
            found["changes"][case.name] = ask(root, checkout)
    return found


def main() -> int:
    """Ask, and write or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inference", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    found = verdicts(arguments.inference)
    if arguments.check:
        old = json.loads(VERDICTS.read_text(encoding="utf-8"))
        differing = [name for part in found for name in found[part] if found[part][name] != old[part].get(name)]
        print(f"differing: {differing}" if differing else "all verdicts agree")
        return 1 if differing else 0
    git = ["git", "-C", str(arguments.inference), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown commit"
    head = {
        "checker": f"mlcommons/inference {commit}, submission_checker --version {ROUND}",
        "asked": str(date.today()),
    }
    VERDICTS.write_text(json.dumps(head | found, indent=1) + "\n", encoding="utf-8")
    print(
        {part: {word: list(rows.values()).count(word) for word in set(rows.values())} for part, rows in found.items()}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
