"""Word pieces of uncased BERT, and the windows of at most 384 tokens that a question and its paragraph make.

Agrees with what language/bert of mlcommons/inference does through `transformers.BertTokenizer` (the one in Python) and
create_squad_data.py, b66003e1. Written without the package `tokenizers`, so that neither preprocessing nor scoring has
to install it; the tests compare with both.

    [CLS] question [SEP] part of the paragraph [SEP]
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics.squad import MAX_SEQUENCE_LENGTH, basic_tokenize

# squad_QSL.py of language/bert
MAX_QUERY_LENGTH = 64
DOCUMENT_STRIDE = 128

_SPECIAL = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")
_SPECIAL_IN_TEXT = re.compile("(" + "|".join(map(re.escape, _SPECIAL)) + ")")
_LONGEST_WORD = 100  # characters; a longer one is unknown (WordpieceTokenizer.max_input_chars_per_word)
_LENGTH_WEIGHT = 0.01  # of _check_is_max_context in create_squad_data.py


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return the number of each word piece of a vocab.txt: its line, from 0. Raises HarnessError."""
    hint = "make or get the data set again: cm run script --tags=get,dataset,squad --renew"
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", hint) from error
    if lines[-1] == "":
        lines.pop()
    numbers = {line.rstrip("\r"): number for number, line in enumerate(lines)}
    missing = [token for token in _SPECIAL if token not in numbers]
    if missing:
        raise HarnessError(f"{path} is not a BERT vocabulary: it is missing {', '.join(missing)}", hint)
    return numbers


class WordPieces:
    """Cuts text into the pieces of a vocabulary; remembers the words it has seen."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.vocabulary = vocabulary
        self._known: dict[str, tuple[str, ...]] = {}

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of `text`; special tokens written out in it ("[SEP]") stay what they are."""
        tokens: list[str] = []
        for word in text.split(" "):  # nothing in the rules looks beyond a space
            pieces = self._known.get(word)
            if pieces is None:
                pieces = self._known[word] = tuple(self._pieces(word))
            tokens.extend(pieces)
        return tokens

    def _pieces(self, text: str) -> Iterator[str]:
        for part in _SPECIAL_IN_TEXT.split(text) if "[" in text else (text,):
            if part in _SPECIAL:
                yield part
                continue
            for word in basic_tokenize(part if part.isascii() else _as_transformers(part)):
                yield from self._cut(word)

    def _cut(self, word: str) -> tuple[str, ...]:
        """Return the longest piece that starts the word, then of the rest, and so on; [UNK] where none fits."""
        if len(word) > _LONGEST_WORD:
            return ("[UNK]",)
        pieces: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in self.vocabulary)
            end = next(ends, None)
            if end is None:
                return ("[UNK]",)
            pieces.append(prefix + word[start:end])
            start = end
        return tuple(pieces)


def _as_transformers(text: str) -> str:
    """Return `text` with what transformers does otherwise than the scorer's tokenizer already done: private and
    unassigned characters dropped, and lower case made of each character alone (the last sigma of a word stays σ)."""
    kept = (char for char in text if char in "\t\n\r" or not unicodedata.category(char).startswith("C"))
    return "".join(char.lower() for char in kept)


def split_words(paragraph: str) -> list[str]:
    """Return the words between white space as create_squad_data.py knows it: space, \\t, \\r, \\n and U+202F only."""
    return [word for word in re.split("[ \t\r\n\u202f]", paragraph) if word]


@dataclass(frozen=True, slots=True)
class Document:
    """A paragraph: its words, the pieces of all words in a row, and the word that each piece is of."""

    words: Sequence[str]
    tokens: Sequence[str]
    word_indices: Sequence[int]


def tokenize_document(paragraph: str, pieces: WordPieces) -> Document:
    """Return the paragraph cut first into words and then, each word alone, into pieces."""
    words = split_words(paragraph)
    tokens: list[str] = []
    word_indices: list[int] = []
    for index, word in enumerate(words):
        found = pieces.tokenize(word)
        tokens.extend(found)
        word_indices.extend([index] * len(found))
    return Document(words, tokens, word_indices)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a paragraph: its first piece and how many there are. `is_max_context` of each piece: no other window
    shows it with more context."""

    start: int
    length: int
    is_max_context: Sequence[bool]


def cut_windows(token_count: int, query_count: int) -> list[Window]:
    """Return the windows over a paragraph of `token_count` pieces beside a question of `query_count` pieces.

    A paragraph without pieces has none, so that its question is no sample.
    """
    room = MAX_SEQUENCE_LENGTH - query_count - 3  # [CLS], [SEP], [SEP]
    spans: list[tuple[int, int]] = []
    start = 0
    while start < token_count:
        length = min(token_count - start, room)
        spans.append((start, length))
        if start + length == token_count:
            break
        start += min(length, DOCUMENT_STRIDE)
    if len(spans) == 1:
        return [Window(0, token_count, [True] * token_count)]
    best = [_best_span(position, spans) for position in range(token_count)]
    return [
        Window(start, length, [best[position] == number for position in range(start, start + length)])
        for number, (start, length) in enumerate(spans)
    ]


def _best_span(position: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return the first span in which the lesser of left and right context of a position is greatest."""
    scores = [
        (min(position - start, start + length - 1 - position) + _LENGTH_WEIGHT * length, -number)
        for number, (start, length) in enumerate(spans)
        if start <= position < start + length
    ]
    return -max(scores)[1]
