"""Top-1 accuracy of classification; agrees with accuracy-imagenet.py of mlcommons/inference.

The official script prints `accuracy=76.456%, good=38228, total=50000`.
"""

from collections.abc import Callable, Iterable

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array

_HINT = "score the log with the model that made it"


def score(
    responses: Iterable[tuple[int, bytes]], labels: Array, *, response_bytes: int, label_of: Callable[[bytes], int]
) -> Score:
    """Return "acc", the percentage, as printed, of responses whose label is that of `labels`[index].

    Of a sample that comes twice the first counts. Raises HarnessError for a response of another size than
    `response_bytes`, and for one that is no label.
    """
    good_count = 0
    seen: set[int] = set()
    for index, data in responses:
        if index in seen:
            continue
        seen.add(index)
        if len(data) != response_bytes:
            message = f"the response of sample {index} has {len(data)} bytes, expected {response_bytes}"
            raise HarnessError(message, _HINT)
        try:
            found = label_of(data)
        except (ValueError, OverflowError) as error:
            raise HarnessError(f"the response of sample {index} is not a label: {error}", _HINT) from error
        good_count += found == int(labels[index])
    if not seen:
        raise HarnessError("no responses to score", "score the log of an accuracy run")
    percent = 100.0 * good_count / len(seen)
    line = f"accuracy={percent:.3f}%, good={good_count}, total={len(seen)}"
    return Score(values={"acc": round(percent, 3)}, line=line)
