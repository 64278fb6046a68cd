"""Prompts of the user: the answers are measured, not scored. A response is the answer's text in UTF-8."""

from collections.abc import Iterable, Sequence

import numpy as np

from crowdperf.benchmarks.own_prompts.dataset import OwnPrompt, OwnPrompts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.text.engine import Answer, Prompt


class OwnText:
    """The prompts as they are. The server has the tokenizer and the chat template."""

    def prompts(self, raw: Sequence[OwnPrompt]) -> list[Prompt]:
        """Return the prompts, as tokens, or as messages and, for one message of the user, as text as well."""
        return list(raw)

    def response(self, answer: Answer) -> Array:
        """Return the text, uint8[n], contiguous, or the tokens of an answer without text."""
        if answer.text is None:
            return np.ascontiguousarray(answer.tokens, dtype=np.int32)
        return np.frombuffer(answer.text.encode("utf-8", "replace") or b" ", dtype=np.uint8)

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: OwnPrompts) -> Score:
        """Raise HarnessError: there is nothing to compare with."""
        raise HarnessError("prompts of the user have no reference answers", "omit --mode=accuracy")


def open_text(facts: ModelFacts) -> OwnText:
    return OwnText()
