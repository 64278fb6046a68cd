"""Prompts that a user gives or describes, and the limits for their answers. Pure but for reading the file."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from crowdperf.data.errors import DataError
from crowdperf.kit.text_documents import given_text, numbered_lines

PROMPTS_FORM = '{"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]} on each line'
CONVERSATIONS_FORM = (
    '{"turns": ["...", "..."]} or {"messages": [{"role": "user", ...}, {"role": "user", ...}]} on each line'
)
Row = TypeVar("Row")
MOST_TOKENS = 10_000_000
"""The longest prompt or answer that is generated: this project's choice."""
_LARGEST_BYTES = 1 << 30
"""Of a file of prompts, since all are in memory: this project's choice."""
_ROLES = ("system", "user", "assistant", "developer", "tool")
_LIMIT = re.compile(r"(ttft|tpot)\s*[:=]\s*(\d+(?:\.\d+)?)\s*(ms|s)")
_SLO_FORM = "ttft:500ms,tpot:50ms"
WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school",
    "state", "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week",
    "company", "system", "program", "question", "work", "government", "number", "night", "point", "home",
    "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right", "study", "book",
    "eye", "job", "word", "business", "issue", "side", "kind", "head", "house", "service", "friend", "father",
    "power", "hour", "game", "line", "end", "member", "law",
)  # fmt: skip
"""Frequent English nouns, most of them one token in the tokenizers of language models. This project's choice."""


def read_prompts(path: Path) -> list[dict[str, Any]]:
    """Return the prompts of a JSONL file as rows of samples.jsonl. Raises DataError naming the first wrong line."""
    return _read(path, _row, PROMPTS_FORM)


def read_conversations(path: Path) -> list[dict[str, Any]]:
    """Return the turns of the conversations of a JSONL file as rows of samples.jsonl: each has its own message, the
    first one also those of the system. Answers in the file are left out, since the server gives its own. Raises
    DataError naming the first wrong line, and for a file without a second turn."""
    found = _read(path, _turns, CONVERSATIONS_FORM)
    if all(len(turns) == 1 for turns in found):
        raise DataError(f"--conversations: {path} has no conversation of several turns", "omit --conversations")
    return [
        {**row, "conversation": place, "turn": number}
        for place, turns in enumerate(found)
        for number, row in enumerate(turns)
    ]


def _turns(values: Any) -> list[dict[str, Any]]:
    """Return the turns of a line. Raises ValueError."""
    if isinstance(values, dict) and "turns" in values:
        turns = values["turns"]
        if not isinstance(turns, list) or not turns or not all(isinstance(one, str) and one for one in turns):
            raise ValueError("turns is not a list of texts")
        values = {**values, "messages": [{"role": "user", "content": one} for one in turns]}
    row = _row(values)
    more = {name: row[name] for name in ("max_tokens",) if name in row}
    messages = row.get("messages") or [{"role": "user", "content": row["text"]}]
    before, found = [one for one in messages if one["role"] in ("system", "developer")], []
    for one in messages:
        if one["role"] == "user":
            found.append({"messages": [*before, one], **more})
            before = []
    if not found:
        raise ValueError("no message of the user")
    return found


