"""Cases of Whisper's word accuracy. truth: the transcripts as the manifest has them."""

from collections.abc import Callable

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import wer_whisper

_TEXT = (
    "mister o'brien's twenty one ships had not gone to every one who is in the grey house of none the less doctor "
    "smith's three hundred and five dollars he'll won't half past colour everyone nonetheless 21 $305 5% o'clock"
)
_WORDS = _TEXT.split()


def _bytes(text: str) -> bytes:
    return wer_whisper.labels_of(text).tobytes()


def _heard(random: np.random.RandomState, text: str) -> str:
    """Words lost, doubled, changed and joined to the next."""
    heard = ""
    for word in text.split():
        kind = random.randint(12)
        if kind == 0:
            continue
        heard += word if kind != 1 else _WORDS[random.randint(len(_WORDS))]
        heard += {2: f" {word} ", 3: ""}.get(kind, " ")
    return heard


def _case(seed: int, count: int = 40) -> Case:
    random = np.random.RandomState(seed)
    truth = [" ".join(_WORDS[i] for i in random.randint(0, len(_WORDS), random.randint(1, 40))) for _ in range(count)]
    responses: Responses = [(index, _bytes(_heard(random, text))) for index, text in enumerate(truth)]
    return Case([responses[i] for i in random.permutation(count)], truth)


def _same(truth: list[str], heard: list[str]) -> Case:
    return Case([(index, _bytes(text)) for index, text in enumerate(heard)], truth)


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1, 300),
    "perfect": lambda: _same(["the house", "it's o'brien"], ["The house.", "it's o'brien"]),
    "spelt together": lambda: _same(["every one of us", "none the less"], ["everyone of us", "nonetheless"]),
    "spelt apart": lambda: _same(["everyone of us", "nonetheless so"], ["every one of us", "none the less so"]),
    "numbers and money": lambda: _same(["twenty one dollars and five cents"], ["21 dollars and 5 cents"]),
    "empty predictions": lambda: _same(["the house", "of stone"], ["", "   "]),
    "some empty transcripts": lambda: _same(["", "the house"], ["a word too many", "the house"]),
    "more errors than words": lambda: _same(["a"], ["b c d e f g"]),
    "characters that are no label": lambda: _same(["the café is, new"], ["the caf is new"]),
    "duplicated indices": lambda: Case([*_case(4).responses, *_case(5).responses[:20]], _case(4).truth),
    "transcripts of nothing": lambda: _same(["", ""], ["a", ""]),
    "a number beyond the labels": lambda: Case([(0, np.array([1, 42], np.int64).tobytes())], ["a b"]),
    "cut off": lambda: Case([(0, b"\1\0\0\0\0")], ["a b"]),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return wer_whisper.score(case.responses, case.truth)
