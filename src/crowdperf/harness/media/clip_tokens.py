"""Texts to CLIP's tokens, with the byte pairs of `vocab.json` and `merges.txt` of a published folder.

Three readings of one vocabulary: the first tokenizer of Stable Diffusion XL fills up with the end token; the second
one with "!", which it also takes for a token of its own wherever it stands; the scorer fills up with 0. Sources:
CLIPConverter of transformers 5.23.0 (PyPI), convert_slow_tokenizer.py; open_clip_torch 2.26.1 (PyPI), tokenizer.py,
without ftfy, which changes no caption of the benchmark (all are ASCII).
"""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library

START, END = "<|startoftext|>", "<|endoftext|>"
FILL = "!"
_PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
_HINT = "give the folder with model.json that get,ml-model,stable-diffusion-xl made"


@dataclass(frozen=True, slots=True)
class ClipTokenizer:
    """An opened tokenizer. plain: of the library `tokenizers`; filled: the same, to which FILL is a special token."""

    plain: Any
    filled: Any

    def first(self, texts: Sequence[str], positions: int) -> npt.NDArray[np.int64]:
        """Return int64[texts, positions]: filled up with the end token."""
        return self._rows(self.plain, texts, positions, self.plain.token_to_id(END))

    def second(self, texts: Sequence[str], positions: int) -> npt.NDArray[np.int64]:
        """Return int64[texts, positions]: filled up with the number of FILL."""
        return self._rows(self.filled, texts, positions, self.filled.token_to_id(FILL))

    def scorers(self, texts: Sequence[str], positions: int) -> npt.NDArray[np.int64]:
        """Return int64[texts, positions] as the scorer reads a caption: entities resolved, filled up with 0."""
        resolved = [html.unescape(html.unescape(text)).strip() for text in texts]
        return self._rows(self.plain, resolved, positions, 0)

    def _rows(self, tokenizer: Any, texts: Sequence[str], positions: int, fill: int) -> npt.NDArray[np.int64]:
        rows = np.full((len(texts), positions), fill, dtype=np.int64)
        ends = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
        for row, found in zip(rows, tokenizer.encode_batch(list(texts), add_special_tokens=False), strict=True):
            tokens = [ends[0], *found.ids[: positions - 2], ends[1]]
            row[: len(tokens)] = tokens
        return rows


def open_clip_tokenizer(folder: Path | None) -> ClipTokenizer:
    """Return the tokenizer of `folder`; raises HarnessError naming what it lacks."""
    if folder is None:
        raise HarnessError("the captions need CLIP's tokenizer, but its path is not in any model.json", _HINT)
    library = import_library("tokenizers", "tokenizers")
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    missing = [path.name for path in (vocabulary, merges) if not path.is_file()]
    if missing:
        raise HarnessError(f"{folder} has no {' and no '.join(missing)}", _HINT)
    try:
        names = json.loads(vocabulary.read_text(encoding="utf-8"))
        opened = [_opened(library, vocabulary, merges, special) for special in ((START, END), (START, END, FILL))]
    except Exception as error:  # the library raises plain Exception for a damaged file
        raise HarnessError(f"cannot read the tokenizer in {folder}: {error}", _HINT) from error
    lacking = [name for name in (START, END, FILL) if name not in names]
    if lacking:
        raise HarnessError(f"the tokenizer in {folder} has no {', '.join(lacking)}", _HINT)
    return ClipTokenizer(*opened)


def _opened(library: Any, vocabulary: Path, merges: Path, special: Sequence[str]) -> Any:
    model = library.models.BPE.from_file(
        str(vocabulary), str(merges), continuing_subword_prefix="", end_of_word_suffix="</w>", unk_token=END
    )
    tokenizer = library.Tokenizer(model)
    normalizers, splits = library.normalizers, library.pre_tokenizers
    blanks = normalizers.Replace(library.Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), blanks, normalizers.Lowercase()])
    words = splits.Split(library.Regex(_PATTERN), behavior="removed", invert=True)
    tokenizer.pre_tokenizer = splits.Sequence([words, splits.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(list(special))
    return tokenizer
