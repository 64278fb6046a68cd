"""Asks both official checkers for their verdict on every mutation and writes data/verdicts.json.

    PYTHONPATH=src:tests/support python tests/gate/record_verdicts.py --inference=PATH [--jobs=2]

PATH is a checkout of mlcommons/inference; the Python that runs this needs PyYAML. Takes minutes; not a test.
"""

import argparse
import json
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutations import MUTATIONS, Mutation
from tree_builder import LOG_ROUND, build, copy_of

from crowdperf.gate.gate import check
from crowdperf.gate.official import run_official

VERDICTS = Path(__file__).resolve().parent / "data" / "verdicts.json"


def ask(mutation: Mutation, good: Path, scratch: Path, checkout: Path) -> dict[str, str]:
    """Return the three verdicts on one mutation."""
    root = copy_of(good / mutation.tree, scratch / mutation.name.replace("/", "_"))
    mutation.change(root)
    verdicts = {one.checker: one.word for one in run_official(checkout, root, LOG_ROUND)}
    verdicts["gate"] = "accepts" if check(root, LOG_ROUND).is_accepted else "refuses"
    shutil.rmtree(root)
    return verdicts


def main() -> int:
    """Ask and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inference", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        good, scratch = Path(folder, "good"), Path(folder, "scratch")
        for division in ("open", "closed"):
            build(good / division, division)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            rows = pool.map(lambda one: ask(one, good, scratch, arguments.inference), MUTATIONS)
            table = {mutation.name: row for mutation, row in zip(MUTATIONS, rows, strict=True)}
    official = {name: {key: row[key] for key in ("newer", "older")} for name, row in table.items()}
    VERDICTS.write_text(json.dumps(official, indent=1) + "\n", encoding="utf-8")
    for who in ("newer", "older", "gate"):
        refused = sum(row[who] != "accepts" for row in table.values())
        print(f"{who}: refuses {refused} of {len(table)}")
    by_either = [row for row in official.values() if set(row.values()) != {"accepts"}]
    print(f"refused by at least one official checker: {len(by_either)}")
    missed = [name for name, row in official.items()
              if set(row.values()) != {"accepts"} and table[name]["gate"] == "accepts"]  # fmt: skip
    print(f"refused by one of them, accepted by the gate: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
