"""Word error rate of transcribed speech (RNN-T); agrees with accuracy_eval.py of mlcommons/inference.

The official script prints both shares in full: `Word Error Rate: 7.452253714852645%, accuracy=92.54774628514736%`.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score

CHARACTERS = " abcdefghijklmnopqrstuvwxyz'"
"""The 28 characters by id, as accuracy_eval.py lists them."""
_HINT = "score the log with the model that made it"


def word_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the fewest words to add, drop or change that make `second` of `first` (Levenshtein)."""
    distances = list(range(len(second) + 1))
    for row, word in enumerate(first, 1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(second, 1):
            changed = diagonal + (word != other)
            diagonal = distances[column]
            distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)
    return distances[-1]


def text_of_numbers(index: int, data: bytes, characters: str, name: str, note: str = "") -> str:
    """Return the text of a response, int64[n] of places in `characters`; raises HarnessError for another size and for
    other numbers, with their name and a note to those allowed."""
    if len(data) % 8:
        raise HarnessError(
            f"the response of sample {index} has {len(data)} bytes, which is not a whole number of int64 values", _HINT
        )
    numbers = np.frombuffer(data, dtype=np.int64)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(characters):
        raise HarnessError(
            f"the response of sample {index} has the {name} {int(numbers.min())} to {int(numbers.max())}; allowed: "
            f"0 to {len(characters) - 1}{note}",
            _HINT,
        )
    return "".join(characters[number] for number in numbers.tolist())


def _text(index: int, data: bytes) -> str:
    return text_of_numbers(index, data, CHARACTERS, "character ids", " (the blank is not a character)")


def score(responses: Iterable[tuple[int, bytes]], references: Sequence[str]) -> Score:
    """Return "WER": 100 - the word error rate in percent, which is the number the official checkers compare.

    A response is int64[n] of character ids; none at all is an empty transcript. references: the normalised
    transcripts by sample index. A sample that comes twice counts twice, as in the official script. Raises HarnessError
    for an id without a character, and when the references have no word: the rate would be infinite.
    """
    error_count = word_count = 0
    for index, data in responses:
        wanted = references[index].split()
        error_count += word_distance(_text(index, data).split(), wanted)
        word_count += len(wanted)
    if word_count == 0:
        raise HarnessError("the reference transcripts have no word", "look at the data set's transcripts")
    rate = error_count / word_count
    accuracy_percent = (1 - rate) * 100
    line = f"Word Error Rate: {rate * 100}%, accuracy={accuracy_percent}%"
    return Score(values={"WER": accuracy_percent}, line=line)
