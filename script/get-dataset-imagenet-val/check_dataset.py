"""Looks whether labels and images of an ImageNet folder can be used; names everything that cannot.

Run by run.sh in the benchmark's virtual environment, with src on PYTHONPATH:

    python3 check_dataset.py --folder FOLDER

Each image is read from its start mark to its end mark; nothing is decoded. 50,000 images take as long as reading
6.3 GiB takes.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.imagenet import open_dataset
from crowdperf.harness.media.imaging import image_problem

SHOWN = 10
WORKERS = min(8, 2 * (os.cpu_count() or 1))


def check(folder: Path) -> int:
    """Gives the number of images when all is well; raises HarnessError naming what is not."""
    dataset = open_dataset(folder)
    with ThreadPoolExecutor(WORKERS) as pool:
        problems = list(pool.map(lambda name: image_problem(folder / name), dataset.names))
    broken = [f"{name} {problem}" for name, problem in zip(dataset.names, problems, strict=True) if problem]
    if broken:
        more = f"\n  and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
        raise HarnessError(
            f"{len(broken)} of {dataset.count:,} images in {folder} are damaged:\n  "
            + "\n  ".join(broken[:SHOWN])
            + more,
            "unpack the archive again, or copy these files again",
        )
    return dataset.count


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    folder = parser.parse_args().folder
    try:
        count = check(folder)
    except HarnessError as error:
        print(f"check_dataset.py: {error.with_hint}", file=sys.stderr)
        return 1
    print(f"imagenet: {count:,} images in {folder}, all whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
