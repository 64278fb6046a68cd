"""The null backend: answers zeros at once, so that the whole pipeline runs anywhere and the harness itself can be
measured."""

from collections.abc import Mapping

import numpy as np

from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec


def _named_sizes(network: NetworkSpec, inputs: Tensors) -> dict[str, int]:
    """Return the sizes that the network's specification gives names to, as they are in a batch of inputs."""
    sizes: dict[str, int] = {}
    for spec in network.inputs:
        for size, found in zip(spec.shape, inputs[spec.name].shape[1:], strict=True):
            if isinstance(size, str):
                sizes[size] = found
    return sizes


def _zeros(spec: TensorSpec, count: int, sizes: Mapping[str, int]) -> Array:
    """Return zeros; a size that no input has the name of is 1."""
    shape = [size if isinstance(size, int) else sizes.get(size, 1) for size in spec.shape]
    return np.zeros((count, *shape), dtype=spec.dtype)


class NullBackend:
    """Gives zeros of the right shape and type; calls with the same shapes give the same arrays."""

    def __init__(self, network: NetworkSpec) -> None:
        self._network = network
        self._is_fixed = all(spec.is_fixed for spec in (*network.inputs, *network.outputs))

    def instance(self, number: int) -> Infer:
        """Return a call that answers zeros for as many samples as come in."""
        network, first = self._network, self._network.inputs[0].name
        answers: dict[tuple[int, ...], Tensors] = {}
        last: Tensors = {}
        last_count = 0

        def infer(inputs: Tensors) -> Tensors:
            count, sizes = len(inputs[first]), _named_sizes(network, inputs)
            key = (count, *sizes.values())
            if key not in answers:
                answers[key] = {spec.name: _zeros(spec, count, sizes) for spec in network.outputs}
            return answers[key]

        def infer_fixed(inputs: Tensors) -> Tensors:
            nonlocal last, last_count
            if len(inputs[first]) != last_count:
                last, last_count = infer(inputs), len(inputs[first])
            return last

        return infer_fixed if self._is_fixed else infer

    def versions(self) -> Mapping[str, str]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


def open_backend(request: BackendRequest) -> NullBackend:
    """Return the backend; the model file is not read."""
    return NullBackend(request.network)
