"""What a benchmark's model is: its networks, the work before and after them, its score.

`<folder>/model.py` holds the members of ModelModule; see `digits` (one network, fixed shapes), docs/howto/add-model.md.
The rules that it is measured under stand in `<folder>/record.py` (crowdperf/rules/record.py).A model file
imports nothing but numpy and the standard library at its top: what else preprocessing or scoring needs is imported
where it is used, because every run imports the file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec


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


class DeviceModel(Model, Protocol):
    """An optional member of models of one network: on a GPU only their responses are then copied to the host."""

    def device_post(self, networks: Mapping[str, Infer], inputs: Tensors, to_device: Callable[[str, Any], Any]) -> Any:
        """Return what `predict` returns for the same batch, as torch tensors on the device.

        The backends pytorch and tensorrt call it on a GPU instead of `predict`. The network's outputs are tensors
        there, which its next call overwrites. It takes tensors, and arrays in its first call only: copies of arrays
        are queued. to_device: copies an array there, once for each name. Use the methods of tensors, which need no
        import. Timed.
        """


class PictureModel(Model, Protocol):
    """What a model whose record has `has_pictures` has beside."""

    def write_pictures(self, folder: Path, answers: Mapping[int, bytes], dataset: Any) -> None:
        """Write the pictures of `answers`, by sample, into `folder`, and captions.txt, which says what they show."""


class ModelModule(Protocol):
    """The members of a `model.py`."""

    def open_model(self, facts: ModelFacts) -> Model:
        """Return the model whose files `facts` describes; raises HarnessError when they are not this model's."""
