"""The ImageNet 2012 validation set as it lies on disk: JPEG files and a text file with their labels.

Files read: `val_map.txt` (the MLPerf reference's name) or `val.txt` (the name in Caffe's archive): one "name label" a
line, labels 0 to 999; and the images it names. Sample i is line i. The full set has 50,000 images
ILSVRC2012_val_00000001.JPEG to ..._00050000.JPEG; a shorter list is a part of it, as the community's 500 images.
A folder of other JPEG files without a list holds somebody's own pictures: they can be measured, in the order of their
names, and have no accuracy.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, read_facts, require_found
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media.image_files import Image, damaged_images, read_image

LABEL_FILES = ("val_map.txt", "val.txt")
CLASS_COUNT = 1000
FULL_COUNT = 50_000
_KNOWN_LABELS = {1: 65, 2: 970, 3: 230, 4: 809, 5: 516, 49_998: 232, 49_999: 982, 50_000: 355}
"""Some labels of val.txt in Caffe's caffe_ilsvrc12.tar.gz, by the number of the image."""
_ARCHIVE_BYTES, _ARCHIVE_SLACK_BYTES = 6_744_924_160, 20_480
"""Of ILSVRC2012_img_val.tar as image-net.org serves it (Content-Length, November 2026): a header of 512 bytes and whole
blocks of 512 bytes for each file, two empty blocks, filled up to 10,240 bytes."""
_OFFICIAL_NAME = re.compile(r"ILSVRC2012_val_000[0-9]{5}\.JPEG")
_SHOWN = 5
_HINT = "check the folder, or rebuild the data set: cm run script --tags=get,dataset,imagenet,validation --renew"


@dataclass(frozen=True, slots=True, eq=False)
class ImagenetDataset:
    """The validation images by index, read when asked for. labels: int64[count], 0..999; of pictures without a
    list, where `label_path` is None, -1."""

    folder: Path
    label_path: Path | None
    names: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def files(self) -> tuple[Path, ...]:
        images = tuple(self.folder / name for name in self.names)
        return images if self.label_path is None else (self.label_path, *images)

    @property
    def why_unscored(self) -> str:
        """Why answers cannot be scored; empty where they can."""
        return "" if self.label_path is not None else f"the pictures in {self.folder} have no {LABEL_FILES[0]}"

    def problems(self) -> list[str]:
        """Return which images are damaged. Each is read to its end mark; nothing is decoded."""
        return damaged_images([self.folder / name for name in self.names])

    def sample_name(self, index: int) -> str:
        """Return the image's file name, for the map of preprocessed samples."""
        return self.names[index]

    def load(self, indices: Sequence[int]) -> list[Image]:
        """Return uint8[height, width, 3] for each index, red first. Raises HarnessError naming every damaged file."""
        images, problems = [], []
        for index in indices:
            try:
                images.append(read_image(self.folder / self.names[index]))
            except HarnessError as error:
                problems.append(str(error))
        if problems:
            raise HarnessError(
                f"{len(problems)} of {len(indices)} images cannot be used: {_some(problems, '; ')}", _HINT
            )
        return images


def _some(items: Sequence[str], separator: str = ", ") -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return separator.join(items[:_SHOWN]) + more


def label_file(folder: Path) -> Path:
    """Return the file with the labels; raises HarnessError when there is none."""
    for name in LABEL_FILES:
        if (folder / name).is_file():
            return folder / name
    raise HarnessError(f"{folder} contains no {' or '.join(LABEL_FILES)} (one line per image: name label)", _HINT)


def own_pictures(folder: Path) -> tuple[str, ...]:
    """Return the names of the JPEG files in a folder that has no list and none of ImageNet's files; else none."""
    if not folder.is_dir() or any((folder / name).is_file() for name in LABEL_FILES):
        return ()
    names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    return () if any(name.startswith("ILSVRC2012_val_") for name in names) else tuple(names)


