"""Checks a data set of images with annotations: `python3 -m crowdperf.models.check_images --help`.

    python3 -m crowdperf.models.check_images --dataset coco --folder FOLDER --count 5000

Every image that the annotations list must be there and whole, and their number must be the asked one; images that are
not listed are told. What is wrong is listed on stderr, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.images import AnnotatedImages
from crowdperf.harness.media import imaging

_SHOWN = 5


def problems_of(dataset: AnnotatedImages, count: int) -> list[str]:
    """Return a line for each kind of problem, naming the first files; empty when there is none."""
    problems = []
    if dataset.count != count:
        problems.append(f"{dataset.annotations_path} lists {dataset.count} images; asked for: {count}")
    damaged = [(path.name, problem) for path in dataset.paths if (problem := imaging.image_problem(path))]
    if damaged:
        shown = ", ".join(f"{name} {problem}" for name, problem in damaged[:_SHOWN])
        problems.append(f"{len(damaged)} damaged: {shown}" + (", ..." if len(damaged) > _SHOWN else ""))
    folder = dataset.paths[0].parent
    extra = sorted({path.name for path in folder.glob("*.jpg")} - {path.name for path in dataset.paths})
    if extra:
        shown = ", ".join(extra[:_SHOWN]) + (", ..." if len(extra) > _SHOWN else "")
        problems.append(f"{len(extra)} in {folder} that the annotations do not list: {shown}")
    return problems


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.models.check_images", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--dataset", required=True, choices=("coco", "openimages"))
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--count", required=True, type=int, help="how many images there must be")
    given = parser.parse_args(words)
    try:
        dataset = importlib.import_module(f"crowdperf.harness.datasets.{given.dataset}").open_dataset(given.folder)
        problems = problems_of(dataset, given.count)
    except HarnessError as error:
        problems = [str(error)]
    for problem in problems:
        print(f"{given.dataset}: {problem}", file=sys.stderr)
    if problems:
        print("hint: get what is missing or damaged again, or name another count with _size.NUMBER", file=sys.stderr)
        return 1
    print(f"{given.dataset}: {given.count} images are whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
