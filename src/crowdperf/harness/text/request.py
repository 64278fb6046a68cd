"""What the user decides of an engine that answers prompts: `text` of run.json. Needs no library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from crowdperf.kit.records import COUNT, MAY_BE_MISSING, POSITIVE, TEXTS, URL, filled_text, one_of
from crowdperf.rules.prompt_settings import APIS, AccessSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server that speaks OpenAI's API. url: up to and with /v1. api: "completions" (takes tokens where the server
    does) or "chat"; None: the probe finds out. model: the name that the server knows; None: its only one. key_variable:
    the environment variable that holds the API key; the key itself is nowhere else. The others are those of
    AccessSettings."""

    url: Annotated[str, URL]
    model: Annotated[str | None, filled_text("the name of a model")] = None
    api: Annotated[str | None, one_of(APIS)] = None
    key_variable: Annotated[str | None, filled_text("the name of an environment variable")] = None
    key_header: Annotated[str | None, filled_text("the name of a header"), MAY_BE_MISSING] = None
    headers: Annotated[tuple[str, ...], TEXTS, MAY_BE_MISSING] = ()
    ca_file: Annotated[str | None, filled_text("a PEM file"), MAY_BE_MISSING] = None
    client_certificate: Annotated[str | None, filled_text("a PEM file"), MAY_BE_MISSING] = None
    client_key: Annotated[str | None, filled_text("a PEM file"), MAY_BE_MISSING] = None

    @property
    def access(self) -> AccessSettings:
        return AccessSettings(**{name: getattr(self, name) for name in AccessSettings.INPUTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """`text` of run.json, there for backends that answer prompts; None where the harness or the engine decides.

    max_in_flight: requests that are worked on at once. client_processes: those that ask a server. kv_cache_bytes:
    memory for keys and values. timeout_s: how long a request may take in all. server: the Python whose packages are a
    server, for backends that start one.
    """

    endpoint: Endpoint | None = None
    max_in_flight: Annotated[int | None, COUNT] = None
    client_processes: Annotated[int | None, COUNT, MAY_BE_MISSING] = None
    kv_cache_bytes: Annotated[int | None, COUNT] = None
    timeout_s: Annotated[float | None, POSITIVE] = None
    server: Path | None = None
