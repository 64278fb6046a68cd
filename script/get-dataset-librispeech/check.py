"""Checks a LibriSpeech folder as the benchmark reads it: every file of the list is there, whole and of the right kind.

    python3 check.py --dataset_dir FOLDER [--expected 2513]

Run in the benchmark's virtual environment with src on PYTHONPATH; needs numpy. All sound is read once.
"""

import argparse
import json
import sys
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.librispeech import MANIFEST_FILE, open_dataset

_SHOWN = 5


def extra_files(folder: Path) -> list[str]:
    """Names of wav files beside those of the list that the list does not know."""
    entries = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    known = {(folder / file["fname"]).resolve() for entry in entries for file in entry["files"]}
    parents = {(folder / Path(file["fname"]).parts[0]) for entry in entries for file in entry["files"]}
    found = {path.resolve() for parent in parents for path in parent.rglob("*.wav")}
    return sorted(str(path) for path in found - known)


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument(
        "--expected", type=int, default=0, help="utterances of at most 15 s there must be; 0: any number"
    )
    given = parser.parse_args()
    problems = []
    try:
        dataset = open_dataset(given.dataset_dir)
        for index in range(dataset.count):
            try:
                dataset.load([index])
            except HarnessError as error:
                problems.append(str(error))
    except HarnessError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 1
    problems += [f"{name} is not in {MANIFEST_FILE}" for name in extra_files(given.dataset_dir)]
    if given.expected and dataset.count != given.expected:
        problems.append(f"{dataset.count} utterances of at most 15 s; there should be {given.expected}")
    if problems:
        rest = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        lines = "".join(f"\n  {problem}" for problem in problems[:_SHOWN])
        print(f"check.py: {given.dataset_dir} cannot be used:{lines}{rest}", file=sys.stderr)
        return 1
    print(f"librispeech: {dataset.count} utterances of at most 15 s, all there and whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