def _read(path: Path, row_of: Callable[[Any], Row], form: str) -> list[Row]:
    """Return what `row_of` makes of each line. Raises DataError naming the first wrong line."""
    try:
        lines = numbered_lines(given_text(path, _LARGEST_BYTES))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"--prompts: cannot read {path}: {reason}", f"give a file with {form}") from error
    rows = []
    for number, line in lines:
        try:
            rows.append(row_of(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise DataError(f"--prompts: {path}, line {number}: {error}", f"expected {form}") from error
    if not rows:
        raise DataError(f"--prompts: {path} has no prompts", f"expected {form}")
    return rows


def _row(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ValueError(f"found {type(values).__name__}, not an object")
    most = values.get("max_tokens")
    if most is not None and (type(most) is not int or most < 2):
        raise ValueError(f"max_tokens is {most!r}; allowed: a whole number from 2")
    more = {} if most is None else {"max_tokens": most}
    if "turns" in values and "messages" not in values:
        raise ValueError("it has turns: add --conversations=yes")
    text = values.get("prompt", values.get("text"))
    if isinstance(text, str) and text:
        return {"text": _whole_characters(text), **more}
    messages = values.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError(f"no prompt and no messages among {', '.join(values) or 'no keys'}")
    for place, one in enumerate(messages):
        if not isinstance(one, dict) or one.get("role") not in _ROLES or not isinstance(one.get("content"), str):
            raise ValueError(f"message {place + 1} has no role of {', '.join(_ROLES)} or no content as text")
    said = [{"role": one["role"], "content": _whole_characters(one["content"])} for one in messages]
    return {"messages": said, **more}


def _whole_characters(text: str) -> str:
    """Return the text. Raises ValueError for half of a surrogate pair, which JSON can have but no server reads."""
    if half := re.search(r"[\ud800-\udfff]", text):
        raise ValueError(f"the text has \\u{ord(half[0]):04x}, half of a character")
    return text


def parse_lengths(text: str, name: str = "input_tokens", least: int = 1) -> tuple[float, float]:
    """Return mean and standard deviation, in words or tokens, of `N` or `N,STDDEV`. Raises DataError for another
    form of the input `name`."""
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not least <= numbers[0] <= MOST_TOKENS or not 0 <= numbers[-1] <= MOST_TOKENS:
        allowed = f"N, or N,STDDEV, with N from {least} to {MOST_TOKENS}, such as 512,64"
        raise DataError(f"--{name}: found {text!r}", f"allowed: {allowed}")
    return numbers[0], numbers[1] if len(numbers) == 2 else 0.0


def generated_lengths(mean: float, deviation: float, count: int, seed: int, least: int = 1) -> list[int]:
    """Return the lengths of the prompts that generated_rows makes of the same values, or of answers to them."""
    return _lengths(random.Random(seed), mean, deviation, count, least)


def _lengths(draw: random.Random, mean: float, deviation: float, count: int, least: int = 1) -> list[int]:
    return [max(least, round(draw.gauss(mean, deviation))) for _ in range(count)]


def generated_rows(
    mean: float, deviation: float, count: int, seed: int, tokens: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Return `count` prompts drawn from a seed, as rows of samples.jsonl: of `tokens`, or of words where there are
    none. Their beginnings differ, so that a cache of prefixes helps no prompt."""
    draw = random.Random(seed)
    lengths = _lengths(draw, mean, deviation, count)
    if tokens:
        return [{"tokens": draw.choices(tokens, k=length)} for length in lengths]
    return [{"text": " ".join(draw.choices(WORDS, k=length))} for length in lengths]


TOKENIZER_FILE = "tokenizer.json"


def tokenizer_file(path: Path) -> Path:
    """Return the tokenizer.json that a --tokenizer is or contains. Raises DataError for any other file or folder."""
    file = path / TOKENIZER_FILE if path.is_dir() else path
    hint = f"give the {TOKENIZER_FILE} of the served model, as on Hugging Face, or the folder with it"
    if file.name != TOKENIZER_FILE:
        raise DataError(f"--tokenizer: found {path}; allowed: a file {TOKENIZER_FILE}, or a folder with one", hint)
    try:
        content = json.loads(given_text(file))
    except FileNotFoundError:
        raise DataError(f"--tokenizer: {path} has no {TOKENIZER_FILE}", hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"--tokenizer: cannot read {file}: {error}", hint) from error
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise DataError(f"--tokenizer: {file} is not a tokenizer: it has no object 'model'", hint)
    return file


def parse_slo(text: str) -> dict[str, float] | None:
    """Return the limits of `ttft:500ms,tpot:50ms` as dataset.json has them, None for none. Raises DataError."""
    if not text:
        return None
    limits: dict[str, float] = {}
    for part in text.split(","):
        found = _LIMIT.fullmatch(part.strip())
        name = f"{found[1]}_ms" if found else ""
        value = float(found[2]) * (1000.0 if found[3] == "s" else 1.0) if found else 0.0
        if value <= 0 or name in limits:
            raise DataError(f"--slo: found {text!r}", f"allowed: {_SLO_FORM}, each once, above 0")
        limits[name] = value
    if len(limits) != 2:
        raise DataError(f"--slo: found {text!r}", f"both limits are needed: {_SLO_FORM}")
    return limits
