"""DLRM on Criteo: how likely is a click? Benchmarks dlrm-99 and dlrm-99.9 (v0.7 to v3.0); `dlrm_v2` builds on this.

A sample is 100 to 700 rows. Untimed, when LoadGen loads the samples: log(count + 1) of the 13 counts, and the rows'
category values are read into memory. Timed: the network runs on the rows of all samples of a batch. The response is
float32[rows, 2] of prediction and label, as the reference's (recommendation/dlrm/pytorch of mlcommons/inference at tag
v3.0). Category values that do not fit into memory (47 GB of dlrm-v2's 204,800 samples) stay in the mapped files and are
read in the timed part; a note on stderr says so.

The published ONNX file takes its indices category by category (26 rows of values, not 26 columns); models for this
harness are made from the published PyTorch weights instead.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec
from crowdperf.harness.datasets.criteo import DENSE_COUNT, ONE_HOT, TABLE_ROWS_V1, ClickRows, CriteoDataset, Table
from crowdperf.harness.metrics import auc
from crowdperf.harness.watch.machine import free_memory_bytes

EMBEDDING_WIDTH = 128  # values of one embedding in both versions' reference
_WORK_BYTES = 2 * 10**9  # beside the tables: the other weights, activations, LoadGen's queries
_SPARSE_PART = 0.5  # of the free memory, for the category values: LoadGen and the batches need some, too
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
    """One network; samples are runs of rows of differing length."""

    response = None
    is_ragged = True
    is_storable = False  # a sample names rows of the data set's own memory-mapped tables

    def __init__(self, hot_counts: Sequence[int]) -> None:
        self._hot_counts = tuple(hot_counts)
        self._table: Table | None = None
        self.networks = (network_spec(hot_counts),)

    def preprocess(self, raw: Sequence[ClickRows]) -> Samples:
        """Return of each sample `dense` float32[rows, 13], `labels` float32[rows], where its `rows` are, int64[2], and
        `sparse` int32[rows, values] where all category values fit into memory."""
        for sample in raw[:1]:
            if sample.table.hot_counts != self._hot_counts:
                raise HarnessError(
                    f"the data set has {sum(sample.table.hot_counts)} category values in a row, but the model expects "
                    f"{sum(self._hot_counts)}",
                    "use get,dataset,criteo for dlrm, get,dataset,criteo,_multihot for dlrm-v2",
                )
            self._table = sample.table
        is_in_memory = self._fits(raw)
        samples = []
        for sample in raw:
            tensors: dict[str, Array] = {
                "dense": sample.table.dense(sample.rows),
                "labels": sample.table.labels(sample.rows),
                "rows": np.array((sample.rows.start, sample.rows.stop), dtype=np.int64),
            }
            if is_in_memory:
                sparse = self._empty(sample.rows.stop - sample.rows.start)
                sample.table.copy_sparse(sample.rows, sparse)
                tensors["sparse"] = sparse
            samples.append(tensors)
        return samples

    def _empty(self, rows: int) -> npt.NDArray[np.int32]:
        return np.empty((rows, sum(self._hot_counts)), dtype=np.int32)

    def _fits(self, raw: Sequence[ClickRows]) -> bool:
        """Return whether the category values of the samples fit into the free memory; says so on stderr if not."""
        needed = sum(sample.rows.stop - sample.rows.start for sample in raw) * sum(self._hot_counts) * 4
        free = free_memory_bytes()
        if free is None or needed <= free * _SPARSE_PART:
            return True
        sys.stderr.write(
            f"harness: {needed / 1e9:.1f} GB of category values stay in their files, {free / 1e9:.1f} GB of memory are "
            "free: reading them is part of the measured time\n"
        )
        return False

    def length(self, sample: Tensors) -> int:
        return len(sample["labels"])

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return the rows of all samples one below the other, and `lengths`, the number of rows of each sample."""
        lengths = np.array([len(sample["labels"]) for sample in samples], dtype=np.int64)
        parts = {name: [sample[name] for sample in samples] for name in ("dense", "labels")}
        parts["sparse"] = [sample["sparse"] if "sparse" in sample else self._read(sample) for sample in samples]
        joined = {name: rows[0] if len(rows) == 1 else np.concatenate(rows) for name, rows in parts.items()}
        return {**joined, "lengths": lengths}

    def _read(self, sample: Tensors) -> Array:
        """Return the category values of a sample that are not in memory."""
        assert self._table is not None, "samples come from preprocess"
        start, end = sample["rows"].tolist()
        sparse = self._empty(end - start)
        self._table.copy_sparse(slice(start, end), sparse)
        return sparse

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
