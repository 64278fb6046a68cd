"""BERT-large for question answering on SQuAD v1.1 (benchmarks bert-99 and bert-99.9).

A sample is `input_ids`, `input_mask` and `segment_ids`, int64[tokens] without padding; a batch is padded to its longest
sample, unless the model's file takes one length only. The response of a sample is float32[384][2], start and end logit
of each position, -10000 behind the sample's last token: what accuracy-squad.py of mlcommons/inference fills in for a
response that is shorter than 384.

What model.json's `config` may say of a file that was not made here:
    sequence_length: 384                              the file takes this length only
    tensor_names: {"input_mask": "attention_mask"}    the file's names for ours
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec
from crowdperf.harness.datasets.squad import SquadDataset, SquadSample
from crowdperf.harness.metrics import squad

INPUTS = ("input_ids", "input_mask", "segment_ids")
OUTPUTS = ("output_start_logits", "output_end_logits")
_NO_LOGIT = np.float32(-10_000.0)  # load_loadgen_log in accuracy-squad.py
_HINT = "use the model.json that get,ml-model,bert-large writes"


def _tensor_names(facts: ModelFacts) -> dict[str, str]:
    given = facts.config.get("tensor_names") or {}
    unknown = sorted(set(given) - {*INPUTS, *OUTPUTS}) if isinstance(given, Mapping) else [repr(given)]
    if unknown:
        message = f"config.tensor_names of the model contains {', '.join(unknown)}"
        raise HarnessError(f"{message}; allowed: {', '.join((*INPUTS, *OUTPUTS))}", _HINT)
    return {name: str(given.get(name, name)) for name in (*INPUTS, *OUTPUTS)}


def _sequence_length(facts: ModelFacts) -> int | None:
    length = facts.config.get("sequence_length")
    if length is None or length == squad.MAX_SEQUENCE_LENGTH:
        return length
    message = f"config.sequence_length of the model is {length!r}"
    raise HarnessError(f"{message}; allowed: {squad.MAX_SEQUENCE_LENGTH}, or absent for any length", _HINT)


class Bert:
    """One network; see the module for what goes in and comes out."""

    response = TensorSpec(name="logits", dtype="float32", shape=(squad.MAX_SEQUENCE_LENGTH, 2))
    is_ragged = True

    def __init__(self, facts: ModelFacts) -> None:
        self._names = _tensor_names(facts)
        self._sequence_length = _sequence_length(facts)
        self._vocabulary_size = facts.config.get("vocab_size")
        shape = ("tokens" if self._sequence_length is None else self._sequence_length,)
        self.networks = (
            NetworkSpec(
                name="model",
                inputs=tuple(TensorSpec(name=self._names[name], dtype="int64", shape=shape) for name in INPUTS),
                outputs=tuple(TensorSpec(name=self._names[name], dtype="float32", shape=shape) for name in OUTPUTS),
            ),
        )

    def preprocess(self, raw: Sequence[SquadSample]) -> Samples:
        """Return the three inputs of each sample, int64[tokens], without padding."""
        samples = []
        for sample in raw:
            ids = np.asarray(sample.token_ids, dtype=np.int64)
            if self._vocabulary_size is not None and int(ids.max()) >= self._vocabulary_size:
                raise HarnessError(
                    f"the data set's vocabulary has a token {int(ids.max())}, but the model knows "
                    f"{self._vocabulary_size}",
                    "use the model and the data set of the same variation (_tiny, _synthetic or none)",
                )
            segments = np.ones_like(ids)
            segments[: sample.document_start] = 0
            samples.append({"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments})
        return samples

    def length(self, sample: Tensors) -> int:
        return len(sample["input_ids"])

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return the inputs under the network's names, int64[batch, tokens], zeros behind the end of each sample."""
        if len(samples) == 1 and self._sequence_length is None:
            return {self._names[name]: samples[0][name][np.newaxis] for name in INPUTS}
        longest = self._sequence_length or max(len(sample["input_ids"]) for sample in samples)
        padded = {self._names[name]: np.zeros((len(samples), longest), dtype=np.int64) for name in INPUTS}
        for name in INPUTS:
            for row, sample in zip(padded[self._names[name]], samples, strict=True):
                row[: len(sample[name])] = sample[name]
        return padded

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the logits of each sample, float32[batch, 384, 2], -10000 behind its last token."""
        answers = networks["model"](inputs)
        is_token: npt.NDArray[np.bool_] = inputs[self._names["input_mask"]] != 0
        batch, tokens = is_token.shape
        logits = np.full((batch, squad.MAX_SEQUENCE_LENGTH, 2), _NO_LOGIT, dtype=np.float32)
        for column, name in enumerate(OUTPUTS):
            np.copyto(logits[:, :tokens, column], answers[self._names[name]], where=is_token)
        return logits

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: SquadDataset) -> Score:
        """Return F1 and exact match, in percent."""
        return squad.score(responses, dataset.questions, dataset.features)


def open_model(facts: ModelFacts) -> Bert:
    return Bert(facts)
