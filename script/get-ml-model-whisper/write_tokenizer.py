"""Writes a tokenizer for a Whisper with made weights: `python3 write_tokenizer.py FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from crowdperf.benchmarks.whisper.model import END, PROMPT


def write_tokenizer(path: Path) -> Tokenizer:
    """Write a tokenizer that has one token for each byte, and Whisper's special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*PROMPT, END])
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return tokenizer


if __name__ == "__main__":
    write_tokenizer(Path(sys.argv[1]))
