"""Prompts of the user: samples.jsonl, as the recipe get-dataset-own-prompts writes it, one prompt on each line:

    {"messages": [{"role": "user", "content": "Who ...?"}]}
    {"text": "Once upon a time"}
    {"tokens": [812, 4, 3067]}

Tokens are generated for a model of the user, whose vocabulary is known. dataset.json has the user's limits of the
answers:

    {"is_synthetic": false, "max_tokens": 128, "has_fixed_length": false, "longest_prompt": 512,
     "limits": {"ttft_ms": 500.0, "tpot_ms": 50.0}}

longest_prompt: tokens that no prompt exceeds, absent if a server decides.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdperf.benchmarks.own_prompts.record import RECORD
from crowdperf.harness.base.dataset import FACTS_FILE, SamplesOfFile, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.parts import SAMPLES_FILE
from crowdperf.harness.datasets.tokenised import samples_of_lines, token_array
from crowdperf.harness.text.engine import Prompt
from crowdperf.rules.record import Generation, TokenLimits

_HINT = "rebuild the prompts: cm run script --tags=get,dataset,own-prompts --renew"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnPrompt(Prompt):
    """One prompt. text: None for tokens, and for messages that are more than one of the user. messages: None for
    tokens. is_chat: the user gave messages."""

    is_chat: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OwnPrompts(SamplesOfFile[OwnPrompt]):
    """The prompts. generation: the record's, with the user's limits. slo: these limits, None if none were given.
    trace: the facts of the trace that the prompts are from (crowdperf/data/traces.py), None for others.
    conversations: their number, and that of their turns (requests), None for single prompts."""

    generation: Generation
    slo: TokenLimits | None
    trace: Mapping[str, Any] | None = None
    conversations: Mapping[str, Any] | None = None


def _prompt(row: Any) -> OwnPrompt:
    most = None if row.get("max_tokens") is None else int(row["max_tokens"])
    at_s = None if row.get("at_s") is None else float(row["at_s"])
    if "tokens" in row:
        return OwnPrompt(messages=None, text=None, tokens=token_array(row["tokens"]), max_tokens=most)
    if "text" in row:
        text = str(row["text"])
        return OwnPrompt(messages=({"role": "user", "content": text},), text=text, max_tokens=most, at_s=at_s)
    messages = tuple({"role": str(one["role"]), "content": str(one["content"])} for one in row["messages"])
    if "conversation" in row:
        place = int(row["conversation"]), int(row["turn"])
        return OwnPrompt(messages=messages, text=None, max_tokens=most, conversation=place[0], turn=place[1])
    is_single = len(messages) == 1 and messages[0]["role"] == "user"
    only = messages[0]["content"] if is_single else None
    return OwnPrompt(messages=messages, text=only, is_chat=True, max_tokens=most)


def _generation(facts: Mapping[str, Any]) -> Generation:
    """Return the record's generation with the user's limits. Raises KeyError, TypeError and ValueError."""
    usual = RECORD.generation
    assert usual is not None
    most, is_fixed = int(facts["max_tokens"]), facts["has_fixed_length"] is True
    sampling = replace(usual.sampling, max_tokens=most, min_tokens=most if is_fixed else 1, is_end_ignored=is_fixed)
    longest = facts.get("longest_prompt") or usual.longest_prompt
    if facts.get("conversations") or (facts.get("trace") or {}).get("has_prefixes"):
        sampling = replace(sampling, reuses_prefixes=True)
    limits = usual.server
    if facts["limits"] is not None and limits is not None:
        limits = TokenLimits(**facts["limits"], percentile=limits.percentile)  # LoadGen's number of queries is for it
    return replace(usual, sampling=sampling, server=limits, longest_prompt=int(longest))


def open_dataset(folder: Path) -> OwnPrompts:
    path = folder / SAMPLES_FILE
    samples: Sequence[OwnPrompt] = samples_of_lines(path, _prompt, _HINT)
    try:
        facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        generation = _generation(facts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"cannot read {folder / FACTS_FILE}: {error!r}", _HINT) from error
    return OwnPrompts(
        path, tuple(samples), read_facts(folder), generation, generation.server if facts["limits"] else None,
        facts.get("trace"), facts.get("conversations"),
    )  # fmt: skip
