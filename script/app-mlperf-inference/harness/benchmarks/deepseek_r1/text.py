"""DeepSeek-R1 solves tasks; agrees with eval_accuracy.py of language/deepseek-r1 (mlcommons/inference) as far as
metrics/graders.py says."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from harness.datasets.tokenised import TokenisedDataset
from harness.metrics import exact_match
from harness.metrics.formulas import FormulaChecker
from harness.metrics.graders import GRADERS, Grader, grade_formula
from harness.metrics.score import Score
from harness.modelfacts import ModelFacts
from harness.text.tokenizer import Tokenizer
from harness.text.tokens import TokenModel


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
