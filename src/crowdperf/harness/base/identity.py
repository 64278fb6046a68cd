"""The identity of a data set: the digest that a store of preprocessed samples is bound to.

It is made of the names, sizes and contents of the data set's files, so a copy in another place has the same one. To
read every file at each start would take long (6 GB for ImageNet), so the stamp, made of names, sizes and times, says
whether the files were touched since: only then they are read again. Of the times it holds the inode's change time,
too, which no program can set back.
"""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.base.dataset import Dataset
from crowdperf.harness.base.errors import HarnessError
from crowdperf.kit.whole_file import file_sha256

_HINT = "check the data set's folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetIdentity:
    """sha256: of names, sizes and contents. stamp: SHA-256 of names, sizes and times. is_synthetic: as dataset.json
    says."""

    sha256: str
    stamp: str
    is_synthetic: bool


def identity_of(folder: Path, dataset: Dataset) -> DatasetIdentity:
    """Return the identity of an opened data set; reads every file. Raises HarnessError for one that cannot be read."""
    stamp = stamp_of(folder, dataset)
    return DatasetIdentity(sha256=content_sha256(folder, dataset), stamp=stamp, is_synthetic=dataset.facts.is_synthetic)


def stamp_of(folder: Path, dataset: Dataset) -> str:
    """Return the digest of names, sizes and times (of modification and of the inode's change) of the files."""
    return _digest(f"{name}\t{found.st_size}\t{found.st_mtime_ns}\t{found.st_ctime_ns}"
                   for name, found in _stats(folder, dataset))  # fmt: skip


def content_sha256(folder: Path, dataset: Dataset) -> str:
    """Return the digest of names, sizes and contents of the files, which are read in as many threads as cores."""
    stats = _stats(folder, dataset)
    with ThreadPoolExecutor(len(available_cores())) as pool:
        try:
            digests = list(pool.map(file_sha256, [folder / name for name, _ in stats]))
        except OSError as error:
            raise HarnessError(f"cannot read {error.filename}: {error.strerror}", _HINT) from error
    return _digest(f"{name}\t{found.st_size}\t{sha256}" for (name, found), sha256 in zip(stats, digests, strict=True))


def _stats(folder: Path, dataset: Dataset) -> list[tuple[str, os.stat_result]]:
    """Return name (relative to `folder`) and status of each file, sorted by name."""
    try:
        return sorted((os.path.relpath(path, folder), path.stat()) for path in dataset.files)
    except OSError as error:
        raise HarnessError(f"cannot read {error.filename}: {error.strerror}", _HINT) from error


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
