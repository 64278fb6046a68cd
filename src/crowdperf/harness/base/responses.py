"""Responses as LoadGen takes them: objects with the id of a query's sample and the address and size of its bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array, TensorSpec


class Response(Protocol):
    """LoadGen's QuerySampleResponse: the id of a query's sample, and the address of the bytes; their size stays."""

    id: int
    data: int


def _set_id(response: Response, identifier: int) -> None:
    response.id = identifier


@dataclass(frozen=True, slots=True)
class ResponseSink:
    """Where responses go: `make_response(id, address, size_bytes)`, for answers of tokens with their number as well,
    and `complete` for a list of them. first: takes the first tokens of an answer, before it is complete. set_id: writes
    the id of a response that is used again, and returns None."""

    make_response: Callable[..., Response]
    complete: Callable[[list[Response]], None]
    first: Callable[[list[Response]], None] = lambda responses: None
    set_id: Callable[[Response, int], None] = _set_id


def require_arrays(rows: Array | Sequence[Array], count: int) -> None:
    """Raise HarnessError unless there are `count` responses, each a contiguous array."""
    if len(rows) != count:
        raise HarnessError(f"{count:,} samples got {len(rows)} responses")
    for row in rows:
        if not isinstance(row, np.ndarray) or not row.flags.c_contiguous:
            raise HarnessError(f"a response is {type(row).__name__}, expected a contiguous array")


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class FixedResponses:
    """`count` response objects for rows of one size, and the array that they point into: `buffer`, or the network's."""

    def __init__(self, sink: ResponseSink, spec: TensorSpec, count: int) -> None:
        self.buffer = spec.zeros(count)
        self.objects = [sink.make_response(0, 0, spec.size_bytes) for _ in range(count)]
        self._last: Array | Sequence[Array] = ()
        self._point_to(self.buffer)

    def _point_to(self, array: Array) -> None:
        self._array, start = array, _address(array)
        for position, response in enumerate(self.objects):
            response.data = start + position * (array.nbytes // len(array))

    def take(self, rows: Array | Sequence[Array]) -> Array:
        """Return the array that LoadGen reads next, which holds `rows`: they themselves where they came twice in a row
        (as long as they come again, there is nothing to do), else a copy. Raises HarnessError for another number."""
        if len(rows) != len(self.objects):
            raise HarnessError(f"{len(self.objects)} samples got {len(rows)} responses")
        if rows is self._last and self._is_readable(rows):
            array = rows
        else:
            array = self.buffer
            array[...] = rows
        self._last = rows
        if array is not self._array:
            self._point_to(array)
        return array

    def _is_readable(self, rows: Array | Sequence[Array]) -> TypeGuard[Array]:
        """Whether LoadGen can read the bytes of `rows` as they are."""
        if not isinstance(rows, np.ndarray) or not rows.flags.c_contiguous:
            return False
        return rows.shape == self.buffer.shape and rows.dtype == self.buffer.dtype
