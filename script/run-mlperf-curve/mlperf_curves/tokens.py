"""Counts tokens as the client does, where the package `tokenizers` is there: tokenizer.json, no special tokens.

The client: encode_lengths in src/inference_endpoint/async_utils/services/metrics_aggregator/token_metrics.py of
mlcommons/endpoints ea332753 (2026-08-21).
"""

from __future__ import annotations

import importlib
from pathlib import Path

from mlperf_curves.events import CountTokens

TOKENIZER = "tokenizer.json"


class TokenizerError(ValueError):
    """tokenizer.json is there but cannot be used; the text says why."""


def counter_of(folder: Path) -> CountTokens | None:
    """Return the function that counts a text's tokens; None without `tokenizers`, or without a tokenizer.json."""
    path = folder / TOKENIZER
    try:
        library = importlib.import_module("tokenizers")
    except ImportError:
        return None
    if not path.is_file():
        return None
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise TokenizerError(f"{TOKENIZER}: {error}") from None

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
