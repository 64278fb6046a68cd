"""Cases of the word error rate. truth: the transcripts as the manifest has them; `references` are without what the
official manifest reader drops."""

from collections.abc import Callable

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import wer

_TEXT = "the a of mister o'brien it's stone house winter 'tis kings and ships under quickly i"
_WORDS = _TEXT.split()


def _ids(text: str) -> bytes:
    return np.array([wer.CHARACTERS.index(char) for char in text], dtype=np.int64).tobytes()


def _heard(random: np.random.RandomState, text: str) -> str:
    """Words lost, doubled, changed, split and joined; stray spaces."""
    words = []
    for word in text.split(" "):
        kind = random.randint(12)
        if kind == 0:
            continue
        words.append(word if kind != 1 else _WORDS[random.randint(len(_WORDS))])
        words += {2: [word], 3: [""], 4: ["uh"]}.get(kind, [])
    separator = ["", " "][random.randint(2)] if random.rand() < 0.1 else " "
    return separator.join(words)


def _case(seed: int, count: int = 60, *, longest: int = 35) -> Case:
    random = np.random.RandomState(seed)
    truth = [
        " ".join(_WORDS[i] for i in random.randint(0, len(_WORDS), random.randint(1, longest))) for _ in range(count)
    ]
    responses: Responses = [(index, _ids(_heard(random, text))) for index, text in enumerate(truth)]
    return Case([responses[i] for i in random.permutation(count)], truth)


def _same(truth: list[str], heard: list[str]) -> Case:
    return Case([(index, _ids(text)) for index, text in enumerate(heard)], truth)


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1, 400),
    "long": lambda: _case(2, 12, longest=300),
    "perfect": lambda: _same(["the house", "it's o'brien"], ["the house", "it's o'brien"]),
    "empty predictions": lambda: _same(["the house", "of stone", "a b c"], ["", "   ", "a  b c "]),
    "some empty transcripts": lambda: _same(["", "the house", ""], ["a word too many", "the house", ""]),
    "more errors than words": lambda: _same(["a"], ["b c d e f g"]),
    "duplicated indices": lambda: Case([*_case(4).responses, *_case(5).responses[:20]], _case(4).truth),
    "half of the samples": lambda: Case(_case(6).responses[:30], _case(6).truth),
    "transcripts of nothing": lambda: _same(["", ""], ["a", ""]),
    "the blank as a character": lambda: Case([(0, np.array([1, 28], np.int64).tobytes())], ["a b"]),
    "cut off": lambda: Case([(0, b"\1\0\0\0\0")], ["a b"]),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return wer.score(case.responses, case.truth)
