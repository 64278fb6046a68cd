"""Asks the server for one short streamed answer before a curve, so that what would spoil it is found in seconds.

What the client will ask for: POST /v1/chat/completions with `stream` (its api_type openai; src/inference_endpoint/
core/types.py of mlcommons/endpoints ea332753). Like it, this asks the server itself, whatever proxy the environment
names: the client opens plain connections to the URL's host and port (endpoint_client/http.py of 0947ef18, read on
2026-11-28).
"""

import http.client
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from crowdperf.call.model_server import START_HINT, connection_words, proxy_of
from crowdperf.kit.event_stream import DONE, EventStream, StreamError
from crowdperf.kit.server_address import server_parts, without_login
from crowdperf.rules.names import printable

CALL = "/v1/chat/completions"
_WAIT_S = 20.0
_TOKENS = 8
_MAX_BYTES = 1 << 20
_SHOWN = 300


class ProbeError(Exception):
    """The server cannot be measured as it is; the text says what it answered and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What one answer showed. notes: what makes a curve doubtful, not impossible."""

    first_token_s: float
    seconds: float
    pieces: int
    finish_reason: str
    notes: tuple[str, ...]


def root_of(url: str) -> str:
    """Return the URL as the client wants it, without /v1; raises ValueError for one that is not http."""
    parts = server_parts(url)
    if parts is None:
        raise ValueError(f"--url must be like http://HOST:8000, got {without_login(url)!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("--url must have no user name, password or query. Give an API key with --api_key_variable")
    return url.rstrip("/").removesuffix(CALL).removesuffix("/v1").rstrip("/")


@dataclass(slots=True)
class _Answer:
    """An answer as it comes. Times in s of time.monotonic()."""

    first_s: float = 0.0
    pieces: int = 0
    finish: str = ""
    tokens: int | None = None
    model: str = ""
    is_done: bool = False

    def take(self, event: Any) -> None:
        """Note one event of the stream; raises ProbeError for the server's own error."""
        if event == DONE:
            self.is_done = True
            return
        if "error" in event:
            raise ProbeError(f"the server broke the answer off: {printable(json.dumps(event['error'])[:_SHOWN])}")
        self.model = str(event.get("model") or self.model)
        usage = event.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self.tokens = usage["completion_tokens"]
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            if any(delta.get(key) for key in ("content", "reasoning_content", "reasoning")):
                self.first_s = self.first_s or time.monotonic()
                self.pieces += 1
            self.finish = str(choice.get("finish_reason") or self.finish)


def probe(url: str, model: str, key_variable: str = "", environment: Mapping[str, str] = os.environ) -> Probed:
    """Return what the server at `url` (see `root_of`) answers; raises ProbeError."""
    parts = urlsplit(url)
    has_tls = parts.scheme == "https"
    kind = http.client.HTTPSConnection if has_tls else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_WAIT_S)
    body = {
        "model": model, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": _TOKENS,
        "messages": [{"role": "user", "content": "The capital of France is"}],
    }  # fmt: skip
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
    if key_variable:
        if not environment.get(key_variable):
            raise ProbeError(f"the environment variable {key_variable} of --api_key_variable is not set")
        if re.search(r"[^\x21-\x7e]", environment[key_variable]):  # not shown: http.client would repeat the key
            raise ProbeError(
                f"the environment variable {key_variable} does not contain an API key (printable ASCII characters "
                "without spaces and line ends). Copy the key again"
            )
        headers["Authorization"] = f"Bearer {environment[key_variable]}"
    began_s = time.monotonic()
    try:
        connection.request("POST", parts.path + CALL, json.dumps(body), headers)
        answer = _read(connection.getresponse(), began_s + _WAIT_S)
    except (OSError, http.client.HTTPException, StreamError, UnicodeError) as error:
        raise ProbeError(f"no answer from {url}{CALL}: {_words(error, url)}") from None
    finally:
        connection.close()
    notes = ("the client that was read (0947ef18) speaks no TLS: give it an http:// URL",) if has_tls else ()
    return _judged(answer, model, began_s, (*notes, *_proxy_notes(url)))


def _words(error: Exception, url: str) -> str:
    """Return what went wrong, and what to try."""
    if isinstance(error, OSError | http.client.HTTPException):
        found, hint = connection_words(error, f"{url}/v1", _WAIT_S)
    else:
        found, hint = str(error) or type(error).__name__, START_HINT.format(f"{url}/v1/models")
    return printable(f"{found}. {hint}")


def _proxy_notes(url: str) -> tuple[str, ...]:
    if proxy_of(url) is None:
        return ()
    return ("the environment names a proxy for this URL: the client does not use it, and neither did this question",)


def _read(response: http.client.HTTPResponse, until_s: float) -> _Answer:
    if response.status != http.client.OK:
        said = printable(response.read(_SHOWN).decode("utf-8", "replace"))
        advice = {401: "give the key with --api_key_variable=NAME", 403: "give the key with --api_key_variable=NAME",
                  404: "check --url and --model"}.get(response.status, "check the server's log")  # fmt: skip
        raise ProbeError(f"the server answers {response.status} {response.reason}: {said}. {advice}")
    stream, answer = EventStream(_MAX_BYTES), _Answer()
    while received := response.read1(65536):
        _take_all(answer, stream.feed(received))
        if time.monotonic() > until_s:
            raise ProbeError(f"the answer of at most {_TOKENS} tokens was not complete after {_WAIT_S:g} s")
    _take_all(answer, stream.end())
    return answer


def _take_all(answer: _Answer, events: list[Any]) -> None:
    for event in events:
        try:
            answer.take(event)
        except (TypeError, AttributeError):
            shown = printable(json.dumps(event)[:_SHOWN])
            raise ProbeError(f"an event of the stream is not of OpenAI's form: {shown}") from None


def _judged(answer: _Answer, model: str, began_s: float, before: tuple[str, ...]) -> Probed:
    """Return what an answer shows; raises ProbeError where the client could not measure it."""
    if not answer.pieces:
        raise ProbeError("the answer has no streamed token. Serve a chat model with streaming")
    if not answer.finish:
        raise ProbeError("the answer ends without a finish_reason: the server, or a proxy before it, cut it off")
    notes = list(before)
    if answer.pieces == 1:
        notes.append("the answer came in one piece: a proxy that buffers makes time to first token meaningless")
    if answer.tokens is None:
        notes.append("the server reports no usage, so the client counts tokens with --tokenizer")
    if answer.model and answer.model != model:
        notes.append(f"the server answers as {printable(answer.model)!r}, not {model!r}")
    return Probed(
        first_token_s=answer.first_s - began_s,
        seconds=time.monotonic() - began_s,
        pieces=answer.pieces,
        finish_reason=answer.finish,
        notes=tuple(notes),
    )
