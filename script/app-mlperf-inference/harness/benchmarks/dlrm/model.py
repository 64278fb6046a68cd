"""DLRM on Criteo: how likely is a click? Benchmarks dlrm-99 and dlrm-99.9 (v0.7 to v3.0); `dlrm_v2` builds on this.

A sample is 100 to 700 rows. Untimed: log(count + 1) of the 13 counts. Timed: the rows' category values are gathered
from the mapped files, and the network runs on the rows of all samples of a batch. The response is float32[rows, 2] of
prediction and label, as the reference's (recommendation/dlrm/pytorch of mlcommons/inference at tag v3.0).

The published ONNX file takes its indices category by category (26 rows of values, not 26 columns); models for this
harness are made from the published PyTorch weights instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from harness.datasets.criteo import DENSE_COUNT, ONE_HOT, TABLE_ROWS_V1, ClickRows, CriteoDataset, Table
from harness.errors import HarnessError
from harness.metrics import auc
from harness.metrics.score import Score
from harness.modelfacts import ModelFacts
from harness.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec

EMBEDDING_WIDTH = 128  # values of one embedding in both versions' reference
_WORK_BYTES = 2 * 10**9  # beside the tables: the other weights, activations, LoadGen's queries
_TABLE_COPIES = 1.05  # loaders read in pieces, so little more than the tables themselves is held


def network_spec(hot_counts: Sequence[int]) -> NetworkSpec:
    """Return the network's tensors; its batch are rows."""
    return NetworkSpec(
        name="model",
        inputs=(
            TensorSpec(name="dense", dtype="float32", shape=(DENSE_COUNT,)),
            TensorSpec(name="sparse", dtype="int32", shape=(sum(hot_counts),)),
        ),
        outputs=(TensorSpec(name="prediction", dtype="float32", shape=()),),
    )


class Dlrm:
    """One network; samples are runs of rows of differing length, and the category values stay in the file."""

    response = None
    is_ragged = True
    is_storable = False  # a sample names rows of the data set's own memory-mapped tables

    def __init__(self, hot_counts: Sequence[int]) -> None:
        self._hot_counts = tuple(hot_counts)
        self._table: Table | None = None
        self.networks = (network_spec(hot_counts),)

    def preprocess(self, raw: Sequence[ClickRows]) -> Samples:
        """Return `dense` float32[rows, 13], `labels` float32[rows] and where the rows are, int64[2], of each sample."""
        for sample in raw[:1]:
            if sample.table.hot_counts != self._hot_counts:
                raise HarnessError(
                    f"the data set has {sum(sample.table.hot_counts)} category values in a row; the model takes "
                    f"{sum(self._hot_counts)}",
                    "take get,dataset,criteo for dlrm, get,dataset,criteo,_multihot for dlrm-v2",
                )
            self._table = sample.table
        return [
            {
                "dense": sample.table.dense(sample.rows),
                "labels": sample.table.labels(sample.rows),
                "rows": np.array((sample.rows.start, sample.rows.stop), dtype=np.int64),
            }
            for sample in raw
        ]

    def length(self, sample: Tensors) -> int:
        """Return the number of rows."""
        return len(sample["labels"])

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return the rows of all samples one below the other, and `lengths`, the number of rows of each sample."""
        assert self._table is not None, "samples come from preprocess"
        lengths = np.array([len(sample["labels"]) for sample in samples], dtype=np.int64)
        sparse = np.empty((int(lengths.sum()), sum(self._hot_counts)), dtype=np.int32)
        first = 0
        for sample, length in zip(samples, lengths.tolist(), strict=True):
            start, end = sample["rows"].tolist()
            self._table.copy_sparse(slice(start, end), sparse[first : first + length])
            first += length
        dense, labels = ([sample[name] for sample in samples] for name in ("dense", "labels"))
        is_single = len(samples) == 1
        return {
            "dense": dense[0] if is_single else np.concatenate(dense),
            "labels": labels[0] if is_single else np.concatenate(labels),
            "sparse": sparse,
            "lengths": lengths,
        }

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return float32[rows, 2] of each sample: prediction and label."""
        answer = networks["model"]({"dense": inputs["dense"], "sparse": inputs["sparse"]})["prediction"]
        pairs = np.empty((len(answer), 2), dtype=np.float32)
        pairs[:, 0] = answer
        pairs[:, 1] = inputs["labels"]
        ends = np.cumsum(inputs["lengths"]).tolist()
        return [pairs[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: CriteoDataset) -> Score:
        """Return "AUC", the area under the ROC curve in percent."""
        return auc.score(responses)


def tables_bytes(facts: ModelFacts, rows: Sequence[int]) -> int:
    """Return the size of the embedding tables; `rows` are the full ones, which model.json may replace."""
    counts = facts.config.get("table_rows", rows)
    return 4 * sum(int(count) for count in counts) * int(facts.config.get("embedding_width", EMBEDDING_WIDTH))


def memory_need_bytes(table_bytes: int) -> int:
    """Return how much memory a run takes whose tables have this size."""
    return int(table_bytes * _TABLE_COPIES) + (_WORK_BYTES if table_bytes > _WORK_BYTES else 0)


def memory_bytes(facts: ModelFacts) -> int:
    """Return how much memory the model takes: 103 GB at full size."""
    return memory_need_bytes(tables_bytes(facts, TABLE_ROWS_V1))


def open_model(facts: ModelFacts) -> Dlrm:
    """Return the model: one value for each category."""
    return Dlrm(ONE_HOT)
