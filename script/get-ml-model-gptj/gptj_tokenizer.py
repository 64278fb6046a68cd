"""Trains a byte-pair tokenizer on made news and writes it as GPT-J's tokenizer.json; needs the library tokenizers.

Byte-level pairs with one special token <|endoftext|>, number 0 (in the real one it is 50256): the same kind of file,
read by the same code.
"""

import json
from pathlib import Path

END = "<|endoftext|>"
END_TOKEN = 0


def train(texts: list[str], size: int, path: Path) -> int:
    """Writes tokenizer.json with at most `size` tokens; gives how many there are."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))
    return tokenizer.get_vocab_size()


def article_texts(dataset_dir: Path) -> list[str]:
    """The articles and summaries of the training part, else of the evaluation part."""
    training = dataset_dir / "cnn_train.json"
    source = training if training.is_file() else dataset_dir / "cnn_eval.json"
    entries = json.loads(source.read_text(encoding="utf-8"))
    return [text for entry in entries for text in (entry["input"], entry["output"])]
