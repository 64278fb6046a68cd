"""Arrays that a user gives as .npz or .npy files: what they are, read without numpy, so that wrong ones are refused
before anything is installed. Form of the header: numpy.lib.format, versions 1.0 to 3.0 (read 2026-11-28).
"""

import ast
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from crowdperf.data.errors import DataError

_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 1 << 16
_KINDS = {"f": 3, "i": 2, "u": 1, "b": 0}
"""Kinds of numbers in the order in which numpy casts them ("same_kind")."""
_DAMAGE = (
    OSError, ValueError, KeyError, IndexError, TypeError, SyntaxError, MemoryError, zipfile.BadZipFile, zlib.error,
    RuntimeError,
)  # fmt: skip
"""The errors of a file that is not an archive of arrays. RuntimeError: encrypted, packed by an unknown method, or
nested too deep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayHeader:
    """kind: numpy's letter of its kind of numbers. shape: with the axis of the samples first."""

    kind: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind}{list(self.shape)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedArray:
    """An array for a tensor. dtype: numpy's name. shape: of one sample, with names of open sizes."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def misfit(self, found: ArrayHeader) -> str:
        """Return why an array cannot be used; empty where it can."""
        sizes = zip(self.shape, found.shape[1:], strict=False)
        is_shape = len(found.shape) == len(self.shape) + 1 and all(one == n for one, n in sizes if isinstance(one, int))
        wanted = self.dtype[0] if self.dtype[0] in _KINDS else "i"
        is_kind = found.kind in _KINDS and _KINDS[found.kind] <= _KINDS[wanted]
        if is_shape and is_kind:
            return ""
        return f"{self.name} is {found}, expected {self.dtype}[{','.join(map(str, ('N', *self.shape)))}]"


def _header(file: IO[bytes]) -> ArrayHeader:
    start = file.read(8)
    if start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise ValueError("not an array of numpy")
    size = int.from_bytes(file.read(2 if start[6] == 1 else 4), "little")
    if size > _MAX_HEADER_BYTES:
        raise ValueError("its header is too long")
    values = ast.literal_eval(file.read(size).decode("latin-1"))
    return ArrayHeader(kind=values["descr"][1], shape=tuple(int(one) for one in values["shape"]))


def array_headers(path: Path, names: Sequence[str], form: str) -> dict[str, ArrayHeader]:
    """Return the arrays of a .npz file by name, or of .npy files for the only one of `names`: one file, or a folder
    with one per sample. form: what to give, for the hint. Raises DataError for another path."""
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}
        files = sorted(path.glob("*.npy")) if path.is_dir() else [path]
        headers = []
        for file in files:
            with file.open("rb") as opened:
                headers.append(_header(opened))
    except _DAMAGE as error:
        raise DataError(f"cannot read {path}: {str(error) or type(error).__name__}", form) from error
    if len(names) != 1 or not headers:
        found = "has no .npy files" if not headers else "is one array"
        raise DataError(f"{path} {found}, but the network has {len(names)} inputs: {', '.join(names)}", form)
    if len({one.shape for one in headers}) > 1:
        raise DataError(f"{path} has arrays of different shapes", form)
    shape = (len(files), *headers[0].shape) if path.is_dir() else headers[0].shape
    return {names[0]: ArrayHeader(kind=headers[0].kind, shape=shape)}


def _member(archive: zipfile.ZipFile, name: str) -> ArrayHeader:
    with archive.open(name) as file:
        return _header(file)


def require_arrays(
    option: str, path: Path, found: Mapping[str, ArrayHeader], wanted: Sequence[WantedArray], form: str
) -> int:
    """Return the number of samples. Raises DataError with everything that is wrong."""
    problems = [f"{one.name} is missing" for one in wanted if one.name not in found]
    known = {one.name for one in wanted}
    problems += [f"{name} is not expected" for name in found if name not in known]
    problems += [why for one in wanted if one.name in found and (why := one.misfit(found[one.name]))]
    counts = {name: one.shape[0] if one.shape else 0 for name, one in found.items()}
    if not problems and (len(set(counts.values())) != 1 or 0 in counts.values()):
        problems.append(f"the numbers of samples are {', '.join(f'{name} {n}' for name, n in counts.items())}")
    if problems:
        raise DataError(f"--{option}: {path} cannot be used: {'. '.join(problems)}", form)
    return next(iter(counts.values()))
