"""The inputs that say how prompts are answered, and the key `text` of run.json that they become. Pure.

The API key of a server is never an input: `endpoint_key_variable` is the environment variable that has it, and secret
headers name an environment variable or a file. A run
that asks a server without `endpoint` uses OPENAI_BASE_URL, as for OpenAI's own Python client
(src/openai/_client.py of openai-python 02cf7cdb, read November 2026).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl

from crowdperf.kit.server_address import server_parts
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, model_of

OTHER_FILES = 128
"""Files that the client of a server has open beside its connections: this project's choice."""
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
BEARER = "Authorization"
"""The header of the API key by default, where it follows the word Bearer (RFC 6750, section 2.1)."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110, section 5.6.2."""
_HEADERS_OF_THE_CLIENT = frozenset((
    "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host",
    "proxy-authorization", "te", "transfer-encoding", "upgrade",
))  # fmt: skip
_HEADER_FORM = "NAME:VALUE, NAME:env:VARIABLE or NAME:file:PATH"
_SECRET_HEADERS = ("auth", "cookie", "key", "token", "secret", "password", "credential", "signature")
"""Parts of the names of headers whose values are secrets: this project's choice."""
_TOKEN_SHAPE = r"(?i)(bearer |basic )|\b(sk|hf|pk|gh[a-z]|xox[a-z])[-_][A-Za-z0-9]|[A-Za-z0-9+/_=.-]{32,}"
"""A value that may be a secret, whatever its header is called: this project's choice. Compiled at its use."""
_SECRET_QUERY = frozenset(["code", "key", "sig", "signature"])


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """A header and where its value comes from. text: the value itself, the variable or the path."""

    name: str
    kind: Literal["value", "env", "file"]
    text: str


