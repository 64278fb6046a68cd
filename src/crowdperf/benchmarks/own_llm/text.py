"""A language model of the user: its answers are measured, not scored.

Generated prompts are tokens. The user's are texts: tokens of a Hugging Face folder's tokenizer, and the text itself
for servers, which tokenize it and have the chat template.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crowdperf.benchmarks.own_prompts.dataset import OwnPrompt
from crowdperf.benchmarks.own_prompts.text import OwnText
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.text.engine import Prompt
from crowdperf.harness.text.tokenizer import FILE, open_tokenizer


class OwnLanguageModel(OwnText):
    """The prompts as tokens too, if the model's folder has a tokenizer."""

    def __init__(self, facts: ModelFacts) -> None:
        has_tokenizer = facts.folder is not None and (facts.folder / FILE).is_file()
        self._tokenizer = open_tokenizer(facts.folder) if has_tokenizer else None

    def prompts(self, raw: Sequence[OwnPrompt]) -> list[Prompt]:
        """Return the prompts. Messages are messages only: what tokenizes them has to apply the chat template."""
        return [replace(prompt, text=None) if prompt.is_chat else self._tokenized(prompt) for prompt in raw]

    def _tokenized(self, prompt: Prompt) -> Prompt:
        if self._tokenizer is None or prompt.tokens is not None or prompt.text is None:
            return prompt
        return replace(prompt, tokens=np.array(self._tokenizer.encode(prompt.text), dtype=np.int32))


def open_text(facts: ModelFacts) -> OwnLanguageModel:
    """Return the prompts' model. Raises HarnessError for a tokenizer that cannot be read."""
    return OwnLanguageModel(facts)
