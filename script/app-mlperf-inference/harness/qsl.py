"""The samples in memory: loaded and unloaded when LoadGen says so, and handed out as network inputs.

Rows are kept in index order, so that a performance set 0..P-1 needs no translation from index to row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.datasets.base import Dataset
from harness.tensors import Array, Tensors

_FEW = 64
"""Up to so many indices, `take` is quicker with the list itself than with an array made of it first (measured)."""


class SampleLibrary:
    """The network inputs of the loaded samples.

    `single` maps a sample index to ready inputs of batch 1 (views, no copies); it is one object for the library's
    life.
    """

    def __init__(self, dataset: Dataset, preprocess: Callable[[Array], Tensors]) -> None:
        self._dataset = dataset
        self._preprocess = preprocess
        self._rows: npt.NDArray[np.intp] | None = None
        self._inputs: dict[str, Array] = {}
        self.single: dict[int, Tensors] = {}

    @property
    def count(self) -> int:
        """Samples of the whole data set."""
        return self._dataset.count

    def load(self, indices: Sequence[int]) -> None:
        """Read and preprocess the samples of `indices`; what was loaded before is dropped."""
        self.unload(indices)
        order = sorted(indices)
        inputs = self._preprocess(self._dataset.load(order))
        self._inputs.update({name: np.ascontiguousarray(array) for name, array in inputs.items()})
        for row, index in enumerate(order):
            self.single[index] = {name: array[row : row + 1] for name, array in self._inputs.items()}
        self._rows = None
        if order != list(range(len(order))):
            self._rows = np.full(self.count, self.count, dtype=np.intp)  # a row that `take` refuses
            self._rows[order] = np.arange(len(order))

    def unload(self, indices: Sequence[int]) -> None:
        """Drop everything; LoadGen unloads whole sets only."""
        self.single.clear()
        self._inputs.clear()

    def gather(self, indices: Sequence[int]) -> Mapping[str, Array]:
        """Return the inputs of a batch, one contiguous copy each; raises IndexError for a sample that is not
        loaded."""
        rows = indices if len(indices) <= _FEW else np.array(indices, dtype=np.intp)
        if self._rows is not None:
            rows = self._rows.take(rows)
        return {name: array.take(rows, axis=0) for name, array in self._inputs.items()}

    def fixed_gather(self, count: int) -> Callable[[Sequence[int]], Tensors]:
        """Return a function that gathers exactly `count` samples into arrays that the next call overwrites.

        It takes half the time of `gather` for a few samples. It is made when samples are loaded, works for all that is
        loaded later, and trusts the caller to ask for loaded samples only.
        """
        inputs = self._inputs
        buffers = {name: np.empty((count, *array.shape[1:]), array.dtype) for name, array in inputs.items()}
        pairs = tuple(buffers.items())

        def gather(indices: Sequence[int]) -> Tensors:
            rows = indices if self._rows is None else self._rows.take(indices)
            for name, buffer in pairs:
                inputs[name].take(rows, 0, buffer, "clip")  # numpy is slower with "raise" here
            return buffers

        return gather