def parse_header(text: str) -> HeaderSource:
    """Return the header in NAME:VALUE, NAME:env:VARIABLE or NAME:file:PATH. Raises ValueError, without the value."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not value or not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"a header has the form {_HEADER_FORM}. The value is not shown: it may be a secret")
    if name.lower() in _HEADERS_OF_THE_CLIENT:
        raise ValueError(f"{name} is set by the client")
    for kind in ("env", "file"):
        if value.startswith(f"{kind}:"):
            source = value.removeprefix(f"{kind}:").strip()
            if not source or (kind == "env" and not _VARIABLE.fullmatch(source)):
                raise ValueError(f"{name}: expected {_HEADER_FORM}")
            return HeaderSource(name, kind, source)
    if any(part in name.lower() for part in _SECRET_HEADERS) or re.search(_TOKEN_SHAPE, value):
        raise ValueError(
            f"{name}: the value looks like a secret, and other users could see it. Give it as {name}:env:VARIABLE or "
            f"{name}:file:PATH"
        )
    if re.search(r"[^\x20-\x7e]", value):
        raise ValueError(f"{name}: found characters other than printable ASCII")
    return HeaderSource(name, "value", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """How a server lets clients in. key_variable: of the environment, with the API key. key_header: the header for it,
    None for `Authorization: Bearer`. headers: further ones, in the form of `parse_header`. The others are PEM files."""

    INPUTS: ClassVar[Mapping[str, str]] = {
        "key_variable": "endpoint_key_variable",
        "key_header": "endpoint_key_header",
        "headers": "endpoint_header",
        "ca_file": "endpoint_ca_file",
        "client_certificate": "endpoint_client_certificate",
        "client_key": "endpoint_client_key",
    }
    """The input of each."""

    key_variable: str | None = None
    key_header: str | None = None
    headers: tuple[str, ...] = ()
    ca_file: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None

    def problems(self) -> dict[str, str]:
        """Return the problems, by the name of the input, without secrets."""
        found = {}
        if self.key_variable is not None and not _VARIABLE.fullmatch(self.key_variable):
            words = "not the name of an environment variable (the value is not shown: it may be the key itself)"
            found[KEY_VARIABLE] = words
        if self.key_header is not None and (
            not _HEADER_NAME.fullmatch(self.key_header) or self.key_header.lower() in _HEADERS_OF_THE_CLIENT
        ):
            found["endpoint_key_header"] = (
                "not the name of a header for a key, such as api-key (the value is not shown)"
            )
        names: list[str] = [] if self.key_variable is None else [(self.key_header or BEARER).lower()]
        for text in self.headers:
            try:
                name = parse_header(text).name
            except ValueError as error:
                found["endpoint_header"] = str(error)
                continue
            if name.lower() in names:
                found["endpoint_header"] = f"{name} is given twice"
            names.append(name.lower())
        if self.client_key is not None and self.client_certificate is None:
            found["endpoint_client_key"] = "only with --client_certificate"
        return found

    def as_json(self) -> dict[str, object]:
        """Return the settings that are given, but for key_variable, as run.json has them."""
        values = {name: getattr(self, name) for name in self.INPUTS if name != "key_variable"}
        return {name: list(value) if name == "headers" else value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """The inputs of a call by their names, None for one that is not given. Those that begin with `endpoint` are of
    backends that ask a server of the user's. client_processes: those that ask it.
    request_timeout_s: for backends without prompts, how long nothing may be answered."""

    endpoint: str | None = None
    endpoint_model: str | None = None
    endpoint_api: str | None = None
    endpoint_key_variable: str | None = None
    client_processes: int | None = None
    endpoint_key_header: str | None = None
    endpoint_header: tuple[str, ...] | None = None
    endpoint_ca_file: Path | None = None
    endpoint_client_certificate: Path | None = None
    endpoint_client_key: Path | None = None
    max_in_flight: int | None = None
    kv_cache_gb: float | None = None
    request_timeout_s: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PromptSettings:
        """Return the settings in the typed values of a call."""
        return cls(**{name: values[name] for name in PROMPT_INPUTS})

    @property
    def access(self) -> AccessSettings:
        """How the server lets this call in."""
        files = (self.endpoint_ca_file, self.endpoint_client_certificate, self.endpoint_client_key)
        ca_file, certificate, key = (None if path is None else str(path) for path in files)
        return AccessSettings(
            key_variable=self.endpoint_key_variable, key_header=self.endpoint_key_header,
            headers=tuple(self.endpoint_header or ()), ca_file=ca_file, client_certificate=certificate, client_key=key,
        )  # fmt: skip

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
        if not (self.endpoint or "").startswith("https:"):
            for name in ("endpoint_ca_file", "endpoint_client_certificate"):
                if getattr(self, name) is not None:
                    found[name] = "only applies to a URL with https"
        return found | self.access.problems()

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
            **self.access.as_json(),
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
ENDPOINT_INPUTS = tuple(name for name in PROMPT_INPUTS if name.startswith(URL) or name == "client_processes")


def _url_problem(url: str) -> str:
    parts = server_parts(url)
    if parts is None:
        return "allowed: the URL of a server, such as http://HOST:8000/v1"
    if parts.username is not None or parts.password is not None:
        return f"it contains a user or a password. Name the variable with the key by --{KEY_VARIABLE}"
    if parts.fragment:
        return f"found {url!r}, expected a URL without #"
    name = secret_query_name(parts.query)
    return f"the query of the URL has {name!r}, {QUERY_ADVICE}" if name else ""


QUERY_ADVICE = (
    "which may be a secret and would appear in logs. Send it in a header: --endpoint_header=NAME:env:VARIABLE"
)


def secret_query_name(query: str) -> str:
    """Return the name of the first value in a URL's query that may be a secret. Empty if there is none."""
    from crowdperf.kit.secret_shapes import is_secret_name  # here, because its patterns take long to compile

    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    return next((name for name in names if name.lower() in _SECRET_QUERY or is_secret_name(name)), "")


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
