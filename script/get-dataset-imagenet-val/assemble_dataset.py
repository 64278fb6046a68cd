"""Puts downloaded images and Caffe's list of labels into one folder in ImageNet's layout. Standard library only.

Run by run.sh:

    python3 assemble_dataset.py --unpacked FOLDER --output_dir FOLDER --count 500

FOLDER holds, somewhere below it, ILSVRC2012_val_*.JPEG and val.txt (labels of all 50,000 images). The images are moved;
val_map.txt gets the lines of those that are there.
"""

import argparse
import shutil
import sys
from pathlib import Path

PATTERN = "ILSVRC2012_val_*.JPEG"
LABELS = "val.txt"


class AssemblyError(Exception):
    """The archives do not hold what they should."""


def assemble(unpacked: Path, output_dir: Path, count: int) -> None:
    """Moves `count` images and writes val_map.txt. Raises AssemblyError; OSError when it cannot write."""
    images = {path.name: path for path in sorted(unpacked.rglob(PATTERN))}
    lists = sorted(unpacked.rglob(LABELS))
    if len(images) != count or len(lists) != 1:
        raise AssemblyError(
            f"the archives contain {len(images)} images and {len(lists)} {LABELS}; wanted: {count} and 1"
        )
    labels = dict(line.split() for line in lists[0].read_text(encoding="utf-8").splitlines() if line.strip())
    unknown = sorted(images.keys() - labels.keys())
    if unknown:
        raise AssemblyError(f"{LABELS} has no label for {len(unknown)} of the images, such as {unknown[0]}")
    output_dir.mkdir(parents=True, exist_ok=True)
    for name, path in images.items():
        path.replace(output_dir / name)
    lines = "".join(f"{name} {labels[name]}\n" for name in sorted(images))
    (output_dir / "val_map.txt").write_text(lines, encoding="utf-8")
    shutil.rmtree(unpacked)


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unpacked", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    try:
        assemble(given.unpacked, given.output_dir, given.count)
    except (AssemblyError, ValueError, OSError) as error:
        print(
            f"assemble_dataset.py: {error}\nhint: run it again with --new. The archives may have changed",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
