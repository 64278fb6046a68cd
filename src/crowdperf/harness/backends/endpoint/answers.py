"""Joins the events of one stream to an answer, and judges it. Pure.

Token ids are in different places: `choices[0].token_ids` (vLLM with return_token_ids; TensorRT-LLM), `tokens` of the
event or of its `__verbose` (llama.cpp). Sources: vllm-project/vllm vllm/entrypoints/openai/completion/protocol.py,
d5dba2d7; NVIDIA/TensorRT-LLM tensorrt_llm/serve/openai_protocol.py, 0076e939; ggml-org/llama.cpp
tools/server/README.md, 25d5b0c5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crowdperf.call.model_server import error_text
from crowdperf.harness.backends.endpoint.response_reader import WHOLE_EVENTS
from crowdperf.harness.text.engine import LATE_FAILURE, Finish

_FEW_PIECES = 16
"""A token may come in pieces (bytes of a character), so that pieces are limited less strictly than tokens."""
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "eos": Finish.STOP, "eos_token": Finish.STOP}


_MOST = 1 << 31
"""No count of tokens is larger: a number above it is none."""


class AnswerError(Exception):
    """An unusable answer. The text gives the reason in words for the user, and `kind` in a word or two by which
    failures are counted."""

    kind = "unusable answer"

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind or self.kind


class LateAnswer(AnswerError):
    """An answer that did not come, or did not come to its end, in the time that it had."""

    kind = LATE_FAILURE


def _whole(text: str) -> tuple[str, int]:
    """Return text with characters joined that were sent as two halves (UTF-16 surrogates), and how many stay broken."""
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return joined, joined.count("\ufffd") - text.count("\ufffd")
    return text, 0


@dataclass(slots=True)
class Usage:
    """The server's counts, None if it does not report them. reasoning_tokens: those of completion_tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def take(self, values: Any) -> None:
        """Read `usage` of an event. Later ones replace earlier ones."""
        if not isinstance(values, dict):
            return
        prompt, completion = values.get("prompt_tokens_details"), values.get("completion_tokens_details")
        found = {
            "prompt_tokens": values.get("prompt_tokens"),
            "completion_tokens": values.get("completion_tokens"),
            "cached_tokens": prompt.get("cached_tokens") if isinstance(prompt, dict) else None,
            "reasoning_tokens": completion.get("reasoning_tokens") if isinstance(completion, dict) else None,
        }
        for name, value in found.items():
            if type(value) is int and 0 <= value < _MOST:
                setattr(self, name, value)


def _ids(event: dict[str, Any], choice: dict[str, Any]) -> list[int]:
    """Return the token ids of an event. Raises ValueError for any other value in their place."""
    verbose = event.get("__verbose")
    found = choice.get("token_ids") or choice.get("tokens") or event.get("tokens")
    if not found and isinstance(verbose, dict):
        found = verbose.get("tokens")
    if not found:
        return []
    if not isinstance(found, list) or set(map(type, found)) != {int} or min(found) < 0 or max(found) >= _MOST:
        raise ValueError("token ids are not a list of numbers")
    return found


Piece: TypeAlias = "tuple[str, Sequence[int]]"
"""The short form of an event that adds text and token ids and nothing else."""


