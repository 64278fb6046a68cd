"""The inputs that say how prompts are answered, and the key `text` of run.json that they become. Pure.

The API key of a server is never an input: `endpoint_key_variable` is the environment variable that has it. A run
that asks a server without `endpoint` uses OPENAI_BASE_URL, as for OpenAI's own Python client
(src/openai/_client.py of openai-python 02cf7cdb, read November 2026).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from crowdperf.kit.server_address import server_parts
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, model_of

URL, KEY_VARIABLE, TIMEOUT = "endpoint", "endpoint_key_variable", "request_timeout_s"
SERVER_KEY = "CM_VLLM_SERVER_PYTHON"
"""The env key of what starts the server, for backends that start one; set by the recipe that installs it."""

_CHAT_MODELS = [one.name for one in RECORDS.values() if one.generation is not None and one.generation.has_messages]
WITH_MESSAGES = f"benchmarks with chat messages: {', '.join(_CHAT_MODELS)}"
"""What can be measured on a server that has chats only."""

APIS = ("completions", "chat")
"""The forms of OpenAI's API in which a server is asked."""

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
"""The variable in which a server's clients look for a key by default."""

DEFAULT_URL_VARIABLE = "OPENAI_BASE_URL"
"""The variable in which they look for the server's URL, up to and with /v1."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """The inputs of a call by their names, None for one that is not given. The first five are those of backends that
    ask a server of the user's. client_processes: those that ask it.
    request_timeout_s: for backends without prompts, how long nothing may be answered."""

    endpoint: str | None = None
    endpoint_model: str | None = None
    endpoint_api: str | None = None
    endpoint_key_variable: str | None = None
    client_processes: int | None = None
    max_in_flight: int | None = None
    kv_cache_gb: float | None = None
    request_timeout_s: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PromptSettings:
        """Return the settings in the typed values of a call."""
        return cls(**{name: values[name] for name in PROMPT_INPUTS})

    def with_default_server(self, backend: str, environment: Mapping[str, str] = os.environ) -> PromptSettings:
        """Return the settings with the server of DEFAULT_URL_VARIABLE, for a backend that asks one and none given."""
        record, url = BACKENDS.get(backend), environment.get(DEFAULT_URL_VARIABLE, "").strip()
        if record is None or not record.is_remote or self.endpoint is not None or not url:
            return self
        return replace(self, endpoint=url)

    def problems(self, backend: str) -> dict[str, str]:
        """Return what is wrong with the settings for a backend, by the name of the input."""
        record = BACKENDS.get(backend)
        named = [name for name in PROMPT_INPUTS if getattr(self, name) is not None]
        if record is None or not record.is_text:
            can = ", ".join(name for name, one in BACKENDS.items() if one.is_text)
            words = f"only for backends that answer prompts: {can}"
            return {name: f"found {str(getattr(self, name))!r}, {words}" for name in named if name != TIMEOUT}
        if record.is_remote:
            return self._endpoint_problems()
        words = f"only applies to --backend=endpoint, not to {backend!r}"
        return {name: words for name in named if name in ENDPOINT_INPUTS}

    def _endpoint_problems(self) -> dict[str, str]:
        found = {}
        if self.endpoint is None:
            found[URL] = f"the backend needs a server: give its URL, http://HOST:PORT/v1, or set {DEFAULT_URL_VARIABLE}"
        elif why := _url_problem(self.endpoint):
            found[URL] = why
        if self.endpoint_key_variable is not None and not _VARIABLE.fullmatch(self.endpoint_key_variable):
            words = "not the name of an environment variable (the value is not shown: it may be the key itself)"
            found[KEY_VARIABLE] = words
        return found

    def as_json(self, backend: str, server: str = "") -> dict[str, object] | None:
        """Return `text` of run.json, None for a backend that answers no prompts. server: what SERVER_KEY has."""
        record = BACKENDS.get(backend)
        if record is None or not record.is_text:
            return None
        endpoint = {
            "url": self.endpoint,
            "model": self.endpoint_model,
            "api": self.endpoint_api,
            "key_variable": self.endpoint_key_variable,
        }
        return {
            "endpoint": endpoint if record.is_remote else None,
            "max_in_flight": self.max_in_flight,
            "client_processes": self.client_processes,
            "kv_cache_bytes": None if self.kv_cache_gb is None else max(1, int(self.kv_cache_gb * 1e9)),
            "timeout_s": self.request_timeout_s,
            "server": server or None,
        }


PROMPT_INPUTS = tuple(one.name for one in fields(PromptSettings))
ENDPOINT_INPUTS = PROMPT_INPUTS[:5]


def _url_problem(url: str) -> str:
    parts = server_parts(url)
    if parts is None:
        return "allowed: the URL of a server, such as http://HOST:8000/v1"
    if parts.username is not None or parts.password is not None:
        return f"it contains a user or a password. Name the variable with the key by --{KEY_VARIABLE}"
    return f"found {url!r}, expected a URL without ? and #" if parts.query or parts.fragment else ""


def chat_problem(model: str, api: str | None) -> str:
    """Return why a benchmark cannot be asked as chats; empty where it can. api: the input endpoint_api."""
    if api != "chat" or has_messages(model):
        return ""
    return (
        f"found 'chat', but the prompts of {model} are tokens that already contain the chat template, which only "
        f"the form completions accepts. {WITH_MESSAGES}"
    )


def has_messages(model: str) -> bool:
    """Return whether a benchmark can be asked as chats; true for a model that is not known."""
    record = RECORDS.get(model_of(model))
    return record is None or record.generation is None or record.generation.has_messages
