"""The responses of a synthetic model to a whole data set, without LoadGen. Needs no package that runs networks: the
programs that fit one have torch and not onnxruntime, those that write a fitted one have onnxruntime and not torch."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdperf.harness.base.tensors import Infer


def responses_of(model: Any, networks: Mapping[str, Infer], dataset: Any, batch: int) -> Iterator[tuple[int, bytes]]:
    """Yield the index and the bytes of each response, the samples taken in batches of `batch`."""
    for start in range(0, dataset.count, batch):
        indices = range(start, min(start + batch, dataset.count))
        samples = model.preprocess(dataset.load(indices))
        rows = model.predict(networks, model.collate(samples) if model.is_ragged else samples)
        yield from ((index, row.tobytes()) for index, row in zip(indices, rows, strict=True))
