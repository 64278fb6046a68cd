"""What a model is: its networks, the work before and after them, its score, and the rules it is measured under.

A model file holds the members of ModelModule; see `digits.py` (one network, fixed shapes), docs/howto/add-model.md.
It imports nothing but numpy and the standard library at its top: what else preprocessing or scoring needs is imported
where it is used, because every run imports the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mlperf_results.benchmarks import Benchmark

from harness.modelfacts import ModelFacts
from harness.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRules:
    """The constants a model is measured with; the model file says where each comes from.

    loadgen_name: the name LoadGen's embedded table knows; a name it does not know gets the table's wildcard values.
    performance_sample_count: samples in memory during a performance run; None means the whole validation set.
    offline_min_sample_count: fewest samples of a full-length Offline run.
    batch_size: samples of one inference in Offline and at most in Server, where the harness does not look for the best.
    largest_batch_size: where that search ends.
    target_of_reference: lowest accepted accuracy as a part of the reference accuracy that model.json gives; used where
    no official target applies (synthetic models and data).
    """

    is_official: bool
    loadgen_name: str
    dataset: str
    server_target_latency_ms: float
    performance_sample_count: int | None
    offline_min_sample_count: int
    batch_size: int
    largest_batch_size: int
    target_of_reference: float = 0.99


def official_rules(benchmark: Benchmark, *, dataset: str, batch_size: int, largest_batch_size: int) -> ModelRules:
    """Return the rules of an MLPerf benchmark: the official constants, and the harness's own choice of batch sizes."""
    return ModelRules(
        is_official=True,
        loadgen_name=benchmark.loadgen_name,
        dataset=dataset,
        server_target_latency_ms=benchmark.server_target_latency_ms,
        performance_sample_count=benchmark.performance_sample_count,
        offline_min_sample_count=benchmark.offline_min_sample_count,
        batch_size=batch_size,
        largest_batch_size=largest_batch_size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score of an accuracy run.

    values: by metric name as the official checker calls them ("acc", "F1", "mAP", "DICE", "AUC", "WER", "ROUGE1" ...),
    percent where the official script prints percent. line: the line of accuracy.txt, as the official script prints it.
    """

    values: Mapping[str, float]
    line: str


class Model(Protocol):
    """An opened model. A ragged one (`is_ragged`: samples of differing shapes) has `collate` and `length` too. One
    whose samples cannot be kept in a store says `is_storable = False`."""

    networks: tuple[NetworkSpec, ...]
    response: TensorSpec | None
    """One sample's response, whose bytes LoadGen gets in both modes; None when responses differ in shape."""
    is_ragged: bool

    def preprocess(self, raw: Any) -> Samples:
        """Return the network inputs of raw samples. Untimed: only what the rules allow to be done before."""

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array | Sequence[Array]:
        """Return the responses of a batch: response[batch, ...] or, without `response`, one array for each sample.

        Timed: everything after preprocessing is in here. `networks` has one callable for each of `self.networks`.
        """

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: Any) -> Score:
        """Return the score. Every index of the data set comes exactly once, in the log's order; the bytes are those of
        one response. The iterable reads a log that may be larger than memory: go through it once."""


class RaggedModel(Model, Protocol):
    """What a model with `is_ragged` = True has beside."""

    def length(self, sample: Tensors) -> int:
        """Return the work of a sample in steps that compare (tokens, frames, rows); batches hold samples of near
        lengths."""

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return one batch of the samples, padded as the model wants it. Timed."""


class ModelModule(Protocol):
    """The members of one file in this folder."""

    def rules(self, name: str) -> ModelRules:
        """Return the rules of the benchmark `name` ("bert-99"); one file serves the levels of a benchmark."""

    def open_model(self, facts: ModelFacts) -> Model:
        """Return the model whose files `facts` describes; raises HarnessError when they are not this model's."""
