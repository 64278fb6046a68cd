"""Traces of requests: when each arrived, how long its prompt and its answer were. Pure but for reading the file.

Mooncake   one JSON object per line: {"timestamp": ms, "input_length": N, "output_length": N, "hash_ids": [0, 1, ...]}.
           A hash id is one block of 512 tokens, and equal ids at the beginning are a common prefix (kvcache-ai/Mooncake
           FAST25-release/traces, read 2026-11-28)
Azure      CSV with the columns TIMESTAMP (2023-11-16 18:17:03.9799600), ContextTokens, GeneratedTokens
           (Azure/AzurePublicDataset AzureLLMInferenceDataset2023.md and 2024.md, read 2026-11-28)
"""

import csv
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from crowdperf.data.errors import DataError
from crowdperf.data.given_prompts import WORDS
from crowdperf.kit.text_documents import given_text, numbered_lines

FORM = (
    'JSON lines of Mooncake, {"timestamp": 0, "input_length": 512, "output_length": 64, "hash_ids": [0]}, or CSV of '
    "Azure, TIMESTAMP,ContextTokens,GeneratedTokens"
)
BLOCK_TOKENS = 512
MIN_TOKENS = 2
"""Answers are at least this long: LoadGen counts a shorter one as an error."""
MAX_TOKENS_IN = 20_000_000
"""Of all prompts together, about 110 MB of text, since all are in memory: this project's choice."""
_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request. at_s: after the first one. blocks: ids of the blocks of its prompt, empty without prefixes."""

    at_s: float
    tokens_in: int
    tokens_out: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The requests of a file in the order of their arrival. form: mooncake or azure."""

    form: str
    arrivals: tuple[Arrival, ...]

    def facts(self) -> dict[str, Any]:
        """Return what dataset.json and results have of it."""
        times = [one.at_s for one in self.arrivals]
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        return {
            "form": self.form,
            "requests": len(times),
            "duration_s": times[-1],
            "longest_gap_s": max(gaps, default=0.0),
            "has_prefixes": any(one.blocks for one in self.arrivals),
        }


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)


def _whole(values: Mapping[str, Any], name: str) -> int:
    found = values.get(name)
    try:
        number = int(found) if isinstance(found, str) else found
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number < _LARGEST:
        raise ValueError(f"{name} is {_shown(found)}; allowed: a whole number from 1")
    return number


def _mooncake(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, Arrival]]:
    for number, line in lines:
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError(f"found {type(values).__name__}, not an object")
            at_ms, blocks = values.get("timestamp"), values.get("hash_ids", [])
            if not isinstance(at_ms, int | float) or isinstance(at_ms, bool) or not 0 <= at_ms < _LARGEST:
                raise ValueError(f"timestamp is {_shown(at_ms)}; allowed: milliseconds from 0")
            if not isinstance(blocks, list) or not all(type(one) is int and one >= 0 for one in blocks):
                raise ValueError("hash_ids is not a list of whole numbers from 0")
            lengths = (_whole(values, "input_length"), _whole(values, "output_length"))
        except (ValueError, RecursionError) as error:
            raise _LineProblem(number, str(error)) from None
        yield number, Arrival(at_ms / 1000.0, *lengths, tuple(blocks))


def _azure_time_s(text: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"TIMESTAMP is {text!r}; allowed: such as 2023-11-16 18:17:03.979")
    day = datetime.fromisoformat(f"{found[1]} {found[2]}")  # seven digits after the point are too many for it
    return (day - datetime(1970, 1, 1)).total_seconds() + float(found[3] or 0.0)


def _azure(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, Arrival]]:
    names = _columns(lines[0][1])
    rows = csv.DictReader((line for _, line in lines[1:]), names, restval="", skipinitialspace=True)
    for row in rows:
        number = lines[rows.line_num][0]
        try:
            at_s = _azure_time_s(row["TIMESTAMP"])
            lengths = (_whole(row, "ContextTokens"), _whole(row, "GeneratedTokens"))
        except ValueError as error:
            raise _LineProblem(number, str(error)) from None
        yield number, Arrival(at_s, *lengths)


def _columns(heading: str) -> list[str]:
    return [one.strip() for one in heading.split(",")]


class _LineProblem(Exception):
    """A line that cannot be read."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")


def read_trace(path: Path) -> Trace:
    """Return a trace. Raises DataError naming the first wrong line."""
    try:
        text = given_text(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"--trace: cannot read {path}: {reason}", f"give a file with {FORM}") from error
    lines = numbered_lines(text)
    place, first = lines[0] if lines else (0, "")
    is_azure = set(_AZURE) <= set(_columns(first))
    if first and not is_azure and not first.lstrip().startswith("{"):
        raise DataError(f"--trace: {path}, line {place}: found {first[:60]!r}", f"expected {FORM}")
    try:
        found = [one for _, one in (_azure if is_azure else _mooncake)(lines)]
    except (_LineProblem, csv.Error) as error:
        raise DataError(f"--trace: {path}, {error}", f"expected {FORM}") from error
    if not found:
        raise DataError(f"--trace: {path} has no requests", f"expected {FORM}")
    total = sum(one.tokens_in for one in found)
    if total > MAX_TOKENS_IN:
        hint = f"keep its beginning: head -n {max(2, len(found) * MAX_TOKENS_IN // total)} {path.name} > part"
        raise DataError(f"--trace: {path} has {total:,} input tokens; allowed: {MAX_TOKENS_IN:,}", hint)
    start_s = min(one.at_s for one in found)
    arrivals = [Arrival(round(one.at_s - start_s, 6), one.tokens_in, one.tokens_out, one.blocks) for one in found]
    return Trace(form="azure" if is_azure else "mooncake", arrivals=tuple(sorted(arrivals, key=lambda one: one.at_s)))


def _block(name: object) -> list[str]:
    return random.Random(str(name)).choices(WORDS, k=BLOCK_TOKENS)


def trace_rows(trace: Trace, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the requests as rows of samples.jsonl. Prompts are words drawn from a seed. Those of a block are the same
    in every prompt that has it, so that prompts share prefixes exactly where those of the trace do."""
    for place, one in enumerate(trace.arrivals):
        words: list[str] = []
        for block in one.blocks:
            words += _block(f"{seed} block {block}")[: max(0, one.tokens_in - len(words))]
        own = random.Random(f"{seed} request {place}")
        words += own.choices(WORDS, k=one.tokens_in - len(words))
        yield {"text": " ".join(words), "at_s": one.at_s, "max_tokens": max(MIN_TOKENS, one.tokens_out)}
