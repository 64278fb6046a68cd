"""What a model is: its tensors, the work before and after the network, its score, and the rules it is measured under.

A model file holds the members of ModelModule; see `digits.py` and docs/howto/add-model.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.tensors import Array, Tensors, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRules:
    """The constants a model is measured with; the model file says where each comes from.

    loadgen_name: the name LoadGen's embedded table knows; a name it does not know gets the table's wildcard values.
    performance_sample_count: samples in memory during a performance run; None means the whole validation set.
    offline_min_sample_count: fewest samples of a full-length Offline run.
    batch_size: samples of one inference in Offline, and at most in Server.
    target_of_reference: lowest accepted accuracy as a part of the reference accuracy.
    """

    is_official: bool
    loadgen_name: str
    dataset: str
    server_target_latency_ms: float
    performance_sample_count: int | None
    offline_min_sample_count: int
    batch_size: int
    target_of_reference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many responses were right."""

    good_count: int
    total_count: int

    @property
    def accuracy_percent(self) -> float:
        """Right responses in percent."""
        return 100.0 * self.good_count / self.total_count


class ModelModule(Protocol):
    """The members of one file in this folder."""

    RULES: ModelRules
    INPUTS: tuple[TensorSpec, ...]
    OUTPUTS: tuple[TensorSpec, ...]
    RESPONSE: TensorSpec
    """One sample's response, whose bytes LoadGen gets: the same in performance and accuracy mode."""

    def preprocess(self, samples: Array) -> Tensors:
        """Return the network inputs of raw samples. Untimed: only what the rules allow to be done before."""

    def postprocess(self, outputs: Tensors) -> Array:
        """Return RESPONSE[batch, ...] of the network's outputs. Timed."""

    def score(self, responses: Mapping[int, bytes], labels: Array) -> Score:
        """Return the score of the responses by sample index; every index of `labels` is there exactly once."""
