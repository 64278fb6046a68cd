"""Tokens are counted by the tokenizer of the client, if its library is there."""

import json
import sys
from pathlib import Path

import pytest
from harness_libraries import need

from crowdperf.curves.tokens import TokenizerError, counter_of

WORDS = {"[UNK]": 0, "red": 1, "house": 2}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    model = {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"}
    content = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    return tmp_path


def test_words_of_a_word_tokenizer_are_counted_without_special_tokens(tokenizer: Path):
    need("tokenizers")
    count = counter_of(tokenizer)
    assert count is not None
    assert [count(text) for text in ("red house", " a red, red house", "")] == [2, 5, 0]


def test_a_broken_tokenizer_is_named(tokenizer: Path):
    need("tokenizers")
    (tokenizer / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: "):
        counter_of(tokenizer)


def test_without_the_library_or_the_file_nothing_is_counted(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert counter_of(tmp_path / "elsewhere") is None
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert counter_of(tokenizer) is None
