"""The samples in memory: loaded and unloaded on LoadGen's request, and returned as network inputs.

A dense library keeps one array for each tensor, rows in index order, so that a performance set 0..P-1 needs no
translation from index to row. In MultiStream they are in LoadGen's order: a query is then a view of eight rows. A
ragged library keeps the tensors of each sample, and its length. If a device copies from pinned memory directly, the
samples are stored there, and a batch is a list of rows instead of a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model import Model, RaggedModel
from crowdperf.harness.base.tensors import Array, NetworkSpec, Rows, Samples, Tensors
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY

_LARGEST_KEPT_BY_MALLOC = 32 << 20
"""Bytes: glibc always gives larger arrays back to the kernel when they are freed. Source: DEFAULT_MMAP_THRESHOLD_MAX of
malloc.c, 4 MiB times the bytes of a long."""

_FEW = 64
"""Up to so many indices, `take` is quicker with the list itself than with an array made of it first (measured)."""


Indices: TypeAlias = Sequence[int] | npt.NDArray[np.int64]
"""Sample indices: LoadGen's list, or a part of it as an array."""


class Source(Protocol):
    """Where preprocessed samples come from: a data set with a model's preprocessing, or a store of such samples."""

    @property
    def count(self) -> int:
        """Samples of the whole data set."""

    def load(self, indices: Sequence[int]) -> Samples:
        """Return the preprocessed samples of `indices`, in that order."""


Neighbours: TypeAlias = tuple[list[int], Tensors]
"""The indices of a query of MultiStream, and its inputs."""


class Singles(Protocol):
    """Ready inputs of batch 1 by sample index."""

    def __getitem__(self, index: int, /) -> Tensors:
        """Return the inputs of a sample."""


def _not_loaded(index: int, loaded: Collection[int]) -> HarnessError:
    there = f"{len(loaded)} samples from {min(loaded)} to {max(loaded)}" if loaded else "none"
    return HarnessError(
        f"sample {index} was requested but is not among the samples in memory: {there}",
        "LoadGen requests only samples that it has loaded: report this with mlperf_log_detail.txt of the run",
    )


class _NotLoaded(dict[str, Array]):
    """Takes the place of the inputs of a sample: quicker than a dict of the loaded ones, because no key is compared."""

    __slots__ = ("_index", "_library")

    def __init__(self, index: int, library: Library) -> None:
        self._index, self._library = index, library

    def __missing__(self, name: str) -> Array:
        raise _not_loaded(self._index, self._library.loaded)


_Sample = TypeVar("_Sample")


class LoadedSamples(dict[int, _Sample]):
    """Samples by index. An index that is not loaded raises a HarnessError with its number."""

    def __missing__(self, index: int) -> _Sample:
        raise _not_loaded(index, self)


_NO_NEIGHBOURS: Neighbours = ([], {})

SampleMemory: TypeAlias = Callable[[Sequence[int], "np.dtype[Any]"], Array]
"""Returns an array of a shape and a type, with any values, from which a device copies directly."""


class Library(Protocol):
    """The loaded samples. `single` and `neighbours` are one object each for the library's life.

    neighbours: by its first sample, a query of MultiStream as a view of the samples, if LoadGen loaded them for
    MultiStream ("a set of samples that are neighbors", query_sample_library.h). Other queries must be gathered.
    """

    is_ragged: bool
    neighbours: list[Neighbours]

    @property
    def single(self) -> Singles:
        """Ready inputs of batch 1 by sample index."""

    @property
    def loaded(self) -> list[int]:
        """The samples in memory."""

    @property
    def count(self) -> int:
        """Samples of the whole data set."""

    def load(self, indices: Sequence[int]) -> None:
        """Load the samples of `indices` into memory and drop those loaded before."""

    def unload(self, indices: Sequence[int]) -> None:
        """Drop everything. LoadGen unloads whole sets only."""

    def gather(self, indices: Indices) -> Tensors:
        """Return the inputs of a batch. Raises HarnessError for a sample that is not loaded."""

    def fixed_gather(self, count: int) -> Callable[[Indices], Tensors]:
        """Return a function that gathers up to `count` samples, perhaps into arrays that its next use overwrites.
        Raises as `gather`."""

    def by_length(self, indices: Indices) -> npt.NDArray[np.intp] | None:
        """Return an order (positions in `indices`) with samples of similar lengths next to each other, which ends with
        the shortest, or None if all are equally long.

        A query may contain the loaded samples several times over. Each pass is ordered separately: the rules forbid
        sorting across repetitions of the data set.
        """


