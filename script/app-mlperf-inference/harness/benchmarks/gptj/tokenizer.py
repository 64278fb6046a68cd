"""Text to GPT-J's tokens and back, with the files of the model's folder: byte pairs as GPT-2 has them.

tokenizer.json is read where there is one, else vocab.json and merges.txt (what the published checkpoint's folder has).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.libraries import import_library

_HINT = "give the folder with model.json that get,ml-model,gptj made: the tokenizer's files lie beside it"
_CLEANED = ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
            (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"))  # fmt: skip
"""What transformers' decode did by default when the benchmark's reference was made (up to 4.x): spaces before
punctuation go. ROUGE-1, 2 and L do not change by it, the number of characters does."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """An opened tokenizer of the library `tokenizers`."""

    library_tokenizer: Any

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text; nothing is added or cut off."""
        return [encoding.ids for encoding in self.library_tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens, special ones left out, without spaces before punctuation."""
        text: str = self.library_tokenizer.decode(tokens, skip_special_tokens=True)
        for spaced, cleaned in _CLEANED:
            text = text.replace(spaced, cleaned)
        return text


def open_tokenizer(folder: Path | None) -> Tokenizer:
    """Return the tokenizer in `folder`; raises HarnessError naming the files that it lacks."""
    if folder is None:
        raise HarnessError("GPT-J needs its tokenizer, and no model.json tells where it is", _HINT)
    library = import_library("tokenizers", "tokenizers")
    whole, parts = folder / "tokenizer.json", (folder / "vocab.json", folder / "merges.txt")
    try:
        if whole.is_file():
            return Tokenizer(library.Tokenizer.from_file(str(whole)))
        if all(path.is_file() for path in parts):
            return Tokenizer(_of_parts(library, *parts))
    except Exception as error:  # the library raises plain Exception for a damaged file
        raise HarnessError(f"cannot read the tokenizer in {folder}: {error}", _HINT) from error
    raise HarnessError(f"{folder} has neither tokenizer.json nor vocab.json with merges.txt", _HINT)


def _of_parts(library: Any, vocabulary: Path, merges: Path) -> Any:
    tokenizer = library.Tokenizer(library.models.BPE.from_file(str(vocabulary), str(merges)))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer
