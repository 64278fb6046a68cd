"""Writes the files of a tokenizer for a Stable Diffusion XL with made weights: `python3 write_tokenizer.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokenizers import pre_tokenizers

from crowdperf.harness.media.clip_tokens import END, START


def write_tokenizer(folder: Path) -> None:
    """Write vocab.json and merges.txt: a token for each byte, one for each that ends a word, and the two special ones.

    CLIP's own begin with the same 512 tokens; that the end has the highest number is what both networks rely on.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(f"{letter}</w>" for letter in letters), START, END]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")


if __name__ == "__main__":
    write_tokenizer(Path(sys.argv[1]))
