"""Benchmarks that ask with token ids and answer with token ids: what MLPerf's language models have in common. They
differ in their data and in how answers are scored.

A response is the new tokens as int32, the end token included where the engine gives it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.datasets.tokenised import Sample, TokenisedDataset
from crowdperf.harness.text.engine import Answer, Prompt
from crowdperf.harness.text.tokenizer import Tokenizer, open_tokenizer

Scorer = Callable[[Iterable[tuple[int, bytes]], TokenisedDataset, Tokenizer], Score]
"""Scores responses, int32[n] each, by the index of their sample."""


class TokenModel:
    """A benchmark of text.engine's prompts. Its tokenizer is opened when it is first needed: a run whose samples come
    as tokens needs none."""

    def __init__(self, facts: ModelFacts, scorer: Scorer) -> None:
        self._facts = facts
        self._scorer = scorer

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self._facts.folder)

    def prompts(self, raw: Sequence[Sample]) -> list[Prompt]:
        """Return the prompts of samples: with their tokens, and as text where the data set has it."""
        return [self._prompt(sample) for sample in raw]

    def _prompt(self, sample: Sample) -> Prompt:
        tokens = sample.tokens
        if tokens is None:
            tokens = np.array(self._tokenizer.encode(sample.text or ""), dtype=np.int32)
        expected = None if sample.answer is None else np.array(self._tokenizer.encode(sample.answer), dtype=np.int32)
        return Prompt(tokens=tokens, text=sample.text, expected=expected)

    def response(self, answer: Answer) -> Array:
        """Return the answer's tokens, int32[n], contiguous."""
        return np.ascontiguousarray(answer.tokens, dtype=np.int32)

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: TokenisedDataset) -> Score:
        return self._scorer(responses, dataset, self._tokenizer)
