"""The inputs of recipes that say how prompts are answered, and the key `text` of run.json that they make. Pure.

The API key of a server is never an input: `endpoint_key_variable` names the environment variable that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from crowdperf.kit.numbers import WHOLE, positive_number, whole_number
from crowdperf.kit.server_address import server_parts, without_login
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, model_of
from crowdperf.rules.names import unknown_text

URL, KEY_VARIABLE, TIMEOUT = "endpoint", "endpoint_key_variable", "request_timeout_s"
ENDPOINT_KEYS: Mapping[str, str] = MappingProxyType(
    {
        URL: "CM_MLPERF_ENDPOINT_URL",
        "endpoint_model": "CM_MLPERF_ENDPOINT_MODEL",
        "endpoint_api": "CM_MLPERF_ENDPOINT_API",
        KEY_VARIABLE: "CM_MLPERF_ENDPOINT_KEY_VARIABLE",
    }
)
"""Inputs of backends that ask a server of the user's, with their env keys."""

TEXT_KEYS: Mapping[str, str] = MappingProxyType(
    {
        **ENDPOINT_KEYS,
        "max_in_flight": "CM_MLPERF_MAX_IN_FLIGHT",
        "kv_cache_gb": "CM_MLPERF_KV_CACHE_GB",
        TIMEOUT: "CM_MLPERF_REQUEST_TIMEOUT_S",
    }
)
"""Those of all backends that answer prompts. For other backends TIMEOUT is how long nothing may be answered."""

SERVER_KEY = "CM_VLLM_SERVER_PYTHON"
"""The env key of what starts the server, for backends that start one; set by the recipe that installs it."""

_CHAT_MODELS = [one.name for one in RECORDS.values() if one.generation is not None and one.generation.has_messages]
WITH_MESSAGES = f"benchmarks with messages: {', '.join(_CHAT_MODELS)}"
"""What can be measured on a server that has chats only."""

APIS = ("completions", "chat")
"""The forms of OpenAI's API in which a server is asked."""

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
"""Where a server's clients look for a key where nothing is said."""

_Number = TypeVar("_Number", int, float)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _url_problem(text: str) -> str:
    parts = server_parts(text)
    if parts is None:
        return f"found {without_login(text)!r}; allowed: the URL of a server, such as http://HOST:8000/v1"
    if parts.username is not None or parts.password is not None:
        return "it holds a user or a password; name the variable that holds the key with --endpoint_key_variable"
    return f"found {text!r}; a URL without ? and #" if parts.query or parts.fragment else ""


class _Given:
    """The inputs that are given, each checked as it is taken."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.problems: dict[str, str] = {}

    def take(self, name: str, convert: Callable[[str], _Number | None], allowed: str) -> _Number | None:
        text = self._given.get(name, "")
        value = convert(text) if text else None
        if text and value is None:
            self.problems[name] = f"found {text!r}; allowed: {allowed}"
        return value

    def endpoint(self) -> dict[str, str | None] | None:
        given = {name: self._given.get(name) or None for name in ENDPOINT_KEYS}
        api, variable, url = given["endpoint_api"], given["endpoint_key_variable"], given[URL]
        if url is None:
            self.problems[URL] = "the backend asks a server: give its URL, http://HOST:PORT/v1"
        elif why := _url_problem(url):
            self.problems[URL] = why
        if api is not None and api not in APIS:
            self.problems["endpoint_api"] = unknown_text("API", api, APIS)
        if variable is not None and not _VARIABLE.fullmatch(variable):
            words = "it is not the name of an environment variable (it is not shown: it may be the key itself)"
            self.problems["endpoint_key_variable"] = words
        return {"url": url, "model": given["endpoint_model"], "api": api, "key_variable": variable}


def chat_problem(model: str, api: str) -> str:
    """Return why a benchmark cannot be asked as chats; empty where it can. api: the input endpoint_api."""
    if api != "chat" or has_messages(model):
        return ""
    return (
        f"found 'chat'; the prompts of {model} are tokens, with the chat template in them, which only the form "
        f"completions takes; {WITH_MESSAGES}"
    )


def has_messages(model: str) -> bool:
    """Return whether a benchmark can be asked as chats; true for a model that is not known."""
    record = RECORDS.get(model_of(model))
    return record is None or record.generation is None or record.generation.has_messages


def text_settings(
    given: Mapping[str, str], backend: str, server: str = ""
) -> tuple[dict[str, object] | None, dict[str, str]]:
    """Return `text` of run.json, None for a backend that answers no prompts, and what is wrong by an input's name.

    given: inputs of TEXT_KEYS; an empty text is as none. server: what SERVER_KEY has.
    """
    record = BACKENDS.get(backend)
    named = [name for name in TEXT_KEYS if given.get(name)]
    reader = _Given(given)
    timeout_s = reader.take(TIMEOUT, positive_number, "a number above 0")
    if record is None or not record.is_text:
        can = ", ".join(name for name, one in BACKENDS.items() if one.is_text)
        for name in (name for name in named if name != TIMEOUT):
            reader.problems[name] = f"found {given[name]!r}; it is for the backends that answer prompts: {can}"
        return None, reader.problems
    if not record.is_remote:
        for name in (name for name in named if name in ENDPOINT_KEYS):
            reader.problems[name] = f"backend {backend} asks no server of yours; --backend=endpoint does"
    kv_cache_gb = reader.take("kv_cache_gb", positive_number, "a number above 0")
    text: dict[str, object] = {
        "endpoint": reader.endpoint() if record.is_remote else None,
        "max_in_flight": reader.take("max_in_flight", whole_number, WHOLE),
        "kv_cache_bytes": None if kv_cache_gb is None else max(1, int(kv_cache_gb * 1e9)),
        "timeout_s": timeout_s,
        "server": server or None,
    }
    return text, reader.problems
