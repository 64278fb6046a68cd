"""Llama 3.1 8B summarises news; agrees with evaluation.py of language/llama3.1-8b (mlcommons/inference)."""

from collections.abc import Iterable

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.datasets.tokenised import TokenisedDataset
from crowdperf.harness.metrics import rouge
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.harness.text.tokens import TokenModel


def score(responses: Iterable[tuple[int, bytes]], dataset: TokenisedDataset, tokenizer: Tokenizer) -> Score:
    """Return ROUGE against the data set's summaries, and the number of characters."""
    return rouge.score(responses, dataset.references, tokenizer.decode, dtype="int32")


def open_text(facts: ModelFacts) -> TokenModel:
    """Return the benchmark with the tokenizer in the model's folder."""
    return TokenModel(facts, score)
