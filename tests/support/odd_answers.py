"""Streams of a server that are odd but come whole: what real servers and gateways send, and what none should.

`body` makes the bytes of one answer; names change its events, or its bytes, in the order in which they are given.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

END, MARK, PAD = 500, 501, 502
"""The end token, another special one and padding, which the stub's words do not have."""
SPECIAL = {END: "</s>", MARK: "<|channel|>", PAD: "<pad>"}
Event = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """An answer. word: the text of a token. keeps_special: special tokens are to be part of the text."""

    model: str
    tokens: list[int]
    prompt_tokens: int
    most: int
    word: Callable[[int], str]
    has_ids: bool
    is_chat: bool
    keeps_special: bool


def piece(said: Said, tokens: Sequence[int], text: str | None = None, finish: str | None = None) -> Event:
    """The event of some tokens."""
    shown = "".join(f" {SPECIAL.get(one) or said.word(one)}" for one in tokens) if text is None else text
    choice: Event = {"index": 0, "finish_reason": finish}
    choice |= {"delta": {"content": shown}} if said.is_chat else {"text": shown}
    if said.has_ids:
        choice["token_ids"] = list(tokens)
    return {"id": "cmpl-1", "object": "text_completion", "model": said.model, "choices": [choice]}


def usage(said: Said, **values: Any) -> Event:
    """The event of the counts."""
    counts = {"prompt_tokens": said.prompt_tokens, "completion_tokens": len(said.tokens), **values}
    return {"id": "cmpl-1", "model": said.model, "choices": [], "usage": counts}


def plain(said: Said) -> list[Event]:
    """The events of a well-behaved answer: one for each token, and the counts."""
    last = "length" if len(said.tokens) == said.most else "stop"
    pieces = [piece(said, [token]) for token in said.tokens]
    pieces[-1]["choices"][0]["finish_reason"] = last
    return [*pieces, usage(said)]


def _of_tokens(said: Said, tokens: list[int], finish: str, **values: Any) -> list[Event]:
    pieces = [piece(said, [token]) for token in tokens]
    pieces[-1]["choices"][0]["finish_reason"] = finish
    return [*pieces, usage(said, **{"completion_tokens": len(tokens), **values})]


def _together(events: list[Event], said: Said, size: int) -> list[Event]:
    groups = [said.tokens[start : start + size] for start in range(0, len(said.tokens), size)]
    pieces = [piece(said, group) for group in groups]
    pieces[-1]["choices"][0]["finish_reason"] = events[-2]["choices"][0]["finish_reason"]
    return [*pieces, events[-1]]


def _first_choices(events: list[Event], change: Callable[[Event, int], None]) -> list[Event]:
    for place, event in enumerate(events[:-1]):
        change(event["choices"][0], place)
    return events


def _wide(choice: Event, place: int) -> None:
    """A word of this server is four of the benchmark's."""
    key, holder = ("content", choice["delta"]) if "delta" in choice else ("text", choice)
    holder[key] = holder[key] * 4


def _other_text(choice: Event, place: int) -> None:
    choice["text"] = " w1"


def _thought(choice: Event, place: int) -> None:
    if place < 4:
        choice["delta"] = {"reasoning_content": choice["delta"]["content"], "content": None}


def _with_ids(events: list[Event], identifiers: Sequence[str]) -> list[Event]:
    return [{**event, "id": identifiers[place % len(identifiers)]} for place, event in enumerate(events)]


def _doubled(events: list[Event]) -> list[Event]:
    """Two answers in one stream: each event comes for a second choice as well."""
    both = []
    for event in events[:-1]:
        (choice,) = event["choices"]
        both += [event, {**event, "choices": [{**choice, "index": 1}]}]
    return [*both, events[-1]]


def _mixed(events: list[Event]) -> list[Event]:
    """Every other piece is of another answer's stream."""
    return [{**event, "id": f"cmpl-{1 + place % 2}"} for place, event in enumerate(events)]


def _marked(said: Said, is_kept: bool) -> list[Event]:
    """The answer begins with a special token, whose text is kept or not."""
    events = _of_tokens(said, [MARK, *said.tokens[1:]], "length")
    return events if is_kept else [piece(said, [MARK], ""), *events[1:]]


def _with_usage(events: list[Event], values: Any) -> list[Event]:
    return [{**event, "usage": values} for event in events[:-1]] + events[-1:]


