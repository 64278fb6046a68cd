"""Area under the ROC curve of click predictions (DLRM v1 and v2); agrees with accuracy-dlrm.py of mlcommons/inference.

The official script prints `AUC=80.310%, accuracy=96.665%, good=86164424, total=89137319, queries=330067`.

The area is the share of (clicked, not clicked) pairs of rows with the clicked one predicted higher, a tie counting
half. Counted in whole numbers, it is the exact value of what scikit-learn gets from the trapezoids of the curve. Beside
the two sorted lists of predictions (4 bytes a row: 357 MB for the 89 million rows of Criteo's day 23) little is held.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score

_CHUNK_ROWS = 1 << 20
_HINT = "score the log with the model and the data set that made it"


def _rows(index: int, data: bytes) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return the predictions of a sample's rows and whether each was clicked."""
    if len(data) % 8:
        raise HarnessError(f"the response of sample {index} has {len(data)} bytes, but each row has 8", _HINT)
    values: npt.NDArray[np.float32] = np.frombuffer(data, dtype=np.float32)
    predictions, labels = values[0::2], values[1::2]
    is_click = np.equal(labels, 1)
    if not (is_click | np.equal(labels, 0)).all():
        raise HarnessError(f"sample {index} has a label that is not 0 or 1", _HINT)
    if not np.isfinite(predictions).all():
        raise HarnessError(f"sample {index} has a prediction that is not a number", "look at the model's precision")
    return predictions, is_click


def _area(clicked: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> float:
    """Return the area; both lists get sorted in place."""
    clicked.sort()
    others.sort()
    twice_won = 0
    for start in range(0, len(clicked), _CHUNK_ROWS):
        chunk = clicked[start : start + _CHUNK_ROWS]
        twice_won += int(others.searchsorted(chunk, "left").sum()) + int(others.searchsorted(chunk, "right").sum())
    return twice_won / (2 * len(clicked) * len(others))


def score(responses: Iterable[tuple[int, bytes]]) -> Score:
    """Return "AUC" and "accuracy" (share of predictions that round to the label) in percent, as printed.

    A response is float32[rows][2]: prediction and label, 0 or 1. Of a sample that comes twice the first counts. Raises
    HarnessError for NaN, another label, and when all rows have the same label: there is no curve then.
    """
    seen: set[int] = set()
    clicked, others = bytearray(), bytearray()
    good_count = 0
    for index, data in responses:
        if index in seen:
            continue
        seen.add(index)
        predictions, is_click = _rows(index, data)
        good_count += int(np.count_nonzero(predictions.round() == is_click))
        clicked += predictions[is_click].tobytes()
        others += predictions[~is_click].tobytes()
    total_count = (len(clicked) + len(others)) // 4
    if not clicked or not others:
        raise HarnessError(
            f"all {total_count:,} rows have the same label, so the ROC curve is undefined",
            "score the log of an accuracy run over the whole validation set",
        )
    auc = 100.0 * _area(np.frombuffer(clicked, dtype=np.float32), np.frombuffer(others, dtype=np.float32))
    accuracy = 100.0 * (good_count / total_count)
    values = {"AUC": round(auc, 3), "accuracy": round(accuracy, 3)}
    line = f"AUC={auc:.3f}%, accuracy={accuracy:.3f}%, good={good_count}, total={total_count}, queries={len(seen)}"
    return Score(values=values, line=line)
