"""Images with annotations in COCO's format, as the data sets coco and openimages have them.

A sample's index is its position in the annotation file's "images": so the official accuracy scripts read a response
(accuracy-coco.py, accuracy-openimages.py of mlcommons/inference). Every image of the file must be there. The reference
leaves missing images out without a word and so gives later ones another index; here they are listed and refused.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, read_facts, require_found
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media.image_files import damaged_images

_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A raw sample: index and path of an image that is not yet decoded."""

    index: int
    path: Path


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ImageFiles:
    """Images without annotations, as calibration takes them."""

    paths: tuple[Path, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.paths)

    @property
    def files(self) -> tuple[Path, ...]:
        return self.paths

    def load(self, indices: Sequence[int]) -> list[ImageFile]:
        """Return index and path of each; decoding is the model's preprocessing."""
        return [ImageFile(index, self.paths[index]) for index in indices]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AnnotatedImages(ImageFiles):
    """Images in the order of the annotation file."""

    annotations_path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.annotations_path, *self.paths)

    def problems(self) -> list[str]:
        """Return the images that are damaged, and those that the annotations do not list."""
        folder = self.paths[0].parent
        extra = sorted({path.name for path in folder.glob("*.jpg")} - {path.name for path in self.paths})
        shown = ", ".join(extra[:_SHOWN_NAMES]) + (", ..." if len(extra) > _SHOWN_NAMES else "")
        unknown = [f"{len(extra)} in {folder} that the annotations do not list: {shown}"] if extra else []
        return [*damaged_images(self.paths), *unknown]


def open_annotated_images(folder: Path, annotations: str, images: str, hint: str) -> AnnotatedImages:
    """Return the data set with annotation file and image folder at these places of `folder`.

    Raises HarnessError for an unusable annotation file or missing images, with `hint` as the next step.
    """
    path = folder / annotations
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
        entries = [(int(entry["id"]), str(entry["file_name"])) for entry in values["images"]]
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", hint) from error
    except (ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"{path} contains no annotations in COCO's format: {error!r}", hint) from error
    if not entries:
        raise HarnessError(f"{path} lists no images", hint)
    missing = [name for _, name in entries if not (folder / images / name).is_file()]
    if missing:
        shown = ", ".join(missing[:_SHOWN_NAMES]) + (", ..." if len(missing) > _SHOWN_NAMES else "")
        raise HarnessError(f"{folder / images} is missing {len(missing)} of {len(entries)} images: {shown}", hint)
    return AnnotatedImages(
        paths=tuple(folder / images / name for _, name in entries),
        annotations_path=path,
        facts=read_facts(folder),
    )


def listed_images(folder: Path, images: str, names: Sequence[str]) -> ListedSamples:
    """Return the images that a calibration list names, from the subfolder `images`; raises HarnessError naming those
    that are not there."""
    paths = tuple(folder / images / name for name in names)
    require_found([path.name for path in paths if not path.is_file()], len(paths), folder / images)
    dataset = ImageFiles(paths=paths, facts=read_facts(folder))
    return ListedSamples(dataset=dataset, indices=range(dataset.count), is_measured=False)