class DenseLibrary:
    """Samples of one shape: a contiguous array for each tensor, of which a batch is a copy and a sample a view."""

    is_ragged = False

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows: npt.NDArray[np.intp] | None = None
        self._inputs: dict[str, Array] = {}
        self._row_marks: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)  # `take` refuses rows that it has not
        self._missing: list[Tensors] = []
        self.loaded: list[int] = []
        self.single: list[Tensors] = []
        self.neighbours: list[Neighbours] = []

    @property
    def count(self) -> int:
        return self._source.count

    def load(self, indices: Sequence[int]) -> None:
        self.unload(indices)
        self.loaded = sorted(set(indices))
        is_padded = len(self.loaded) < len(indices)  # so that MultiStream's last samples have neighbours, too
        order = list(indices) if is_padded else self.loaded
        inputs = self._source.load(order)
        if not isinstance(inputs, Mapping):
            raise HarnessError("got samples of different shapes for a model with one shape")
        self._inputs.update({name: self._keep(name, array) for name, array in inputs.items()})
        self._row_marks = np.zeros(len(order), dtype=np.bool_)
        self._missing = self._missing or [_NotLoaded(index, self) for index in range(self.count)]
        self.single += self._missing
        for row, index in enumerate(order):
            self.single[index] = self._view(row, 1)
        self.neighbours += [_NO_NEIGHBOURS] * self.count
        if is_padded:
            for row in reversed(range(len(order) - MULTI_STREAM_SAMPLES_PER_QUERY + 1)):
                samples = order[row : row + MULTI_STREAM_SAMPLES_PER_QUERY]
                self.neighbours[samples[0]] = samples, self._view(row, MULTI_STREAM_SAMPLES_PER_QUERY)
        self._rows = None
        if order != list(range(len(order))):
            self._rows = np.full(self.count, len(order), dtype=np.intp)  # a row that there is not
            self._rows[order] = np.arange(len(order))

    def unload(self, indices: Sequence[int]) -> None:
        self.loaded = []
        self.single.clear()
        self.neighbours.clear()
        self._inputs.clear()
        self._rows = np.zeros(0, dtype=np.intp)  # which has no row for any sample

    def _keep(self, name: str, array: Array) -> Array:
        """Return the loaded samples of a tensor without a copy."""
        return np.ascontiguousarray(array)

    def _not_loaded(self, indices: Iterable[int]) -> HarnessError:
        """Return the error for the first of `indices` that is not loaded."""
        loaded = set(self.loaded)
        return _not_loaded(int(next(index for index in indices if index not in loaded)), loaded)

    def _rows_of(self, indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the rows of samples. Raises HarnessError for one that is not loaded."""
        try:
            rows = indices if self._rows is None else self._rows.take(indices)
            self._row_marks.take(rows)
        except IndexError:
            raise self._not_loaded(indices) from None
        return rows

    def _view(self, row: int, count: int) -> Tensors:
        return {name: array[row : row + count] for name, array in self._inputs.items()}

    def gather(self, indices: Indices) -> Tensors:
        """Return one contiguous copy for each input. Raises HarnessError for a sample that is not loaded."""
        rows = indices if len(indices) <= _FEW else np.asarray(indices, dtype=np.intp)
        try:
            if self._rows is not None:
                rows = self._rows.take(rows)
            return {name: array.take(rows, axis=0) for name, array in self._inputs.items()}
        except IndexError:
            raise self._not_loaded(indices) from None

    def fixed_gather(self, count: int) -> Callable[[Indices], Tensors]:
        """Return a function that gathers up to `count` samples into arrays that its next use overwrites.

        It needs half the time of `gather` for a few samples, and for batches whose memory malloc does not keep: the
        kernel clears new pages. Fewer than `count` of a smaller batch are gathered as `gather` does. It is created
        when samples are loaded, and works for all samples that are loaded later.
        """
        inputs = self._inputs
        buffers = {name: np.empty((count, *array.shape[1:]), array.dtype) for name, array in inputs.items()}
        pairs = tuple(buffers.items())
        numbers, pack_into = np.empty(count, np.int64), Struct(f"={count}q").pack_into
        packed = numbers.data  # quicker to write to than the array

        def gather_fewer(indices: Indices) -> Tensors:
            rows = self._rows_of(np.asarray(indices, dtype=np.intp))
            return {name: inputs[name].take(rows, 0, buffer[: len(rows)], "clip") for name, buffer in pairs}

        is_kept = sum(buffer.nbytes for buffer in buffers.values()) > _LARGEST_KEPT_BY_MALLOC
        fewer = gather_fewer if is_kept else self.gather

        def gather(indices: Indices) -> Tensors:
            rows: Any = indices
            if len(indices) != count:
                return fewer(indices)
            if isinstance(indices, list):
                pack_into(packed, 0, *indices)  # numpy takes three times as long for an array of a list
                rows = numbers
            rows = self._rows_of(rows)
            for name, buffer in pairs:
                inputs[name].take(rows, 0, buffer, "clip")  # numpy takes twice as long with "raise" here
            return buffers

        return gather

    def by_length(self, indices: Indices) -> npt.NDArray[np.intp] | None:
        """Return None: every sample is as long as any other."""
        return None


class PinnedLibrary(DenseLibrary):
    """Samples in memory from which a device copies directly. Tensors in the form of one of the network's inputs are
    returned as `Rows`, which are not gathered on the host. Others (an image's number or size) are arrays as in any
    library."""

    def __init__(self, source: Source, memory: SampleMemory, networks: Iterable[NetworkSpec]) -> None:
        super().__init__(source)
        self._memory = memory
        self._forms = {(spec.dtype, spec.shape) for network in networks for spec in network.inputs}
        self._pinned: set[str] = set()

    def _keep(self, name: str, array: Array) -> Array:
        if (array.dtype.name, array.shape[1:]) not in self._forms:
            return super()._keep(name, array)
        kept = self._memory(array.shape, array.dtype)
        np.copyto(kept, array)
        self._pinned.add(name)
        return kept

    def _view(self, row: int, count: int) -> Tensors:
        return self._chosen(np.arange(row, row + count))

    def gather(self, indices: Indices) -> Tensors:
        """Return the rows of each input. Raises HarnessError for a sample that is not loaded."""
        return self._chosen(self._rows_of(np.asarray(indices, dtype=np.intp)))

    def fixed_gather(self, count: int) -> Callable[[Indices], Tensors]:
        """Return `gather`, which does not copy."""
        return self.gather

    def _chosen(self, rows: npt.NDArray[np.intp]) -> Tensors:
        chosen: dict[str, Any] = {
            name: Rows(array, rows) if name in self._pinned else array.take(rows, axis=0)
            for name, array in self._inputs.items()
        }
        return chosen


class _Collated:
    """Inputs of batch 1 of ragged samples, created on demand, because collation is timed."""

    def __init__(self, samples: Mapping[int, Tensors], model: RaggedModel) -> None:
        self._samples = samples
        self._model = model

    def __getitem__(self, index: int, /) -> Tensors:
        return self._model.collate([self._samples[index]])


class RaggedLibrary:
    """Samples of differing shapes. The model makes a batch of them."""

    is_ragged = True

    def __init__(self, source: Source, model: RaggedModel) -> None:
        self._source = source
        self._model = model
        self._samples: LoadedSamples[Tensors] = LoadedSamples()
        self._lengths: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.single: Singles = _Collated(self._samples, model)
        self.neighbours: list[Neighbours] = []

    @property
    def loaded(self) -> list[int]:
        return list(self._samples)

    @property
    def count(self) -> int:
        return self._source.count

    def load(self, indices: Sequence[int]) -> None:
        self.unload(indices)
        loaded = self._source.load(indices)
        if isinstance(loaded, Mapping):
            raise HarnessError("got samples of one shape for a model with variable shapes")
        self._lengths = np.zeros(self.count, dtype=np.int64)
        for index, sample in zip(indices, loaded, strict=True):
            self._samples[index] = sample
            self._lengths[index] = self._model.length(sample)

    def unload(self, indices: Sequence[int]) -> None:
        self._samples.clear()

    def gather(self, indices: Indices) -> Tensors:
        """Return the model's batch. Raises HarnessError for a sample that is not loaded."""
        samples = self._samples
        return self._model.collate([samples[index] for index in indices])  # a numpy integer finds its key, too

    def fixed_gather(self, count: int) -> Callable[[Indices], Tensors]:
        """Return `gather`: there are no arrays of one shape to fill again."""
        return self.gather

    def by_length(self, indices: Indices) -> npt.NDArray[np.intp] | None:
        """Return the positions in `indices` by length within each pass over the loaded samples. Passes are
        descending and ascending in turn, the last one descending, so that a batch of two passes also has similar
        lengths."""
        lengths = self._lengths[np.asarray(indices, dtype=np.intp)]
        order = np.empty(len(lengths), dtype=np.intp)
        starts = range(0, len(lengths), max(1, len(self._samples)))
        for number, start in enumerate(reversed(starts)):
            part = lengths[start : start + starts.step]
            by_length = np.argsort(-part if number % 2 == 0 else part, kind="stable")
            order[start : start + starts.step] = start + by_length
        return order


def make_library(source: Source, model: Model, memory: SampleMemory | None = None) -> Library:
    """Return the library for the model. memory: a device's, whose backend accepts `Rows`. It is not used for ragged
    samples, because a batch is made of them first."""
    if model.is_ragged:
        return RaggedLibrary(source, model)  # type: ignore[arg-type]  # `is_ragged` says that it is one
    return DenseLibrary(source) if memory is None else PinnedLibrary(source, memory, model.networks)
