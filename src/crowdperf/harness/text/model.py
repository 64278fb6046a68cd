"""What a benchmark asks of an engine that answers prompts, and how its answers are scored.

`benchmarks/<name>/text.py` holds the members of TextModule; limits and sampling stand in the record (`generation`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.text.engine import Answer, Prompt


class TextModel(Protocol):
    """An opened benchmark."""

    def prompts(self, raw: Any) -> Sequence[Prompt]:
        """Return what raw samples of the data set ask. Untimed: only what the rules allow to be done before."""

    def response(self, answer: Answer) -> Array:
        """Return what LoadGen logs of an answer, contiguous: its tokens as int32[n] in most benchmarks."""

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: Any) -> Score:
        """Return the score. Every index of the data set comes exactly once, in the log's order."""


class TextModule(Protocol):
    """The members of a `text.py`."""

    def open_text(self, facts: ModelFacts) -> TextModel:
        """Return the benchmark with the tokenizer in `facts.folder`; raises HarnessError where it lacks something."""
