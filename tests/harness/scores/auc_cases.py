"""Cases of the area under the ROC curve. truth: the labels by sample, None where the responses hold them."""

from collections.abc import Callable

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import auc


def _predictions(random: np.random.RandomState, labels: np.ndarray, step: float) -> np.ndarray:
    values = 1 / (1 + np.exp(-(random.standard_normal(len(labels)) + 1.5 * labels - 2)))
    return (np.round(values / step) * step if step else values).astype(np.float32)


def _case(seed: int, *, with_labels: bool, step: float = 0.0, click_share: float = 0.03, count: int = 120) -> Case:
    random = np.random.RandomState(seed)
    sizes = random.choice([100, 200, 300, 400, 500, 600, 700], count, p=[0.1, 0.6, 0.1, 0.05, 0.05, 0.05, 0.05])
    truth = [(random.rand(size) < click_share).astype(np.int32) for size in sizes]
    responses: Responses = []
    for index, labels in enumerate(truth):
        predictions = _predictions(random, labels, step)
        rows = np.stack([predictions, labels.astype(np.float32)], axis=1) if with_labels else predictions
        responses.append((index, np.ascontiguousarray(rows, dtype=np.float32).tobytes()))
    return Case([responses[i] for i in random.permutation(count)], None if with_labels else truth)


def _rows(*rows: tuple[float, float]) -> Case:
    return Case([(0, np.array(rows, dtype=np.float32).tobytes())], None)


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1, with_labels=True),
    "many ties": lambda: _case(3, with_labels=True, step=0.05),
    "all predictions equal": lambda: _case(4, with_labels=True, step=2.0),
    "halves round to even": lambda: _case(5, with_labels=False, step=0.5, click_share=0.5),
    "duplicated indices": lambda: Case([*_case(6, with_labels=True).responses, (0, b"\0" * 80)], None),
    "perfect": lambda: _rows((0.1, 0), (0.9, 1), (0.2, 0)),
    "the wrong way round": lambda: _rows((0.9, 0), (0.1, 1)),
    "logits, zeros of both signs": lambda: _rows((-0.0, 1), (0.0, 0), (-3.5, 0), (8.0, 1), (1e-42, 0), (2e-42, 1)),
    "a sample without rows": lambda: Case([*_case(8, with_labels=True).responses, (120, b"")], None),
    "clicks only": lambda: _rows((0.1, 1), (0.9, 1)),
    "no clicks": lambda: _rows((0.1, 0), (0.9, 0)),
    "NaN": lambda: _rows((float("nan"), 0), (0.9, 1)),
    "infinity": lambda: _rows((float("inf"), 0), (0.9, 1)),
    "cut off": lambda: Case([(0, b"\0" * 12)], None),
    "label 2": lambda: _rows((0.1, 0), (0.9, 1), (0.5, 2)),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer, which wants each row's label behind its prediction."""
    if case.truth is None:
        return auc.score(case.responses)
    pairs = [(np.frombuffer(data, np.float32), case.truth[index]) for index, data in case.responses]
    rows = [np.stack(pair, axis=1).astype(np.float32).tobytes() for pair in pairs]
    return auc.score(zip([index for index, _ in case.responses], rows, strict=True))
