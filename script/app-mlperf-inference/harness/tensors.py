"""The array types that pass between data sets, models and backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
"""Any numpy array; the shape and type that is meant stands in the docstring or in a TensorSpec."""

Tensors: TypeAlias = Mapping[str, Array]
"""Arrays by tensor name. In a batch the first axis of each is the batch; in a ragged sample there is no batch axis."""

Samples: TypeAlias = Tensors | Sequence[Tensors]
"""Preprocessed samples: one stacked array for each tensor (dense), or one Tensors for each sample (ragged)."""

Infer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""One call of a network: inputs by name in, outputs by name out. All are arrays, but for tensors that the network's
specification calls a state: of these only the backend knows what they are."""


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
        """True when every size is a number."""
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
    """The tensors of one network file. A model has one network, called "model", or several with names of their own."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


class TokenResponses(list[Array]):
    """Responses of a batch whose tokens LoadGen counts: `token_counts`, the tokens that the network made for each, its
    end token included. LoadGen takes fewer than two for an error."""

    def __init__(self, rows: Sequence[Array], token_counts: Sequence[int]) -> None:
        super().__init__(rows)
        self.token_counts = token_counts