@dataclass(slots=True)
class Collector:
    """One answer as it arrives. most_tokens: the requested maximum. pieces: number of events with text or tokens.
    arrivals: when some of them were received, in s of time.monotonic(). identifier: `id` of the answer.
    has_other_ids: pieces had another id, so they may be of another answer."""

    most_tokens: int
    texts: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    finish: str | None = None
    pieces: int = 0
    skipped: int = 0
    is_done: bool = False
    has_reasoning: bool = False
    arrivals: list[float] = field(default_factory=list)
    identifier: str = ""
    has_other_ids: bool = False

    def take(self, event: dict[str, Any] | Piece) -> bool:
        """Read one event, or the short form of one. Return whether it is the first with text or tokens. Raises
        AnswerError for an error that the server sent and for more tokens than requested."""
        if isinstance(event, tuple):
            return self._take_piece(*event)
        try:
            return self._take(event)
        except (ValueError, TypeError, AttributeError):
            self.skipped += 1
            return False

    def _take(self, event: dict[str, Any]) -> bool:
        if event.get("error") or event.get("object") == "error":
            raise AnswerError(f"the server sent an error in the stream: {error_text(event)}", "error in the stream")
        self.usage.take(event.get("usage"))
        if isinstance(event.get("model"), str) and not self.model:
            self.model = event["model"] or None  # gateways' first event, with results of their filters, has no name
        choices = event.get("choices")
        if not choices:
            if choices is None and not event.get("usage"):
                self.skipped += 1
            return False
        choice = next((one for one in choices if one.get("index") in (None, 0)), None)
        if choice is None:
            return False  # of a second answer to the prompt, which is not asked for and does not count
        text, ids = self._text(choice), _ids(event, choice)
        if choice.get("finish_reason"):
            self.finish = str(choice["finish_reason"])
        if not text and not ids:
            return False
        self._note_identifier(event.get("id"))
        return self._take_piece(text, ids)

    def _take_piece(self, text: str, ids: Sequence[int]) -> bool:
        if text:
            self.texts.append(text)
        self.ids.extend(ids)
        self.pieces += 1
        if len(self.ids) > self.most_tokens or self.pieces > 2 * self.most_tokens + _FEW_PIECES:
            raise AnswerError(f"the server sent more than the {self.most_tokens} requested tokens (max_tokens)")
        return self.pieces == 1

    def _note_identifier(self, found: Any) -> None:
        if isinstance(found, str) and found:
            self.has_other_ids = self.has_other_ids or bool(self.identifier and found != self.identifier)
            self.identifier = self.identifier or found

    def _text(self, choice: dict[str, Any]) -> str:
        """Return the text of a choice: of a completion, or of a chat with its reasoning text."""
        if "delta" not in choice and "message" not in choice:
            text = choice.get("text") or ""
        else:
            delta = choice.get("delta") or choice.get("message") or {}
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            self.has_reasoning = self.has_reasoning or bool(thought)
            text = thought + (delta.get("content") or "")
        if not isinstance(text, str):
            raise ValueError("text is not a string")
        return text

    def take_alike(self, pieces: Sequence[Piece], arrivals: Sequence[float]) -> None:
        """Read short forms of events that were received one by one, each at its time."""
        self.texts += [text for text, _ in pieces if text]
        for _, ids in pieces:
            self.ids += ids
        self.pieces += len(pieces)
        self.arrivals += arrivals

    def text(self) -> str:
        """Return the whole text. Broken characters are counted as skipped."""
        text, broken = _whole("".join(self.texts))
        self.skipped += broken
        return text

    def ending(self, needs_done: bool) -> Finish:
        """Return the reason for the end of the answer. Raises AnswerError if the stream ended before the answer did."""
        if self.skipped and not self.pieces:
            raise AnswerError(f"none of the {self.skipped} pieces of the answer could be read")
        if self.finish is None and not self.pieces and not self.usage.completion_tokens:
            raise AnswerError("the server answered with an empty stream", "empty answer")
        if self.finish is None or (needs_done and not self.is_done):
            missing = "a finish_reason" if self.finish is None else "data: [DONE]"
            raise AnswerError(f"the stream ended without {missing}: the answer is cut off", "cut stream")
        finish = _FINISHES.get(self.finish)
        if finish is None:
            raise AnswerError(f"the server ended the answer with finish_reason {self.finish!r}; allowed: stop, length")
        return finish


_TEXT = re.compile(rb'"(?:text|content)": ?"')
_IDS = re.compile(rb'"(?:token_ids|tokens)": ?\[([0-9]+)\]')
_PROBE, _PROBE_ID = b"w~", 7
_TRIES = 4
"""So many events of a stream are tried as its shape: an event of another shape may come first."""
_MOST_FRAMES = 64
"""Sizes of chunks whose frame is kept for a stream, most of which have fewer: this project's choice."""


