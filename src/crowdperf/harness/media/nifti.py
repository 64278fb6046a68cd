"""Reads NIfTI volumes (*.nii.gz), tells from their headers which ones are damaged, and data sets of such cases.

Volumes are read with the package nibabel, which is imported where it is used.
"""

import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts
from crowdperf.harness.base.errors import HarnessError

_GZIP_SIZE_MODULUS = 2**32  # a gzip file ends with its content's size modulo this (RFC 1952, section 2.3.1)
_MAX_LISTED = 20


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """voxels: an array of three axes, in the file's order. spacing_mm: the size of a voxel along each of them."""

    voxels: npt.NDArray[Any]
    spacing_mm: tuple[float, float, float]


def read_volume(path: Path, dtype: npt.DTypeLike, hint: str) -> Volume:
    """Return the volume; values are scaled in float64, as nibabel does, then cast. Raises HarnessError with `hint`.

    The file is unpacked whole first, because nibabel stops before the checksum at its end. The spacing is `pixdim` 1 to
    3 of the header, float32 values.
    """
    import nibabel

    try:
        image = nibabel.Nifti1Image.from_bytes(gzip.decompress(path.read_bytes()))
        voxels = image.get_fdata(caching="unchanged").astype(dtype)
    except (OSError, EOFError, ValueError, zlib.error, nibabel.filebasedimages.ImageFileError) as error:
        raise HarnessError(f"cannot read {path}: {error}", hint) from error
    first, second, third = image.header["pixdim"][1:4].tolist()
    return Volume(voxels=voxels, spacing_mm=(first, second, third))


def unpacked_size(path: Path) -> int:
    """Return the size of what a gzip file holds, modulo 4 GiB, from its last four bytes."""
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def _shape(path: Path) -> tuple[int, ...]:
    """Return the shape that the header tells; raises ValueError or OSError for a file that cannot be whole."""
    import nibabel

    try:
        image: Any = nibabel.load(path)
    except (EOFError, nibabel.filebasedimages.ImageFileError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    expected = int(image.dataobj.offset) + int(np.prod(image.shape)) * image.get_data_dtype().itemsize
    found = unpacked_size(path)
    if found != expected % _GZIP_SIZE_MODULUS:
        raise ValueError(f"{path} is truncated or damaged: it has {found} bytes, its header says {expected}")
    if len(image.shape) != 3:
        raise ValueError(f"{path} has the shape {image.shape}, expected three axes")
    return tuple(image.shape)


def find_problems(paths: Sequence[Path]) -> list[str]:
    """Return what is wrong with the volumes of one case, which must have one shape; their voxels are not read."""
    problems, shapes = [], {}
    for path in paths:
        if not path.is_file():
            problems.append(f"{path} is missing")
            continue
        try:
            shapes[path.name] = _shape(path)
        except (ValueError, OSError) as error:
            problems.append(str(error))
    if len(set(shapes.values())) > 1:
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        problems.append(f"the volumes of {paths[0].parent} differ in shape: {described}")
    return problems


@dataclass(frozen=True, slots=True, eq=False)
class VolumeCases:
    """The cases of one part of a data set; volumes are read from their files each time they are asked for."""

    folder: Path
    cases: tuple[str, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.cases)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for case in self.cases for path in self.case_files(case))

    def case_files(self, case: str) -> tuple[Path, ...]:
        raise NotImplementedError

    def require_whole(self, name: str, hint: str) -> None:
        """Raise HarnessError naming the files of the data set `name` that are missing or damaged, if there are any."""
        problems = [problem for case in self.cases for problem in find_problems(self.case_files(case))]
        if problems:
            rest = [] if len(problems) <= _MAX_LISTED else [f"and {len(problems) - _MAX_LISTED} more"]
            raise HarnessError("\n  ".join([f"{name} cannot be used:", *problems[:_MAX_LISTED], *rest]), hint)
