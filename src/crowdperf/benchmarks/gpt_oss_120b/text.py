"""gpt-oss-120b solves tasks; agrees with eval_mlperf_accuracy.py of language/gpt-oss-120b (mlcommons/inference) as far
as metrics/graders.py says."""

from collections.abc import Iterable
from functools import partial

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.datasets.tokenised import TokenisedDataset
from crowdperf.harness.metrics import exact_match
from crowdperf.harness.metrics.graders import HARMONY_GRADERS
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.harness.text.tokens import TokenModel

REPEATS = {"aime25": 8, "gpqa_diamond": 5, "livecodebench_v6": 3}
"""How often the accuracy data set asks each question (DATASET_REPEATS of the official script)."""


def score(responses: Iterable[tuple[int, bytes]], dataset: TokenisedDataset, tokenizer: Tokenizer) -> Score:
    """Return the share of right answers; special tokens are kept, because they mark the final part of an answer."""
    decode = partial(tokenizer.decode, with_special=True)
    return exact_match.score(
        responses, dataset.references, dataset.subsets, decode, graders=HARMONY_GRADERS, repeats=REPEATS
    )


def open_text(facts: ModelFacts) -> TokenModel:
    """Return the benchmark with the tokenizer in the model's folder."""
    return TokenModel(facts, score)
