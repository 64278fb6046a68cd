"""Writes the digits dataset: 1,797 real handwritten digits, split by a fixed rule.

Needs numpy only and is run by run.sh in the benchmark's virtual environment:

    python3 make_dataset.py --output_dir FOLDER

Source: optdigits.bin.gz, the test part of the UCI data set "Optical Recognition of Handwritten Digits" (E. Alpaydin and
C. Kaynak, 1998; CC BY 4.0), one byte for each pixel (0..16) of the 1,797 images, row by row, then one for each label.
It was written on 2026-11-28 from `sklearn.datasets.load_digits` of scikit-learn 1.9.1, whose order it keeps. A test
compares the two. Installing scikit-learn and scipy for it took 8 s of CPU time and 165 MB.

Split rule: the image at index i (0-based) is a validation image when i % 3 == 2, else a training image: 599 and 1,198
images. The source is a sequence of short runs of the ten digits, and 3 and 10 have no common factor, so every digit is
spread over both parts. No image occurs twice in the source (tests check it), so no validation image is among the
training images. The same people wrote images of both parts: accuracy on the validation part says how well unseen images
are read, not how well unseen writers are.
"""

import argparse
import gzip
import hashlib
import json
import shlex
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = "test part of the UCI 'Optical Recognition of Handwritten Digits' data set"
SOURCE_URL = "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits"
SOURCE_LICENSE = "CC BY 4.0"
SOURCE_FILE = Path(__file__).with_name("optdigits.bin.gz")
SPLIT_RULE = "validation when index % 3 == 2 (index in the order of the source), else training"

COUNT = 1797
# sha256 of the 1797*64 pixel bytes (row by row, 0..16) followed by the 1797 label bytes. Computed from scikit-learn
# 1.9.1 on 2026-11-21.
SOURCE_SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


class DatasetError(Exception):
    """The source data cannot be used; the text says what was found and what was expected."""


@dataclass(frozen=True)
class Digits:
    """Images `uint8[n, 8, 8]` (0 = paper .. 16 = ink) with labels `uint8[n]` (0..9)."""

    images: np.ndarray
    labels: np.ndarray


def read_source(path: Path = SOURCE_FILE) -> Digits:
    """The images and labels of the source file. Raises DatasetError when they are not the known ones."""
    hint = f"hint: git -C {shlex.quote(str(path.parent))} checkout -- {path.name}"
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} cannot be read ({error})\n{hint}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != SOURCE_SHA256:
        raise DatasetError(
            f"{path} is not the expected data: {len(content)} bytes with sha256 {found}, "
            f"expected {COUNT * 65} bytes with sha256 {SOURCE_SHA256}\n{hint}"
        )
    values = np.frombuffer(content, np.uint8)
    return Digits(images=values[: COUNT * 64].reshape(COUNT, 8, 8), labels=values[COUNT * 64 :])


def split(digits: Digits) -> tuple[Digits, Digits]:
    """The training part and the validation part (every third image)."""
    is_validation = np.arange(len(digits.labels)) % 3 == 2
    training = Digits(images=digits.images[~is_validation], labels=digits.labels[~is_validation])
    return training, Digits(images=digits.images[is_validation], labels=digits.labels[is_validation])


def write_part(folder: Path, name: str, part: Digits) -> dict[str, str]:
    """Writes one part as two npy files; gives their names with their sha256."""
    written = {}
    for kind, values in (("images", part.images), ("labels", part.labels)):
        path = folder / f"{name}_{kind}.npy"
        np.save(path, values, allow_pickle=False)
        written[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return written


def describe(training: Digits, validation: Digits, files: dict[str, str]) -> dict:
    """The content of dataset.json."""
    return {
        "name": "digits",
        "source": SOURCE,
        "source_url": SOURCE_URL,
        "source_license": SOURCE_LICENSE,
        "source_sha256": SOURCE_SHA256,
        "split_rule": SPLIT_RULE,
        "image": "uint8[8, 8], 0 (paper) to 16 (ink)",
        "train_count": len(training.labels),
        "validation_count": len(validation.labels),
        "train_count_per_digit": np.bincount(training.labels, minlength=10).tolist(),
        "validation_count_per_digit": np.bincount(validation.labels, minlength=10).tolist(),
        "sha256": files,
    }


def make_dataset(output_dir: Path) -> dict:
    """Writes the npy files and, last, dataset.json into `output_dir`; gives what dataset.json holds."""
    training, validation = split(read_source())
    files = write_part(output_dir, "train", training) | write_part(output_dir, "validation", validation)
    description = describe(training, validation, files)
    (output_dir / "dataset.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return description


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, required=True, help="existing folder to write to")
    output_dir = parser.parse_args().output_dir
    try:
        description = make_dataset(output_dir)
    except DatasetError as error:
        print(f"make_dataset.py: {error}", file=sys.stderr)
        return 1
    print(f"digits: {description['train_count']} training and {description['validation_count']} validation images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
