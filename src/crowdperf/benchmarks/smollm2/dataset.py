"""The data set smollm2: samples.jsonl, as the recipe get-dataset-smollm2 writes it, one sample on each line:

    {"messages": [{"role": "user", "content": "Who ...?"}], "text": "<|im_start|>...", "tokens": [1, 9690, ...],
     "answer": [504, 3575, ...]}

text: the messages in the model's chat template. tokens: the same, tokenised. answer: the tokens of the greedy float32
answer, its end token included; absent with _prompts, which is enough for a performance run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.dataset import SamplesOfFile, read_facts, require_answers
from crowdperf.harness.datasets.parts import SAMPLES_FILE
from crowdperf.harness.datasets.tokenised import samples_of_lines, token_array
from crowdperf.harness.text.engine import Tokens

_HINT = "rebuild the data set: cm run script --tags=get,dataset,smollm2 --renew"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """One prompt in every form, and the answer that is expected; None where the data set has prompts only."""

    messages: tuple[Mapping[str, str], ...]
    text: str
    tokens: Tokens
    answer: Tokens | None


class SmolLm2Dataset(SamplesOfFile[Question]):
    @property
    def answers(self) -> tuple[Tokens, ...]:
        """The expected answers, by index; raises HarnessError where the data set has prompts only."""
        require_answers(self, "get,dataset,smollm2")
        return tuple(question.answer for question in self.samples if question.answer is not None)

    @property
    def without_answers(self) -> int:
        return sum(question.answer is None for question in self.samples)


def _question(row: Any) -> Question:
    messages = tuple({"role": str(one["role"]), "content": str(one["content"])} for one in row["messages"])
    answer = row.get("answer")
    return Question(
        messages=messages, text=str(row["text"]), tokens=token_array(row["tokens"]),
        answer=None if answer is None else token_array(answer),
    )  # fmt: skip


def open_dataset(folder: Path) -> SmolLm2Dataset:
    path = folder / SAMPLES_FILE
    return SmolLm2Dataset(path, samples_of_lines(path, _question, _HINT), read_facts(folder))
