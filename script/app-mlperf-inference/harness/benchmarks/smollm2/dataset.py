"""The data set smollm2: samples.jsonl, as the recipe get-dataset-smollm2 writes it, one sample on each line:

    {"messages": [{"role": "user", "content": "Who ...?"}], "text": "<|im_start|>...", "tokens": [1, 9690, ...],
     "answer": [504, 3575, ...]}

text: the messages in the model's chat template. tokens: the same, tokenised. answer: the tokens of the greedy float32
answer, its end token included.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.datasets.base import DatasetFacts, read_facts
from harness.errors import HarnessError
from harness.text.engine import Tokens

SAMPLES_FILE = "samples.jsonl"
_HINT = "make the data set again: cm run script --tags=get,dataset,smollm2 --renew"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """One prompt in every form, and the answer that is expected."""

    messages: tuple[Mapping[str, str], ...]
    text: str
    tokens: Tokens
    answer: Tokens


@dataclass(frozen=True, slots=True, eq=False)
class SmolLm2Dataset:
    """The prompts, in memory."""

    path: Path
    questions: tuple[Question, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        """Number of prompts."""
        return len(self.questions)

    @property
    def files(self) -> tuple[Path, ...]:
        """The list of prompts."""
        return (self.path,)

    @property
    def answers(self) -> tuple[Tokens, ...]:
        """The expected answers, by index."""
        return tuple(question.answer for question in self.questions)

    def load(self, indices: Sequence[int]) -> list[Question]:
        """Return the prompts of `indices`, in that order."""
        return [self.questions[index] for index in indices]


def _tokens(numbers: Any) -> Tokens:
    found = np.array(numbers)
    if found.ndim != 1 or found.dtype.kind != "i" or not len(found) or not 0 <= found.min() <= found.max() < 2**31:
        raise ValueError("tokens and answer must be lists of whole numbers from 0, at least one")
    return found.astype(np.int32)


def _question(row: Any) -> Question:
    messages = tuple({"role": str(one["role"]), "content": str(one["content"])} for one in row["messages"])
    return Question(
        messages=messages, text=str(row["text"]), tokens=_tokens(row["tokens"]), answer=_tokens(row["answer"])
    )


def open_dataset(folder: Path) -> SmolLm2Dataset:
    """Return the prompts of `folder`; raises HarnessError naming the first line that cannot be used."""
    path = folder / SAMPLES_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    questions = []
    for number, line in enumerate(lines, start=1):
        try:
            questions.append(_question(json.loads(line)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HarnessError(f"line {number} of {path} cannot be used: {error!r}", _HINT) from error
    if not questions:
        raise HarnessError(f"{path} holds no prompt", _HINT)
    return SmolLm2Dataset(path, tuple(questions), read_facts(folder))