EVENTS: dict[str, Callable[[list[Event], Said], list[Event]]] = {
    "plain": lambda events, said: events,
    "role": lambda events, said: [piece(said, [], ""), *events],
    "filter": lambda events, said: [
        {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        *events,
    ],
    "chunks": lambda events, said: _together(events, said, 4),
    "once": lambda events, said: _together(events, said, 1000),
    "usage_each": lambda events, said: _with_usage(events, {"completion_tokens": 1}),
    "usage_null": lambda events, said: _with_usage(events, None),
    "no_usage": lambda events, said: events[:-1],
    "high": lambda events, said: [*events[:-1], usage(said, completion_tokens=len(said.tokens) + 3)],
    "low": lambda events, said: [*events[:-1], usage(said, completion_tokens=len(said.tokens) - 3)],
    "fewer_by_2": lambda events, said: [*events[:-1], usage(said, completion_tokens=len(said.tokens) - 2)],
    "digits": lambda events, said: [
        *events[:-1],
        usage(said, prompt_tokens_details={"cached_tokens": int("9" * 4300)}),
    ],
    "text_count": lambda events, said: [*events[:-1], usage(said, completion_tokens=str(len(said.tokens)))],
    "negative": lambda events, said: [*events[:-1], usage(said, completion_tokens=-len(said.tokens))],
    "huge": lambda events, said: [*events[:-1], usage(said, completion_tokens=10**12)],
    "wide": lambda events, said: _first_choices(events, _wide),
    "padded": lambda events, said: _of_tokens(said, [*said.tokens[:5], *[END] * (said.most - 5)], "length"),
    "pad_token": lambda events, said: _of_tokens(said, [*said.tokens[:5], *[PAD] * (said.most - 5)], "length"),
    "goes_on": lambda events, said: _of_tokens(said, [*said.tokens[:5], END, *said.tokens[6:]], "length"),
    "ends": lambda events, said: _of_tokens(said, [*said.tokens[:5], END], "stop"),
    "silent_end": lambda events, said: _of_tokens(said, said.tokens[:5], "stop", completion_tokens=6),
    "early": lambda events, said: _of_tokens(said, said.tokens[:3], "length"),
    "many": lambda events, said: _of_tokens(said, [*said.tokens, 7], "length"),
    "large_id": lambda events, said: _first_choices(events, lambda choice, place: choice.update(token_ids=[2**31 - 1])),
    "text_id": lambda events, said: _first_choices(events, lambda choice, place: choice.update(token_ids=["7"])),
    "other_text": lambda events, said: _first_choices(events, _other_text),
    "two_choices": lambda events, said: _doubled(events),
    "mixed": lambda events, said: _mixed(events),
    "own_ids": lambda events, said: _with_ids(events, [f"cmpl-{place}" for place in range(len(events))]),
    "thoughts": lambda events, said: _first_choices(events, _thought),
    "kept_thoughts": lambda events, said: [
        *events[4:-1],
        usage(said, completion_tokens_details={"reasoning_tokens": 4}),
    ],
    "thoughts_alone": lambda events, said: [
        piece(said, [], "", "length"),
        usage(said, completion_tokens_details={"reasoning_tokens": len(said.tokens)}),
    ],
    "inline_thoughts": lambda events, said: [
        *events[:-1],
        usage(said, completion_tokens_details={"reasoning_tokens": 4}),
    ],
    "tool_null": lambda events, said: _first_choices(
        events, lambda choice, place: choice["delta"].update(tool_calls=None)
    ),
    "no_finish": lambda events, said: _first_choices(events, lambda choice, place: choice.update(finish_reason=None)),
    "filtered": lambda events, said: _of_tokens(said, said.tokens, "content_filter"),
    "tools": lambda events, said: _of_tokens(said, said.tokens, "tool_calls"),
    "eos": lambda events, said: _of_tokens(said, said.tokens, "eos_token"),
    "error": lambda events, said: [*events[:3], {"error": {"message": "engine out of memory"}}],
    "null_model": lambda events, said: [{**event, "model": None} for event in events],
    "dated": lambda events, said: [{**event, "model": f"{said.model}-2026-08-01"} for event in events],
    "prefixed": lambda events, said: [{**event, "model": f"org/{said.model}"} for event in events],
    "special": lambda events, said: _marked(said, said.keeps_special),
    "special_lost": lambda events, said: _marked(said, False),
    "unknown": lambda events, said: [{**event, "created": 1, "x": {"y": [1]}} for event in events],
}


def _lines(events: Sequence[Event]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


PING = b'event: ping\ndata: {"type": "ping"}\n\n'
BYTES: dict[str, Callable[[bytes], bytes]] = {
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "cr": lambda data: data.replace(b"\n", b"\r"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "no_blank": lambda data: data.replace(b"data: ", b"data:"),
    "comments": lambda data: data.replace(b"data: ", b": keep-alive\n\ndata: "),
    "pings": lambda data: PING + data.replace(b"\n\n", b"\n\n" + PING, 2),
    "fields": lambda data: data.replace(b"data: ", b"event: message\nid: 7\nretry: 3000\ndata: "),
    "lines": lambda data: data.replace(b', "choices"', b',\ndata:  "choices"'),
    "behind": lambda data: data + b'data: {"choices": [{"index": 0, "text": " w1 w1", "token_ids": [1, 1]}]}\n\n',
    "no_done": lambda data: data.replace(b"data: [DONE]\n\n", b""),
    "empty_data": lambda data: b"data: \n\n" + data,
}


def body(said: Said, names: Sequence[str]) -> bytes:
    """The bytes of an answer, changed as `names` say."""
    events = plain(said)
    for name in names:
        events = EVENTS[name](events, said) if name in EVENTS else events
    data = _lines(events)
    for name in names:
        data = BYTES[name](data) if name in BYTES else data
    return data
