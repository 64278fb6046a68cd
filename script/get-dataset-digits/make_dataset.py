"""Writes the digits dataset: 1,797 real handwritten digits from scikit-learn, split by a fixed rule.

Stands alone (numpy and scikit-learn only) and is run by run.sh in the benchmark's virtual environment:

    python3 make_dataset.py --output_dir FOLDER

Split rule: the image at index i (0-based, in scikit-learn's order) is a validation image when i % 3 == 2, else a
training image: 599 and 1,198 images. The source is a sequence of short runs of the ten digits, and 3 and 10 have no
common factor, so every digit is spread over both parts. No image occurs twice in the source (checked at each run), so
no validation image is among the training images. The same people wrote images of both parts: accuracy on the
validation part says how well unseen images are read, not how well unseen writers are.
"""

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_digits

SOURCE = "sklearn.datasets.load_digits: test part of the UCI 'Optical Recognition of Handwritten Digits' data set"
SOURCE_URL = "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits"
SOURCE_LICENSE = "CC BY 4.0"
SPLIT_RULE = "validation when index % 3 == 2 (index in the order of the source), else training"

# sha256 of the 1797*64 pixel bytes (row by row, 0..16) followed by the 1797 label bytes. It does not depend on how a
# scikit-learn release packs the file. Computed here from scikit-learn 1.9.1 on 2026-11-21.
SOURCE_SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


class DatasetError(Exception):
    """The source data cannot be used; the text says what was found and what was expected."""


@dataclass(frozen=True)
class Digits:
    """Images `uint8[n, 8, 8]` (0 = paper .. 16 = ink) with labels `uint8[n]` (0..9)."""

    images: np.ndarray
    labels: np.ndarray


def source_sha256(digits: Digits) -> str:
    """SHA-256 (hex) of the pixel bytes followed by the label bytes."""
    return hashlib.sha256(digits.images.tobytes() + digits.labels.tobytes()).hexdigest()


def as_digits(images: np.ndarray, labels: np.ndarray) -> Digits:
    """The source's `float64[n, 8, 8]` images and integer labels as whole numbers in one byte each.

    Raises DatasetError where a value would change by that.
    """
    digits = Digits(images=images.astype(np.uint8), labels=labels.astype(np.uint8))
    if not (np.array_equal(digits.images, images) and np.array_equal(digits.labels, labels)):
        raise DatasetError("the source contains values that are not whole numbers from 0 to 255")
    return digits


def check_source(digits: Digits) -> None:
    """Raises DatasetError when the data is not the known 1,797 images, or when an image occurs twice."""
    found = source_sha256(digits)
    if found != SOURCE_SHA256:
        raise DatasetError(
            f"the digits of this scikit-learn are not the expected ones: {len(digits.labels)} images, sha256 {found}; "
            f"expected 1797 images, sha256 {SOURCE_SHA256}\n"
            "hint: use another scikit-learn: cm run script --tags=get,dataset,digits --adr.scikit-learn.version=1.7.2"
        )
    flat = digits.images.reshape(len(digits.images), -1)
    distinct = len(np.unique(flat, axis=0))
    if distinct != len(flat):
        raise DatasetError(f"{len(flat) - distinct} images occur more than once: the two parts could share an image")


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


def describe(training: Digits, validation: Digits, files: dict[str, str], scikit_learn_version: str) -> dict:
    """The content of dataset.json."""
    return {
        "name": "digits",
        "source": SOURCE,
        "source_url": SOURCE_URL,
        "source_license": SOURCE_LICENSE,
        "source_sha256": SOURCE_SHA256,
        "scikit_learn_version": scikit_learn_version,
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
    source = load_digits()
    digits = as_digits(source.images, source.target)
    check_source(digits)
    training, validation = split(digits)
    files = write_part(output_dir, "train", training) | write_part(output_dir, "validation", validation)
    description = describe(training, validation, files, sklearn.__version__)
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
