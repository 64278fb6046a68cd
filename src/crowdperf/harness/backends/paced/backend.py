"""The paced backend: onnxruntime on the CPU, each answer given when a fixed time for each sample has passed.

A stand-in: its answers are the network's, its speed is that of a clock. What compares two runs with each other
(compliance tests, a whole closed submission) can so be proved on a machine that other programs use too. Results say
that a stand-in made them, and no submission takes them.
"""

import time
from collections.abc import Mapping

from crowdperf.harness.backends.onnxruntime.backend import OnnxRuntimeBackend
from crowdperf.harness.backends.onnxruntime.backend import open_backend as open_onnxruntime
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.tensors import Infer, Tensors

SECONDS_PER_SAMPLE = 0.008
"""Our choice: while a processor is free now and then, other work on the machine moves a latency by far less than a
tenth of it, which is what compliance tests allow, and 50,000 samples still take only 7 minutes."""


class PacedBackend:
    """An onnxruntime backend whose answers wait."""

    def __init__(self, backend: OnnxRuntimeBackend, input_name: str) -> None:
        self._backend = backend
        self._input_name = input_name

    def instance(self, number: int) -> Infer:
        """Return the call; it sleeps, so that others may compute."""
        infer, name = self._backend.instance(number), self._input_name

        def wait_and_infer(inputs: Tensors) -> Tensors:
            due_s = time.perf_counter() + SECONDS_PER_SAMPLE * len(inputs[name])
            outputs = infer(inputs)
            time.sleep(max(0.0, due_s - time.perf_counter()))
            return outputs

        return wait_and_infer

    def versions(self) -> Mapping[str, str]:
        return self._backend.versions()

    def close(self) -> None:
        self._backend.close()


def open_backend(request: BackendRequest) -> PacedBackend:
    """Return the backend; raises as onnxruntime's does."""
    return PacedBackend(open_onnxruntime(request), request.network.inputs[0].name)
