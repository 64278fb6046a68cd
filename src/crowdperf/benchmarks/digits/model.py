"""The digits model: a small convolutional network that reads 8x8 handwritten digits (recipe get-ml-model-digits).

digits is *not* an official MLPerf model: its rules and where they come from are in record.py.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.datasets.digits import DigitsDataset
from crowdperf.harness.metrics import top1

_LOGITS = TensorSpec(name="logits", dtype="float32", shape=(10,))


class Digits:
    """One network, fixed shapes; the response of a sample are its logits."""

    networks = (
        NetworkSpec(
            name="model",
            inputs=(TensorSpec(name="image", dtype="float32", shape=(1, 8, 8)),),
            outputs=(_LOGITS,),
        ),
    )
    response = _LOGITS
    is_ragged = False

    def preprocess(self, raw: Array) -> Tensors:
        """Return `image` float32[batch, 1, 8, 8], 0..1, of uint8[batch, 8, 8], 0..16."""
        return {"image": (raw.astype(np.float32) / np.float32(16.0)).reshape(-1, 1, 8, 8)}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the logits, float32[batch, 10], as they are: the largest is looked for when scoring."""
        return networks["model"](inputs)["logits"]

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: DigitsDataset) -> Score:
        """Return the share of responses with their largest logit at the label, in percent."""
        return top1.score(
            responses,
            dataset.labels,
            response_bytes=_LOGITS.size_bytes,
            label_of=lambda data: int(np.frombuffer(data, dtype=np.float32).argmax()),
        )


def open_model(facts: ModelFacts) -> Digits:
    """Return the model; it is built the same whatever its file."""
    return Digits()
