"""SmolLM2 answers short questions; scored against the greedy float32 answers of the same weights.

A response is the new tokens as int32, the end token included where the engine gives it.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from crowdperf.benchmarks.smollm2.dataset import Question, SmolLm2Dataset
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.metrics import rouge
from crowdperf.harness.text.engine import Answer, Prompt, Tokens
from crowdperf.harness.text.tokenizer import open_tokenizer

_END_TOKEN = 2  # <|im_end|>; servers leave it out


class SmolLm2:
    """The benchmark, with the tokenizer in the model's folder."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts = facts

    def prompts(self, raw: Sequence[Question]) -> list[Prompt]:
        return [Prompt(tokens=one.tokens, text=one.text, messages=one.messages, expected=one.answer) for one in raw]

    def response(self, answer: Answer) -> Array:
        """Return the answer's tokens, int32[n], contiguous."""
        return np.ascontiguousarray(answer.tokens, dtype=np.int32)

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: SmolLm2Dataset) -> Score:
        """Return "acc" (percent of answers equal to the reference token by token), "PREFIX" (percent of the reference's
        tokens before the first difference) and ROUGE."""
        given, expected, tokenizer = list(responses), dataset.answers, open_tokenizer(self._facts.folder)
        worded = rouge.score(
            given, [tokenizer.decode(one.tolist()) for one in expected], tokenizer.decode, dtype="int32"
        )
        pairs = [(_without_end(np.frombuffer(data, np.int32)), _without_end(expected[index])) for index, data in given]
        equal = sum(np.array_equal(answer, wanted) for answer, wanted in pairs)
        before = sum(common_prefix(answer, wanted) for answer, wanted in pairs)
        accuracy = 100.0 * equal / len(pairs)
        prefix = 100.0 * before / max(1, sum(len(wanted) for _, wanted in pairs))
        line = f"accuracy={accuracy:.3f}%, good={equal}, total={len(pairs)}, prefix={prefix:.3f}%"
        return Score(values={"acc": accuracy, "PREFIX": prefix, **worded.values}, line=f"{line}\n{worded.line}")


def common_prefix(answer: Tokens, expected: Tokens) -> int:
    shorter = min(len(answer), len(expected))
    differs = np.flatnonzero(answer[:shorter] != expected[:shorter])
    return int(differs[0]) if len(differs) else shorter


def _without_end(tokens: Tokens) -> Tokens:
    return tokens[:-1] if len(tokens) and tokens[-1] == _END_TOKEN else tokens


def open_text(facts: ModelFacts) -> SmolLm2:
    return SmolLm2(facts)
