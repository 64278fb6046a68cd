"""Top-1 accuracy of classification; agrees with accuracy-imagenet.py of mlcommons/inference.

The official script prints `accuracy=76.456%, good=38228, total=50000`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.errors import HarnessError
from harness.models.base import Score
from harness.tensors import Array


def score(
    responses: Iterable[tuple[int, bytes]], labels: Array, *, response_bytes: int, label_of: Callable[[bytes], int]
) -> Score:
    """Return "acc", the percentage of responses whose label is that of `labels`[index].

    Raises HarnessError for a response of another size than `response_bytes`.
    """
    good_count = total_count = 0
    for index, data in responses:
        if len(data) != response_bytes:
            raise HarnessError(
                f"the response of sample {index} has {len(data)} bytes; it should have {response_bytes}",
                "score the log with the model that made it",
            )
        good_count += label_of(data) == int(labels[index])
        total_count += 1
    percent = 100.0 * good_count / total_count
    line = f"accuracy={percent:.3f}%, good={good_count}, total={total_count}"
    return Score(values={"acc": percent}, line=line)