def read_labels(path: Path) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return names and labels (int64, 0..999) in the file's order; raises HarnessError naming the wrong lines."""
    names, labels, problems = [], [], []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if len(words) == 2 and words[1].isascii() and words[1].isdigit() and int(words[1]) < CLASS_COUNT:
            names.append(words[0])
            labels.append(int(words[1]))
        elif words:
            problems.append(f"line {number}: {line[:80]!r}")
    if problems:
        allowed = f"name, space, label 0 to {CLASS_COUNT - 1}"
        raise HarnessError(f"{path}: {len(problems)} lines are not labels ({allowed}): {_some(problems, '; ')}", _HINT)
    if not names:
        raise HarnessError(f"{path} lists no images", _HINT)
    repeated = len(names) - len(set(names))
    if repeated:
        raise HarnessError(f"{path} lists {repeated} images more than once", _HINT)
    return tuple(names), np.array(labels, dtype=np.int64)


def _sizes(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """The bytes of each file in the folders of these names; folders are listed once, not asked file by file."""
    sizes: dict[str, int] = {}
    for place in sorted({str(Path(name).parent) for name in names}):
        prefix = "" if place == "." else f"{place}/"
        if (folder / place).is_dir():
            with os.scandir(folder / place) as entries:
                sizes.update({prefix + entry.name: entry.stat().st_size for entry in entries if entry.is_file()})
    return sizes


def _file_problems(names: Sequence[str], sizes: Mapping[str, int]) -> list[str]:
    """What is missing, empty or extra, each kind in a line."""
    wanted = set(names)
    kinds = {
        "missing": [name for name in names if name not in sizes],
        "empty": [name for name in names if sizes.get(name) == 0],
        "extra (not in the list of labels)": sorted(
            name for name in sizes.keys() - wanted if name.upper().endswith((".JPEG", ".JPG"))
        ),
    }
    return [f"{len(found)} images {kind}: {_some(found)}" for kind, found in kinds.items() if found]


def difference(names: Sequence[str], labels: Sequence[int], sizes: Mapping[str, int]) -> str:
    """Return what shows that pictures are not those of the validation set; empty where nothing does.

    Names, some labels, and where all are there how often each label occurs and what the files take together: the
    contents of a picture are not compared, since no digest of one is published.
    """
    known = {f"ILSVRC2012_val_{number:08d}.JPEG": label for number, label in _KNOWN_LABELS.items()}
    for name, label in zip(names, labels, strict=True):
        if not _OFFICIAL_NAME.fullmatch(Path(name).name):
            return f"{name} is not a file name of the validation set"
        wanted = known.get(Path(name).name, label)
        if label != wanted:
            return f"{name} has label {label}, not {wanted}"
    if len(names) != FULL_COUNT:
        return ""
    of_classes = np.bincount(labels, minlength=CLASS_COUNT)
    fewest, most = int(of_classes.min()), int(of_classes.max())
    if fewest != most:
        return f"{fewest} to {most} pictures of a class, not {FULL_COUNT // CLASS_COUNT} of each"
    blocks = sum(1 + -(-sizes.get(name, 0) // 512) for name in names) + 2
    if abs(blocks * 512 - _ARCHIVE_BYTES) > _ARCHIVE_SLACK_BYTES:
        return f"the files make an archive of {blocks * 512:,} bytes, ILSVRC2012_img_val.tar has {_ARCHIVE_BYTES:,}"
    return ""


def open_dataset(folder: Path) -> ImagenetDataset:
    if names := own_pictures(folder):
        facts = replace(read_facts(folder), difference="pictures with other names")
        return ImagenetDataset(folder, None, names, np.full(len(names), -1, dtype=np.int64), facts)
    path = label_file(folder)
    names, labels = read_labels(path)
    try:
        sizes = _sizes(folder, names)
        problems = _file_problems(names, sizes)
    except OSError as error:
        raise HarnessError(f"cannot read {error.filename}: {error.strerror}", _HINT) from error
    if problems:
        raise HarnessError(f"{folder} does not match its {path.name}:\n  " + "\n  ".join(problems), _HINT)
    facts = replace(read_facts(folder), difference=difference(names, labels.tolist(), sizes))
    return ImagenetDataset(folder, path, names, labels, facts)


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the validation images that lines of a calibration list name: `name`, or `name number`."""
    dataset = open_dataset(folder)
    index_of = {name: index for index, name in enumerate(dataset.names)}
    names = [entry.split()[0] for entry in entries]
    require_found([name for name in names if name not in index_of], len(names), folder)
    return ListedSamples(dataset=dataset, indices=[index_of[name] for name in names], is_measured=True)
