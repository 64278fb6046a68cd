"""Counts tokens of text with the benchmark's own tokenizer: tokenizer.json, by the package tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from harness.errors import HarnessError
from harness.text.engine import Tokens

FILE = "tokenizer.json"


class Vocabulary:
    """The benchmark's tokenizer. Its calls release Python's global interpreter lock."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> Tokens:
        """Return the tokens of a text, without start and end token."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; those that stand for no text (start, end) are left out."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))


def open_vocabulary(folder: Path | None) -> Vocabulary | None:
    """Return the tokenizer of a model's folder, None where there is none; raises HarnessError for a broken file."""
    path = None if folder is None else folder / FILE
    if path is None or not path.is_file():
        return None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise HarnessError(f"{path} cannot be read: {error}", "make the model again") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Vocabulary(tokenizer)
