"""The digits model: a small convolutional network that reads 8x8 handwritten digits (recipe get-ml-model-digits).

digits is *not* an official MLPerf model: every constant in RULES is this project's own choice, explained beside it.

The Server limit of 200 ms is there so that the verdict is about the run and not about the machine's other work. The
network answers in some 0.02 ms; what is late is late because the machine stood still for a moment, and with 1 % of the
queries of a 2 s run allowed to be late, one stop that outlasts the limit by 20 ms makes a run INVALID. Seen on two
shared cores beside a busy loop and other programs, 1,500 to 2,000 queries/s, 30 runs, November 2026: p99 3 to 91 ms,
longest latency 112 ms; with a limit of 10 ms 8 of 15 runs were INVALID, with 200 ms none of 15. Official limits reach
from 15 ms (resnet50) to 20 s (gptj).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.errors import HarnessError
from harness.models.base import ModelRules, Score
from harness.tensors import Array, Tensors, TensorSpec

RULES = ModelRules(
    is_official=False,
    loadgen_name="digits",  # unknown to LoadGen, which then takes its wildcard values: right for a model of our own
    dataset="digits",
    server_target_latency_ms=200.0,  # our choice, see above
    performance_sample_count=None,  # the whole validation set: 150 kB
    offline_min_sample_count=24_576,  # as the rules ask of the official models
    batch_size=32,  # our choice: 16 to 64 were fastest on a Xeon with 2 MiB of level-2 cache, 128 a fifth slower
    target_of_reference=0.99,  # as the closed division asks of most models: 99 % of the reference
)
INPUTS = (TensorSpec(name="image", dtype="float32", shape=(1, 8, 8)),)
OUTPUTS = (TensorSpec(name="logits", dtype="float32", shape=(10,)),)
RESPONSE = TensorSpec(name="logits", dtype="float32", shape=(10,))


def preprocess(samples: Array) -> Tensors:
    """Return `image` float32[batch, 1, 8, 8], 0..1, of uint8[batch, 8, 8], 0..16."""
    return {"image": (samples.astype(np.float32) / np.float32(16.0)).reshape(-1, 1, 8, 8)}


def postprocess(outputs: Tensors) -> Array:
    """Return the logits, float32[batch, 10], as they are: the largest is looked for when scoring."""
    return outputs["logits"]


def score(responses: Mapping[int, bytes], labels: Array) -> Score:
    """Return how many responses have their largest logit at the label; raises HarnessError for a response of another
    size."""
    good_count = 0
    for index, label in enumerate(labels.tolist()):
        response = responses[index]
        if len(response) != RESPONSE.size_bytes:
            raise HarnessError(
                f"the response of sample {index} has {len(response)} bytes; it should have {RESPONSE.size_bytes}",
                "score the log with the model that made it",
            )
        good_count += int(np.frombuffer(response, dtype=np.float32).argmax()) == label
    return Score(good_count=good_count, total_count=len(labels))
