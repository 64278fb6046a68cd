"""Cases of top-1 accuracy. truth: the labels."""

from collections.abc import Callable

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import top1


def _case(seed: int, count: int, right_share: float) -> Case:
    random = np.random.RandomState(seed)
    truth = random.randint(0, 1000, count)
    found = np.where(random.rand(count) < right_share, truth, random.randint(-1, 1000, count)).astype(np.float32)
    responses: Responses = [(int(index), found[index].tobytes()) for index in random.permutation(count)]
    return Case(responses, truth)


def _single(value: float) -> Case:
    return Case([(0, np.float32(value).tobytes())], np.array([3]))


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1, 5000, 0.76),
    "duplicated indices": lambda: Case(
        [*_case(2, 100, 0.7).responses, *_case(3, 50, 0.1).responses], _case(2, 100, 0.7).truth
    ),
    "half of the samples": lambda: Case(_case(4, 99, 0.5).responses[:49], _case(4, 99, 0.5).truth),
    "none right": lambda: _single(2.0),
    "a label between two": lambda: _single(3.7),
    "NaN": lambda: _single(float("nan")),
    "infinity": lambda: _single(float("inf")),
    "empty response": lambda: Case([(0, b"")], np.array([3])),
    "no response": lambda: Case([], np.array([3])),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer, with the responses of resnet50."""
    label_of: Callable[[bytes], int] = lambda data: int(np.frombuffer(data, dtype=np.float32)[0])  # noqa: E731
    return top1.score(case.responses, case.truth, response_bytes=4, label_of=label_of)
