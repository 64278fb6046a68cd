"""The array types that pass between data sets, models and backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
"""Any numpy array; the shape and type that is meant stands in the docstring or in a TensorSpec."""

Tensors: TypeAlias = Mapping[str, Array]
"""Arrays by tensor name; the first axis of each is the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Name, type and shape of one tensor; `shape` is of one sample, without the batch axis."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of one sample."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))

    def zeros(self, count: int) -> Array:
        """Return `count` samples of zeros, contiguous."""
        return np.zeros((count, *self.shape), dtype=self.dtype)
