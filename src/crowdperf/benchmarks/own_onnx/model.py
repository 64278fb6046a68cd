"""A network of the user: the tensors of its file are its inputs and outputs (recipe get-ml-model-own-onnx).

The response of a sample is one output, the first or the one that the user gives expected values of, as raw numbers.
Nothing is computed before or after the network.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crowdperf.benchmarks.own_onnx.dataset import OwnInputs
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec

_HINT = "score the log with the model and the expected values of the run"


class OwnOnnx:
    """One network. has_batches: the first axis of its tensors is the batch; otherwise a call answers one sample."""

    is_ragged = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        inputs, outputs = (tuple(map(_spec, config[key])) for key in ("inputs", "outputs"))
        self.networks = (NetworkSpec(name="model", inputs=inputs, outputs=outputs),)
        self._has_batches = config["has_batches"] is True
        self._output = next(spec for spec in outputs if spec.name == config["response"])
        self.response = self._output if self._output.is_fixed else None

    def preprocess(self, raw: Tensors) -> Tensors:
        return raw

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array | Sequence[Array]:
        """Return the response's output for each sample of the batch."""
        infer = networks["model"]
        if self._has_batches:
            rows = self._answer(infer, inputs)
            return rows if self.response is not None else [np.ascontiguousarray(row) for row in rows]
        count = len(next(iter(inputs.values())))
        samples = ({name: array[number, ...] for name, array in inputs.items()} for number in range(count))
        single = [np.ascontiguousarray(self._answer(infer, sample)) for sample in samples]
        return np.stack(single) if self.response is not None else single

    def _answer(self, infer: Infer, inputs: Tensors) -> Array:
        try:
            return infer(inputs)[self._output.name]
        except HarnessError:
            raise
        except Exception as error:  # each runtime has its own types
            shown = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in inputs.items())
            message = f"the network cannot answer the inputs {shown}: {error}"
            raise HarnessError(
                message, "give inputs that it accepts (random integers are 0 or 1): --inputs=FILE.npz"
            ) from error

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: OwnInputs) -> Score:
        """Return "max_difference", the largest absolute difference from the expected values over all samples."""
        expected = dataset.expected
        if expected is None:
            raise HarnessError("there are no expected values to compare with", "give them: --expected=FILE.npz")
        largest, dtype, count = 0.0, np.dtype(self._output.dtype), 0
        for index, data in responses:
            wanted = expected[index]
            if len(data) != wanted.size * dtype.itemsize:
                message = (
                    f"the response of sample {index} has {len(data):,} bytes, not {wanted.size * dtype.itemsize:,}"
                )
                raise HarnessError(message, _HINT)
            found = np.frombuffer(data, dtype=dtype).reshape(wanted.shape).astype(np.float64)
            difference = float(np.abs(found - wanted).max(initial=0.0))
            largest = max(largest, difference if np.isfinite(difference) else float("inf"))
            count += 1
        line = f"max_difference={largest:.6g}, output={self._output.name}, total={count}"
        return Score(values={"max_difference": largest}, line=line)


def _spec(values: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(name=values["name"], dtype=values["dtype"], shape=tuple(values["shape"]))


def open_model(facts: ModelFacts) -> OwnOnnx:
    keys = ("inputs", "outputs", "has_batches", "response")
    return OwnOnnx(required_config(facts, keys, "own-onnx"))
