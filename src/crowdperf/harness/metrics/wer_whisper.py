"""Word accuracy of Whisper's transcripts; agrees with accuracy_eval.py in speech2text of mlcommons/inference, b66003e1.

The official script prints both shares in full: `Word Error Rate: 2.0671%, accuracy=97.9329%`. Before words are compared
both texts go through the English normaliser that came with Whisper (the package whisper-normalizer has it without
torch), and up to three words in a row count as equal to one that is spelt together.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics.wer import text_of_numbers, word_distance

LABELS = " abcdefghijklmnopqrstuvwxyz'0123456789$%+-"
"""The 42 characters by number: `labels` of accuracy_eval.py."""
_NUMBERS = {character: number for number, character in enumerate(LABELS)}
_MAX_JOINED = 3


def labels_of(text: str) -> npt.NDArray[np.int64]:
    """Return the numbers of a transcript's characters, int64[n]: in small letters, without blanks at its ends, what is
    no label left out (process_queries of reference_SUT.py)."""
    return np.array([_NUMBERS[one] for one in text.lower().strip() if one in _NUMBERS], dtype=np.int64)


def transcript_of(index: int, data: bytes) -> str:
    """Return the transcript of a response; raises HarnessError for another size and for what is no label."""
    return text_of_numbers(index, data, LABELS, "labels")


def _joined(words: Sequence[str], start: int, wanted: str) -> int:
    """Return how many words from `start` on, spelt together, are `wanted`; 0: none."""
    return next(
        (
            count
            for count in range(1, _MAX_JOINED + 1)
            if start + count <= len(words) and "".join(words[start : start + count]) == wanted
        ),
        0,
    )


def error_count(found: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the words to add, drop or change, those that differ only by a blank being equal.

    As compute_wer_with_concatenation of helpers.py: from left to right, words that match when joined become one on both
    sides, all others stay as they are; the distance is that of the two lists.
    """
    left: list[str] = []
    right: list[str] = []
    i = j = 0
    while i < len(wanted) and j < len(found):
        here, there = 1, 1
        for count in range(1, _MAX_JOINED + 1):  # the shortest match first, the reference's words before the found
            if _joined(wanted[: i + count], i, found[j]) == count:
                here = count
                break
            if _joined(found[: j + count], j, wanted[i]) == count:
                there = count
                break
        left.append("".join(wanted[i : i + here]))
        right.append("".join(found[j : j + there]))
        i, j = i + here, j + there
    return word_distance([*right, *found[j:]], [*left, *wanted[i:]])


def score(responses: Iterable[tuple[int, bytes]], references: Sequence[str]) -> Score:
    """Return "ACCURACY": 100 less the word error rate in percent. references: transcripts by sample index.

    A sample that comes twice counts twice, as in the official script. Raises HarnessError as `transcript_of`, and where
    the references have no word.
    """
    english: Any = import_library("whisper_normalizer.english", "whisper-normalizer")
    normalise = english.EnglishTextNormalizer()
    errors = words = 0
    for index, data in responses:
        wanted = "".join(LABELS[number] for number in labels_of_reference(references[index]))
        expected = normalise(wanted).split()
        errors += error_count(normalise(transcript_of(index, data)).split(), expected)
        words += len(expected)
    if words == 0:
        raise HarnessError("the reference transcripts have no word", "look at the data set's transcripts")
    rate = errors / words
    accuracy_percent = (1 - rate) * 100
    line = f"Word Error Rate: {rate * 100}%, accuracy={accuracy_percent}%"
    return Score(values={"ACCURACY": accuracy_percent}, line=line)


def labels_of_reference(text: str) -> list[int]:
    """Return the numbers of a reference's characters; what is no label is left out (manifest.py)."""
    return [_NUMBERS[one] for one in text if one in _NUMBERS]
