"""The content of a request: the benchmark's sampling in the fields of OpenAI's API and in those that servers add. Pure.

Servers accept different fields: vLLM and SGLang ignore unknown ones, TensorRT-LLM refuses them with status 400
(`extra="forbid"` in tensorrt_llm/serve/openai_protocol.py, NVIDIA/TensorRT-LLM 0076e939). The probe finds out.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crowdperf.harness.text.engine import Prompt
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

try:
    import orjson
except ImportError:  # the same bytes, made slower
    orjson = None

TOKENS, TEXT, CHAT = "tokens", "text", "chat"
STREAM_OPTIONS, TEMPERATURE = "stream_options", "temperature"
PATHS = {TOKENS: "/completions", TEXT: "/completions", CHAT: "/chat/completions"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a request. is_needed: the answers do not match the benchmark's requirements without it."""

    name: str
    value: Json
    is_needed: bool = False


def fields_of(sampling: Sampling, form: str, *, is_own: bool = False) -> tuple[Field, ...]:
    """Return the fields of a request besides model, prompt and stream. is_own: of the user's own or generated prompts,
    whose answers may be drawn at the server's own temperature: no rule requires another.

    If the likeliest token is selected (temperature 0), fields that only change the draw are sent, but not needed.
    cache_prompt: llama.cpp would otherwise reuse keys and values of the slot's last prompt, which the rules forbid
    (ggml-org/llama.cpp tools/server/README.md, 25d5b0c5). The others: sources in answers.py.
    """
    draws = sampling.temperature > 0
    found = [
        Field(TEMPERATURE, sampling.temperature, is_needed=not is_own),
        Field("top_p", sampling.top_p, is_needed=draws and sampling.top_p < 1),
        Field(STREAM_OPTIONS, {"include_usage": True}),
        Field("min_tokens", sampling.min_tokens, is_needed=sampling.min_tokens > 1),
        Field("return_token_ids", True),
        Field("return_tokens", True),
        Field("cache_prompt", sampling.reuses_prefixes),
    ]
    if sampling.top_k > 0:
        found.append(Field("top_k", sampling.top_k, is_needed=draws))
    if sampling.seed is not None:
        found.append(Field("seed", sampling.seed, is_needed=draws))
    if sampling.is_end_ignored:
        found.append(Field("ignore_eos", True, is_needed=True))
    if sampling.keeps_special:  # vLLM's and SGLang's; the probe sees whether a server that gives text alone keeps them
        found.append(Field("skip_special_tokens", False))
        found.append(Field("spaces_between_special_tokens", False))
    if sampling.stop:
        found.append(Field("stop_token_ids", list(sampling.stop), is_needed=True))
    if form == TEXT:
        found.append(Field("add_special_tokens", False))
    return tuple(found)


def named_in(refusal: str, fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return the fields that a server's refusal names."""
    return tuple(one for one in fields if re.search(rf"\b{one.name}\b", refusal))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of requests. prompt: "tokens", "text" or "chat". limit: the name of the field for max_tokens.
    is_streamed: False requests whole answers, which have no first token."""

    prompt: str
    model: str
    fields: tuple[Field, ...]
    max_tokens: int
    limit: str = "max_tokens"
    is_streamed: bool = True

    @property
    def path(self) -> str:
        return PATHS[self.prompt]

    @property
    def sent_fields(self) -> tuple[Field, ...]:
        """The fields of a request: OpenAI's API refuses options of a stream in a request without one."""
        return tuple(one for one in self.fields if self.is_streamed or one.name != STREAM_OPTIONS)

    def without_prompt(self) -> dict[str, Json]:
        """Return the content of a request, but for the prompt."""
        content: dict[str, Json] = {"model": self.model, "stream": self.is_streamed, self.limit: self.max_tokens}
        for one in self.sent_fields:
            lowered = one.name == "min_tokens" and isinstance(one.value, int) and one.value > self.max_tokens
            content[one.name] = self.max_tokens if lowered else one.value
        return content


def prompt_json(prompt: Prompt, form: str) -> Json:
    """Return a prompt as JSON. Raises ValueError if it does not have that form."""
    if form == TOKENS and prompt.tokens is not None:
        return [int(one) for one in prompt.tokens]
    if form == TEXT and prompt.text is not None:
        return prompt.text
    if form == CHAT and prompt.messages is not None:
        return [dict(one) for one in prompt.messages]
    raise ValueError(f"the prompt has no form {form!r}")


def _numbers(values: list[int]) -> bytes:
    return orjson.dumps(values) if orjson is not None else b"[%s]" % ",".join(map(str, values)).encode()


class BodyMaker:
    """Makes the bytes of requests: everything but the prompt is written once."""

    def __init__(self, form: Form) -> None:
        self._whole_form = form
        self._form = form.prompt
        self._heads: dict[int | None, bytes] = {}

    def _head(self, max_tokens: int | None) -> bytes:
        """Return the beginning of the body for answers of that length, None for the usual one."""
        found = self._heads.get(max_tokens)
        if found is None:
            form = self._whole_form if max_tokens is None else replace(self._whole_form, max_tokens=max_tokens)
            found = json.dumps(form.without_prompt())[:-1].encode()
            found += b', "messages": ' if form.prompt == CHAT else b', "prompt": '
            self._heads[max_tokens] = found
        return found

    def make(self, prompt: Prompt) -> bytes:
        """Return the body of a request. Raises ValueError if the prompt does not have the form."""
        head = self._head(prompt.max_tokens)
        if self._form == TOKENS and prompt.tokens is not None:
            return b"%s%s}" % (head, _numbers(prompt.tokens.tolist()))
        return b"%s%s}" % (head, json.dumps(prompt_json(prompt, self._form)).encode())


def forms_of(prompt: Prompt, api: str | None) -> tuple[str, ...]:
    """Return the forms to try, the best first, empty if the API and the prompt cannot be combined."""
    found = []
    if api != "chat":
        found += [TOKENS] if prompt.tokens is not None else []
        found += [TEXT] if prompt.text is not None else []
    if api != "completions" and prompt.messages is not None:
        found.append(CHAT)
    return tuple(found)
