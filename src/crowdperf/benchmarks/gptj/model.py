"""GPT-J summarises news (MLPerf v3.1 to v5.0): beam search with 4 beams, 30 to 128 new tokens; all of it timed.

Only turning the prompt into tokens may happen before (reference tokenisation, inference rules). Response of a sample:
the numbers of its new tokens as int64, the end token included. Prompt, lengths and search settings are those of
language/gpt-j (dataset.py, backend_PyTorch.py; mlcommons/inference, tag v5.0): prompts are cut at their end after 1,919
tokens, batches are padded in front.

The prompt's keys and values are computed once for each sample and shared by its beams; see network.py for
the network's inputs and beam_search.py for the rules of the search.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.benchmarks.gptj.beam_search import BeamSearch, SearchRules
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec
from crowdperf.harness.datasets.cnndm import Article, CnnDmDataset
from crowdperf.harness.metrics import rouge
from crowdperf.harness.text.tokenizer import Tokenizer, open_tokenizer

PROMPT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:"
)
LONGEST_PROMPT = 1919
BEAMS, MIN_TOKENS, MAX_TOKENS = 4, 30, 128
CANDIDATES = 9  # network.py: twice the beams, and the end token where it is not allowed yet

_SIZES = ("n_embd", "n_layer", "n_head", "vocab_size", "eos_token_id")
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}


def _networks(config: Mapping[str, Any]) -> tuple[NetworkSpec, ...]:
    layers, heads = int(config["n_layer"]), int(config["n_head"])
    head = int(config["n_embd"]) // heads

    def state(name: str, rows: int | str, slots: str) -> TensorSpec:
        return TensorSpec(name=name, dtype="float32", shape=(rows, layers, heads, slots, head), is_state=True)

    def plain(name: str, dtype: str, *shape: int | str) -> TensorSpec:
        return TensorSpec(name=name, dtype=dtype, shape=shape)

    inputs = (
        plain("token", "int64", "beams", "new"),
        plain("position", "int64", "new"),
        plain("is_token", "bool", "new"),  # false: padding
        plain("is_prompt", "bool", "prompt"),  # which slots of the prompt hold a token
        plain("source", "int64", "beams"),  # the beam of the last call that each beam goes on from
        state("prompt_key", 1, "prompt"),
        state("prompt_value", 1, "prompt"),
        state("key", "past_beams", "past"),
        state("value", "past_beams", "past"),
    )
    outputs = (
        plain("top_logprob", "float32", "beams", CANDIDATES),
        plain("top_token", "int64", "beams", CANDIDATES),
        state("next_key", "beams", "total"),  # total = past + new
        state("next_value", "beams", "total"),
    )
    return (NetworkSpec(name="model", inputs=inputs, outputs=outputs),)


class GptJ:
    """A sample is `input_ids` int64[tokens] of its prompt."""

    response = None
    is_ragged = True
    counts_prompt = True
    """Whether a beam's score counts the tokens of the prompt, as the reference's did; see beam_search.py."""

    def __init__(self, facts: ModelFacts) -> None:
        config = facts.config
        self.networks = _networks(config)
        self._facts = facts
        self._end_token = int(config["eos_token_id"])
        heads = int(config["n_head"])
        self._cache_shape = (int(config["n_layer"]), heads, 1, int(config["n_embd"]) // heads)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        # transformers' decode did so by default when the reference was made (up to 4.x): ROUGE-1, 2 and L do not change
        # by it, the number of characters does.
        return open_tokenizer(self._facts.folder, is_cleaned=True)

    def preprocess(self, raw: Sequence[Article]) -> Samples:
        """Return the tokens of each article's prompt, cut off after LONGEST_PROMPT."""
        prompts = [PROMPT.format(instruction=article.instruction, input=article.text) for article in raw]
        return [{"input_ids": np.array(row[:LONGEST_PROMPT], dtype=np.int64)} for row in self.encode(prompts)]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, whole."""
        return self._tokenizer.encode_plain(texts)

    def length(self, sample: Tensors) -> int:
        return len(sample["input_ids"])

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        """Return `input_ids` int64[batch, longest], the end token in front of short ones, and `token_count`[batch]."""
        counts = np.array([len(sample["input_ids"]) for sample in samples], dtype=np.int64)
        ids = np.full((len(samples), int(counts.max())), self._end_token, dtype=np.int64)
        for row, sample in zip(ids, samples, strict=True):
            row[len(row) - len(sample["input_ids"]) :] = sample["input_ids"]
        return {"input_ids": ids, "token_count": counts}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return the new tokens of each sample, int64[30 to 128]."""
        infer = networks["model"]
        ids = np.asarray(inputs["input_ids"], dtype=np.int64)
        counts = np.asarray(inputs["token_count"], dtype=np.int64)
        count, longest = ids.shape
        padding = longest - counts
        is_token = np.arange(longest) >= padding[:, None]
        rules = SearchRules(
            beams=BEAMS,
            min_tokens=MIN_TOKENS,
            max_tokens=MAX_TOKENS,
            end_token=self._end_token,
            prompt_tokens=longest if self.counts_prompt else None,
        )
        search = BeamSearch(count, rules)
        empty = np.zeros((count, 1, *self._cache_shape), dtype=np.float32)
        answer = infer(
            {
                "token": ids[:, None],
                "position": np.maximum(np.arange(longest) - padding[:, None], 0),
                "is_token": is_token,
                "is_prompt": np.zeros((count, 1), dtype=np.bool_),
                "source": np.zeros((count, 1), dtype=np.int64),
                **dict.fromkeys(("prompt_key", "prompt_value", "key", "value"), empty),
            }
        )
        prompt_key, prompt_value = answer["next_key"], answer["next_value"]
        is_prompt = np.concatenate((np.zeros((count, 1), dtype=np.bool_), is_token), axis=1)
        key: Any = empty
        value: Any = empty
        following = search.step(*_top(answer))
        said = 0
        while not search.is_done:
            # The first call's single beam is where all beams start from; its cache is the prompt's.
            answer = infer(
                {
                    "token": following.token[:, :, None],
                    "position": (counts + said)[:, None],
                    "is_token": np.ones((count, 1), dtype=np.bool_),
                    "is_prompt": is_prompt,
                    "source": following.source,
                    "prompt_key": prompt_key,
                    "prompt_value": prompt_value,
                    "key": key,
                    "value": value,
                }
            )
            key, value = answer["next_key"], answer["next_value"]
            following = search.step(*_top(answer))
            said += 1
        return search.answers()

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: CnnDmDataset) -> Score:
        """Return ROUGE against the data set's summaries, and the number of characters."""
        return rouge.score(responses, dataset.summaries, self._tokenizer.decode)


def _top(answer: Mapping[str, Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    return np.asarray(answer["top_logprob"], dtype=np.float32), np.asarray(answer["top_token"], dtype=np.int64)


def parameter_count(config: Mapping[str, Any]) -> int:
    """Return the number of weights: 6,050,882,784 for the full size."""
    width, layers, words = (int(config[key]) for key in ("n_embd", "n_layer", "vocab_size"))
    layer = 4 * width**2 + 8 * width**2 + 5 * width + 2 * width
    return layers * layer + 2 * words * width + words + 2 * width


def memory_bytes(facts: ModelFacts) -> int:
    """Return the bytes that weights and the caches of one sample of greatest length take."""
    config = facts.config
    size = _BYTES.get(facts.precision, 4)
    cached_tokens = LONGEST_PROMPT + 2 * BEAMS * MAX_TOKENS  # the beams' caches before and after a step
    cache = 2 * int(config["n_layer"]) * int(config["n_embd"]) * cached_tokens
    return size * (parameter_count(config) + cache)


def open_model(facts: ModelFacts) -> GptJ:
    required_config(facts, _SIZES, "gptj")
    return GptJ(facts)
