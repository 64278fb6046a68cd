"""The tokenizer of a model's folder, as the official scorers use it.

Read are tokenizer.json (the library `tokenizers`), else vocab.json and merges.txt (byte pairs as GPT-2 has them); and
from tokenizer_config.json whether decoding takes spaces away before punctuation (`clean_up_tokenization_spaces`; what
transformers' decode does with it).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.kit.text_documents import given_object
from crowdperf.rules import end_tokens as endtokens

FILE = "tokenizer.json"
_PARTS = ("vocab.json", "merges.txt")
_HINT = "pass the model's folder with its tokenizer.json, as on Hugging Face: --model_path=FOLDER"
_CLEANED = ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
            (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"))  # fmt: skip
"""Spaces that transformers' clean_up_tokenization removes (tokenization_utils_base.py of 4.46.2, which the reference of
Llama 3.1 8B is pinned to, and of 5.23.0). From 5.x on byte-pair tokenizers keep them whatever their files say, and the
official script then counts more characters; here the pinned version is followed."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """An opened tokenizer. is_cleaned: decoding removes spaces before punctuation. size: ids are below it; that of the
    model where config.json says more (some models have spare ids)."""

    library_tokenizer: Any
    is_cleaned: bool
    size: int

    def encode(self, text: str, *, with_special: bool = True) -> list[int]:
        """Return the tokens of a text, with what the tokenizer puts in front of every text unless told otherwise."""
        tokens: list[int] = self.library_tokenizer.encode(text, add_special_tokens=with_special).ids
        return tokens

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text; nothing is added."""
        return [encoding.ids for encoding in self.library_tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, tokens: Sequence[int], *, with_special: bool = False) -> str:
        """Return the text of tokens, special ones left out unless they are asked for."""
        text: str = self.library_tokenizer.decode(list(tokens), skip_special_tokens=not with_special)
        for spaced, cleaned in _CLEANED if self.is_cleaned else ():
            text = text.replace(spaced, cleaned)
        return text


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, an empty one where there is no file; raises HarnessError for anything else."""
    return given_object(path, lambda why: HarnessError(why, _HINT), is_needed=False)


def end_tokens(folder: Path | None) -> tuple[int, ...]:
    """Return the token ids that end an answer, as the model's files name them; raises HarnessError for damaged ones."""
    try:
        return endtokens.end_tokens(folder)
    except ValueError as error:
        raise HarnessError(str(error), _HINT) from error


def open_tokenizer(folder: Path | None, is_cleaned: bool | None = None) -> Tokenizer:
    """Return the tokenizer in `folder`; raises HarnessError where it has none or it cannot be read.

    is_cleaned: whether decoding removes spaces before punctuation; None: as tokenizer_config.json says.
    """
    if folder is None:
        raise HarnessError("the model has no folder with a tokenizer", _HINT)
    library = import_library("tokenizers", "tokenizers")
    parts = [folder / name for name in _PARTS]
    try:
        if (folder / FILE).is_file():
            opened = library.Tokenizer.from_file(str(folder / FILE))
        elif all(path.is_file() for path in parts):
            opened = _of_parts(library, *parts)
        else:
            raise HarnessError(f"{folder} contains neither {FILE} nor {' with '.join(_PARTS)}", _HINT)
    except HarnessError:
        raise
    except Exception as error:  # the library raises plain Exception for a damaged file
        raise HarnessError(f"cannot read the tokenizer in {folder}: {error}", _HINT) from error
    opened.no_truncation()
    opened.no_padding()
    if is_cleaned is None:
        is_cleaned = bool(read_object(folder / "tokenizer_config.json").get("clean_up_tokenization_spaces", False))
    more = read_object(folder / "config.json").get("vocab_size")
    return Tokenizer(opened, is_cleaned, max(opened.get_vocab_size(), more if type(more) is int else 0))


def _of_parts(library: Any, vocabulary: Path, merges: Path) -> Any:
    tokenizer = library.Tokenizer(library.models.BPE.from_file(str(vocabulary), str(merges)))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer
