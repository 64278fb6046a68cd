"""Writes the tokenizers of models with made weights; needs the library tokenizers.

    python3 -m crowdperf.standins.tokenizers whisper --output_dir FOLDER
    python3 -m crowdperf.standins.tokenizers gptj --output_dir FOLDER --dataset_dir FOLDER_OF_GET_DATASET_CNNDM

Each is of the kind that the real one is, read by the same code: byte-level pairs.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crowdperf.harness.base.libraries import import_library

GPTJ_END, GPTJ_END_TOKEN = "<|endoftext|>", 0
"""GPT-J's only special token; in the real tokenizer its number is 50256."""


def _byte_level(*model: Any) -> Any:
    """Return a tokenizer whose tokens are bytes, and pairs of a vocabulary and merges where they are given."""
    library = import_library("tokenizers", "tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE(*model))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    return tokenizer


def _alphabet() -> list[str]:
    return list(import_library("tokenizers", "tokenizers").pre_tokenizers.ByteLevel.alphabet())


def trained(texts: Iterable[str], size: int, special_tokens: Sequence[str]) -> Any:
    """Return a `tokenizers.Tokenizer` of at most `size` tokens: bytes, merges, and the special ones as the first."""
    tokenizer = _byte_level()
    trainer = import_library("tokenizers", "tokenizers").trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special_tokens), initial_alphabet=_alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def article_texts(dataset_dir: Path) -> list[str]:
    """Return the articles and summaries of made news: of the training part, else of the evaluation part."""
    training = dataset_dir / "cnn_train.json"
    source = training if training.is_file() else dataset_dir / "cnn_eval.json"
    entries = json.loads(source.read_text(encoding="utf-8"))
    return [text for entry in entries for text in (entry["input"], entry["output"])]


def write_gptj(folder: Path, texts: Iterable[str], size: int) -> int:
    """Write GPT-J's tokenizer.json, trained on texts, of at most `size` tokens; return how many there are."""
    tokenizer = trained(texts, size, [GPTJ_END])
    tokenizer.save(str(folder / "tokenizer.json"))
    return int(tokenizer.get_vocab_size())


def write_whisper(folder: Path) -> Any:
    """Write and return a tokenizer that has one token for each byte, and Whisper's special tokens."""
    from crowdperf.benchmarks.whisper.model import END, PROMPT

    tokenizer = _byte_level({letter: number for number, letter in enumerate(sorted(_alphabet()))}, [])
    tokenizer.add_special_tokens([*PROMPT, END])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def write_clip(folder: Path) -> None:
    """Write vocab.json and merges.txt of Stable Diffusion XL: a token for each byte, one for each that ends a word, and
    the two special ones.

    CLIP's own begin with the same 512 tokens; that the end has the highest number is what both networks rely on.
    """
    from crowdperf.harness.media.clip_tokens import END, START

    letters = sorted(_alphabet())
    names = [*letters, *(f"{letter}</w>" for letter in letters), START, END]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")


def _write_full_gptj(folder: Path, dataset_dir: Path) -> None:
    from crowdperf.benchmarks.gptj.network import CONFIGS

    write_gptj(folder, article_texts(dataset_dir), CONFIGS["full"]["vocab_size"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", choices=("clip", "gptj", "whisper"))
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--dataset_dir", type=Path, help="made news that GPT-J's is trained on")
    given = parser.parse_args()
    if given.kind == "gptj":
        if given.dataset_dir is None:
            parser.error("gptj needs --dataset_dir")
        _write_full_gptj(given.output_dir, given.dataset_dir)
    else:
        {"clip": write_clip, "whisper": write_whisper}[given.kind](given.output_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