class ShapedEvents:
    """Reads the events of one stream. Most of them are the bytes of an earlier one with another text, and another token
    id: these are compared instead of parsed. parse: reads JSON as json.loads does.

    A shape is all that is before the text, between the text and the id, and after the id. It is used only if a probe
    with another text and id in these two places was parsed as an event with that text and id. Events whose text has
    escapes or characters that are not printable are parsed.
    """

    __slots__ = ("_after", "_before", "_between", "_frames", "_has_id", "_left", "_parse")

    def __init__(self, parse: Callable[[bytes], Any]) -> None:
        self._parse = parse
        self._left = _TRIES + 1  # the first event is never tried: nothing may delay the first token
        self._before = self._between = self._after = b""
        self._has_id = False
        self._frames: dict[int, tuple[bytes, bytes]] = {}

    def read(self, data: bytes) -> Any:
        """Return the event in the JSON `data`, or its short form. Raises what `parse` does."""
        before, after = self._before, self._after
        if before and data.startswith(before) and data.endswith(after, len(before)):
            piece = self._short(data[len(before) : len(data) - len(after)])
            if piece is not None:
                return piece
        event = self._parse(data)
        if self._left and isinstance(event, dict):
            self._left -= 1
            if self._left < _TRIES:
                self._learn(data)
        return event

    def in_chunk(self, part: bytes) -> Piece | None:
        """Return the short form of the one event in bytes that are one whole chunk of HTTP, None for any others."""
        size = len(part)
        head, tail = self._frames.get(size) or self._frame(part)
        if tail and part.startswith(head) and part.endswith(tail):
            return self._short(part[len(head) : size - len(tail)])
        return None

    def _frame(self, part: bytes) -> tuple[bytes, bytes]:
        """Return the bytes before the text and behind the id in a chunk of that size, and keep them. Both are empty if
        the part is not one chunk with one event of the shape."""
        start, size = part.find(b"\r\n", 0, 10), len(part)
        is_one_chunk = start > 0 and part[:start].lower() == b"%x" % (size - start - 4)
        if self._before and is_one_chunk and part.endswith(WHOLE_EVENTS):
            head = part[: start + 2] + b"data: " + self._before
            tail = self._after + part[-4 if part.endswith(WHOLE_EVENTS[0]) else -6 :]
            if part.startswith(head) and part.endswith(tail) and len(head) + len(tail) <= size:
                if len(self._frames) < _MOST_FRAMES:
                    self._frames[size] = head, tail
                return head, tail
        return b"", b""

    def _short(self, said: bytes) -> Piece | None:
        """Return the short form of an event from its text, and all up to its id."""
        ids: tuple[int, ...] = ()
        if self._has_id:
            said, _, digits = said.partition(self._between)
            if not digits.isdigit() or len(digits) > 9 or (digits[0] == 48 and len(digits) > 1):
                return None
            ids = (int(digits),)
        if b'"' in said or b"\\" in said:
            return None
        try:
            text = said.decode()
        except UnicodeDecodeError:
            return None
        return (text, ids) if text.isprintable() and (text or ids) else None

    def _learn(self, data: bytes) -> None:
        """Take the shape of an event, if it has one that can be trusted."""
        texts, ids = _TEXT.findall(data), _IDS.findall(data)
        place, number = _TEXT.search(data), _IDS.search(data)
        if place is None or len(texts) != 1 or len(ids) > 1:
            return
        end = data.find(b'"', place.end())
        if end < 0 or b"\\" in data[place.end() : end] or (number is not None and number.start() < end):
            return
        before = data[: place.end()]
        between, after = (b"", data[end:]) if number is None else (data[end : number.start(1)], data[number.end(1) :])
        probe = before + _PROBE + (b"" if number is None else between + str(_PROBE_ID).encode()) + after
        try:
            probed = self._parse(probe)
        except (ValueError, RecursionError):
            return
        if _is_piece(probed, [] if number is None else [_PROBE_ID]):
            self._before, self._between, self._after, self._has_id = before, between, after, number is not None
            self._frames.clear()


def _is_piece(event: Any, ids: list[int]) -> bool:
    """Whether an event is the probe's text and ids, and neither ends nor counts an answer."""
    found = Collector(_MOST)
    try:
        is_first = isinstance(event, dict) and found.take(event)
    except AnswerError:
        return False
    adds_only = is_first and found.skipped == 0 and found.finish is None and found.usage == Usage()
    return adds_only and found.texts == [_PROBE.decode()] and found.ids == ids and not found.has_reasoning
