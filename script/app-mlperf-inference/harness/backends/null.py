"""The null backend: answers zeros at once, so that the whole pipeline runs anywhere and the harness itself can be
measured."""

from __future__ import annotations

from collections.abc import Mapping

from harness.backends.base import BackendRequest
from harness.tensors import Array, Tensors, TensorSpec

DEVICES = ("cpu",)
NEEDS_MODEL_FILE = False
BATCH_SIZE: int | None = 1024
"""Nothing is computed, so a batch only spreads the cost of the calls: LoadGen loses little from 1,024 on
(benchmarks/harness_limits.py)."""


class NullBackend:
    """Gives zeros of the right shape and type; every call with the same batch size gives the same arrays."""

    def __init__(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input = inputs[0].name
        self._outputs = outputs
        self._answers: dict[int, dict[str, Array]] = {}

    def infer(self, inputs: Tensors) -> Tensors:
        """Return zeros for as many samples as came in."""
        count = len(inputs[self._input])
        answer = self._answers.get(count)
        if answer is None:
            answer = self._answers[count] = {spec.name: spec.zeros(count) for spec in self._outputs}
        return answer

    def versions(self) -> Mapping[str, str]:
        """Return nothing: no library answers."""
        return {}

    def close(self) -> None:
        """Nothing is open."""


def open_backend(request: BackendRequest) -> NullBackend:
    """Return the backend; the model file is not read."""
    return NullBackend(request.inputs, request.outputs)
