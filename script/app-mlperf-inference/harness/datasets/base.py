"""What a data set is: validation samples by index, and their labels.

A data set file holds the members of DatasetModule. The samples are raw; a model's `preprocess` makes network inputs
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from harness.tensors import Array


class Dataset(Protocol):
    """An opened validation set; indices are 0 to `count` - 1."""

    @property
    def count(self) -> int:
        """Number of validation samples."""

    @property
    def labels(self) -> Array:
        """The right answer of every sample, in index order."""

    def load(self, indices: Sequence[int]) -> Array:
        """Return the raw samples of `indices`, in that order; the first axis is the sample."""


class DatasetModule(Protocol):
    """The members of one file in this folder."""

    def open_dataset(self, folder: Path) -> Dataset:
        """Return the data set in `folder`; raises HarnessError when it is not complete."""
