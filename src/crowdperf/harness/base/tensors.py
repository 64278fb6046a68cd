"""The array types that pass between data sets, models and backends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError

Array: TypeAlias = npt.NDArray[np.generic]
"""Any numpy array; the shape and type that is meant stands in the docstring or in a TensorSpec."""

Tensors: TypeAlias = Mapping[str, Array]
"""Arrays by tensor name. In a batch the first axis of each is the batch; in a ragged sample there is no batch axis."""

Samples: TypeAlias = Tensors | Sequence[Tensors]
"""Preprocessed samples: one stacked array for each tensor (dense), or one Tensors for each sample (ragged)."""

Infer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""One call of a network: inputs by name in, outputs by name out. All are arrays, but for tensors that the network's
specification calls a state: of these only the backend knows what they are."""


_CACHE_LINE_BYTES = 64
"""Of x86 processors and most of Arm's; also the width of AVX-512's registers."""


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array with any values whose memory begins with a cache line. numpy's begin in the middle of one, and
    loops of AVX that write to it then need up to twice the time: each second store is to two lines."""
    kind = np.dtype(dtype)
    size_bytes = math.prod(shape) * kind.itemsize
    memory = np.empty(size_bytes + _CACHE_LINE_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE_BYTES
    return memory[start : start + size_bytes].view(kind).reshape(shape)


class Rows(np.lib.mixins.NDArrayOperatorsMixin):
    """Rows of a larger array that a device reads directly (pinned memory), not gathered: an input of a batch of samples
    for backends that give such memory. numpy gathers them where it computes with them; what else an array can, it can
    after `np.asarray`."""

    __slots__ = ("array", "rows")

    def __init__(self, array: Array, rows: npt.NDArray[np.intp]) -> None:
        self.array = array
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *self.array.shape[1:])

    def __getitem__(self, part: slice) -> Rows:
        """Return some of the rows, not gathered either."""
        return Rows(self.array, self.rows[part])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        gathered: Array = self.array.take(self.rows, axis=0)
        return gathered if dtype is None else gathered.astype(dtype, copy=False)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        gathered = (np.asarray(one) if isinstance(one, Rows) else one for one in inputs)
        return getattr(function, method)(*gathered, **options)

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Yield place in the batch, first row and number of rows of each run of rows that lie one behind the other."""
        rows = self.rows
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        starts = [0, *ends.tolist()]
        for place, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            yield place, int(rows[place]), end - place


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Name, type and shape of one tensor; `shape` is of one sample, without the batch axis.

    A size is a number, or a name ("tokens") for a size that differs from call to call; equal names of one network mean
    equal sizes. `is_state`: the model only hands the tensor back to the network in the next call, so that a backend may
    leave it on its device.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    is_state: bool = False

    @property
    def is_fixed(self) -> bool:
        return all(isinstance(size, int) for size in self.shape)

    @property
    def fixed_shape(self) -> tuple[int, ...]:
        """The shape of a tensor whose sizes are all numbers; raises ValueError for another one."""
        sizes = tuple(size for size in self.shape if isinstance(size, int))
        if len(sizes) != len(self.shape):
            raise ValueError(f"tensor {self.name} has no fixed shape: {self.shape}")
        return sizes

    @property
    def size_bytes(self) -> int:
        """Bytes of one sample of fixed shape."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.fixed_shape, dtype=np.int64))

    def zeros(self, count: int) -> Array:
        """Return `count` samples of zeros of fixed shape, contiguous."""
        return np.zeros((count, *self.fixed_shape), dtype=self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """The tensors of one network file. A model has one network, called "model", or several with names of their own.

    overflows_in_fp16: its activations are larger than fp16 can hold (65,504): it computes in fp32 in runs of fp16.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    overflows_in_fp16: bool = False

    def precision_in(self, precision: str) -> str:
        """Return what the network computes in where the run asks for `precision`."""
        return "fp32" if precision == "fp16" and self.overflows_in_fp16 else precision


class TokenResponses(list[Array]):
    """Responses of a batch whose tokens LoadGen counts: `token_counts`, the tokens that the network made for each, its
    end token included. LoadGen takes fewer than two for an error."""

    def __init__(self, rows: Sequence[Array], token_counts: Sequence[int]) -> None:
        super().__init__(rows)
        self.token_counts = token_counts


def require_types(owner: str, kind: str, found: Mapping[str, str], wanted: Sequence[TensorSpec]) -> None:
    """Raise HarnessError where tensors of a file (`owner`, in words) are not there, or have another type than the
    benchmark's. kind: "input" or "output". found: the numpy name of each tensor's type."""
    missing = [spec.name for spec in wanted if spec.name not in found]
    if missing:
        raise HarnessError(
            f"{owner} has no {kind} {', '.join(missing)}, only: {', '.join(sorted(found))}",
            f"set the file's tensor names in model.json (config: {kind}_name), if the benchmark allows it "
            "(docs/howto/run-a-benchmark.md), or use the file that the model's recipe builds",
        )
    wrong = [spec for spec in wanted if found[spec.name] != spec.dtype]
    if wrong:
        words = "; ".join(f"{spec.name} is {found[spec.name]}, not {spec.dtype}" for spec in wrong)
        raise HarnessError(
            f"{owner} has {kind}s of other types than the benchmark: {words}",
            "use the file that the model's recipe makes: lower precisions keep the types of inputs and outputs",
        )
