"""DLRM-DCNv2 on multi-hot Criteo: benchmarks dlrm-v2-99 and dlrm-v2-99.9 (v3.1 to v5.1).

As `dlrm`, but that a row has one to 100 values for a category (214 in all), whose embeddings are summed, and that the
counts are stored as the network takes them (recommendation/dlrm_v2/pytorch of mlcommons/inference).
"""

from crowdperf.benchmarks.dlrm.model import Dlrm, memory_need_bytes, tables_bytes
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.criteo import CATEGORY_COUNT, MULTI_HOT, TABLE_ROWS_V2


def memory_bytes(facts: ModelFacts) -> int:
    """Return how much memory the model takes: 112 GB at full size."""
    return memory_need_bytes(tables_bytes(facts, TABLE_ROWS_V2))


def open_model(facts: ModelFacts) -> Dlrm:
    """Return the model; raises HarnessError when model.json does not say how many values each category has."""
    counts = facts.config.get("hot_counts", MULTI_HOT)
    if len(counts) != CATEGORY_COUNT or not all(isinstance(count, int) and count > 0 for count in counts):
        raise HarnessError(
            f"dlrm-v2: model.json's hot_counts is {counts!r}; allowed: {CATEGORY_COUNT} positive numbers",
            "rebuild the model",
        )
    return Dlrm(counts)
