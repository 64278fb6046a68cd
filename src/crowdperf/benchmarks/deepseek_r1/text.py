"""DeepSeek-R1 solves tasks; agrees with eval_accuracy.py of language/deepseek-r1 (mlcommons/inference) as far as
metrics/graders.py says."""

from collections.abc import Iterable
from functools import partial

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.datasets.tokenised import TokenisedDataset
from crowdperf.harness.metrics import exact_match
from crowdperf.harness.metrics.formulas import FormulaChecker
from crowdperf.harness.metrics.graders import GRADERS, Grader, grade_formula
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.harness.text.tokens import TokenModel


def score(responses: Iterable[tuple[int, bytes]], dataset: TokenisedDataset, tokenizer: Tokenizer) -> Score:
    """Return the share of right answers, and the tokens of an answer."""
    with FormulaChecker() as are_equal:
        graders: dict[str, Grader] = {**GRADERS, "math500": partial(grade_formula, are_equal=are_equal)}
        return exact_match.score(
            responses, dataset.references, dataset.subsets, tokenizer.decode, graders=graders, has_token_counts=True
        )


def open_text(facts: ModelFacts) -> TokenModel:
    """Return the benchmark with the tokenizer in the model's folder."""
    return TokenModel(facts, score)
