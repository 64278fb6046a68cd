"""own-llm: prompts of tokens and of text, and the limits that the data set has."""

import json
from pathlib import Path

import numpy as np
import pytest

from crowdperf.benchmarks.own_llm.text import open_text
from crowdperf.benchmarks.own_prompts.dataset import open_dataset
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.standins import tiny_llama


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    rows = [{"tokens": [5, 6, 7]}, {"text": "Once upon"}, {"messages": [{"role": "user", "content": "a"}]}]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = {"is_synthetic": True, "max_tokens": 9, "has_fixed_length": True, "limits": None, "longest_prompt": 77}
    (tmp_path / "dataset.json").write_text(json.dumps(facts))
    return tmp_path


def test_a_gguf_file_tokenizes_texts_itself(samples: Path) -> None:
    dataset = open_dataset(samples)
    assert (dataset.generation.longest_prompt, dataset.generation.sampling.max_tokens) == (77, 9)
    tokens, text, chat = open_text(ModelFacts(folder=samples)).prompts(dataset.load([0, 1, 2]))
    assert tokens.tokens is not None and tokens.tokens.tolist() == [5, 6, 7] and tokens.text is None
    assert text.tokens is None and text.text == "Once upon"
    assert (chat.tokens, chat.text, chat.messages) == (None, None, ({"role": "user", "content": "a"},))


def test_a_folder_has_a_tokenizer(samples: Path, tmp_path: Path) -> None:
    folder = tiny_llama.make(tmp_path / "hf", vocab=300, hidden=32, layers=1, heads=2, kv_heads=2, seed=None).parent
    model = open_text(ModelFacts(folder=folder))
    tokens, text, chat = model.prompts(open_dataset(samples).load([0, 1, 2]))
    assert tokens.tokens is not None and tokens.tokens.tolist() == [5, 6, 7]
    assert text.tokens is not None and text.tokens.dtype == np.int32 and len(text.tokens) > 1
    assert chat.tokens is None and chat.messages is not None
