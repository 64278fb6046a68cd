"""Imports a bundle in the environment that can check signatures: python -m crowdperf.store.bundle_import DB BUNDLE
REPORT.

The report is written as JSON; why a bundle is refused goes to stderr, a line for each problem, and the exit code is 1.
"""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from crowdperf.kit.whole_file import write_whole
from crowdperf.rules.names import printable
from crowdperf.store.imports import FAILURES, import_path
from crowdperf.store.refusal import BundleRefused


def main(words: Sequence[str]) -> int:
    """Import; 0, or 1 where the bundle or the database cannot be used."""
    database, bundle, report_file = map(Path, words)
    try:
        report = import_path(database, bundle)
    except BundleRefused as error:
        print(f"{bundle} is refused:", file=sys.stderr)
        for one in error.problems:
            text = f"  {one.file or 'bundle'}: {one.found}, expected {one.expected} ({one.rule})"
            print(printable(text), file=sys.stderr)
        return 1
    except FAILURES as error:
        print(f"cannot import {bundle} into {database}: {error}", file=sys.stderr)
        return 1
    write_whole(report_file, json.dumps(dataclasses.asdict(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
