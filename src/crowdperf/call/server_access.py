"""Keys, headers and certificates that a server requires of its clients. Standard library only.

Secrets come from environment variables or files, and never from the command line. They are sent in headers to the URL's
host, and no text form of anything here shows them.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from crowdperf.kit.text_documents import given_text
from crowdperf.kit.user_paths import expanded
from crowdperf.rules.prompt_settings import BEARER, KEY_VARIABLE, AccessSettings, HeaderSource, parse_header

HIDDEN = "***"
MIN_SECRET_CHARACTERS = 4
"""A shorter secret cannot be distinguished from ordinary text, so hiding it would damage that text."""
_LARGEST_SECRET_BYTES = 1 << 16
"""Of a file with a secret. Servers accept far shorter headers, most of them 8 to 16 KiB."""
_SHOWN_CHARACTERS = 8
"""So many characters in a row of a secret, in any case, are hidden like the whole secret."""


class AccessProblem(Exception):
    """Why a secret or a certificate cannot be used. hint: the suggested fix."""

    def __init__(self, found: str, hint: str) -> None:
        super().__init__(found)
        self.hint = hint


def folded(text: str) -> str:
    """Return the text in small letters, each in its place: keys are ASCII."""
    return text.translate({code: code + 32 for code in range(ord("A"), ord("Z") + 1)})


def without_key(text: str, key: str | None) -> str:
    """Return `text` without an API key, and without parts of it, in capitals or not."""
    if not key:
        return text
    secret = folded(key)
    size = min(_SHOWN_CHARACTERS, len(secret))
    parts = {secret[start : start + size] for start in range(len(secret) - size + 1)}
    line, shown, place = folded(text), [], 0
    while place < len(line):
        end = place
        while line[end : end + size] in parts:
            end += 1
        shown.append(HIDDEN if end > place else text[place])
        place = end + size - 1 if end > place else place + 1
    return "".join(shown)


class Credentials:
    """The headers that a server gets, and the secrets in them. No text form shows a value."""

    __slots__ = ("_headers", "_secrets")

    def __init__(self, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = ()) -> None:
        self._headers, self._secrets = dict(headers or {}), secrets

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self._headers) or 'none'})"

    @property
    def is_given(self) -> bool:
        """Whether requests carry a secret."""
        return bool(self._secrets)

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, with their values."""
        return dict(self._headers)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the headers."""
        return tuple(self._headers)

    def hidden_in(self, text: str) -> str:
        """Return `text` without the secrets, and without parts of them, in capitals or not."""
        for secret in self._secrets:
            text = without_key(text, secret)
        return text


def _checked(value: str, what: str) -> str:
    """Return a secret that a header can have. Raises AccessProblem."""
    if len(value) < MIN_SECRET_CHARACTERS or re.search(r"[^\x20-\x7e]", value):
        allowed = f"at least {MIN_SECRET_CHARACTERS}, printable ASCII on one line"
        raise AccessProblem(f"{what}: {len(value)} characters, allowed: {allowed}", "copy it again")
    return value


def _key(settings: AccessSettings, environment: Mapping[str, str]) -> str | None:
    variable = settings.key_variable
    if variable is None:
        return None
    value = environment.get(variable, "").strip()
    if not value:
        hint = f"export {variable}=..., or leave --{KEY_VARIABLE} out for a server without a key"
        raise AccessProblem(f"the environment variable {variable} for the API key is not set", hint)
    what = f"the environment variable {variable} does not contain an API key"
    if " " in value:
        raise AccessProblem(f"{what}: it contains a space", "copy the key again")
    return _checked(value, what)


def _value(source: HeaderSource, environment: Mapping[str, str]) -> str:
    """Return the value of a header from its source. Raises AccessProblem."""
    what = f"the header {source.name}"
    if source.kind == "env":
        value = environment.get(source.text, "").strip()
        if not value:
            raise AccessProblem(
                f"{what}: the environment variable {source.text} is not set", f"export {source.text}=..."
            )
        return _checked(value, f"{what}: the environment variable {source.text} has no value for it")
    try:
        text = given_text(expanded(source.text), _LARGEST_SECRET_BYTES).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise AccessProblem(f"{what}: cannot read {source.text}: {why}", "give NAME:file:PATH of a text file") from None
    return _checked(text, f"{what}: {source.text} has no value for it")


def credentials_of(settings: AccessSettings, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the headers and secrets. Raises AccessProblem for a secret that is missing or cannot be sent."""
    headers: dict[str, str] = {}
    secrets: list[str] = []
    if (key := _key(settings, environment)) is not None:
        name = settings.key_header or BEARER
        headers[name] = f"Bearer {key}" if name.lower() == BEARER.lower() else key
        secrets.append(key)
    for text in settings.headers:
        source = parse_header(text)
        if source.kind == "value":
            headers[source.name] = source.text
            continue
        headers[source.name] = value = _value(source, environment)
        secrets += [value, *(value.split(" ")[1:] if value.lower().startswith(("bearer ", "basic ")) else ())]
    return Credentials(headers, tuple(secrets))


def context_of(settings: AccessSettings) -> ssl.SSLContext:
    """Return the TLS context with the certificates of the settings. Raises AccessProblem for a file that cannot be
    used."""
    name, path = "--ca_file", settings.ca_file
    try:
        context = ssl.create_default_context(cafile=path)
        if settings.client_certificate is not None:
            name, path = "--client_certificate", settings.client_certificate
            context.load_cert_chain(settings.client_certificate, settings.client_key, password=_no_password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        why = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
        allowed = "a PEM file with certificates" if name == "--ca_file" else "a PEM file with a certificate and its key"
        hint = f"allowed: {allowed}"
        if name != "--ca_file":
            hint += ", or the key separately with --client_key, without a password"
        raise AccessProblem(f"{name}: {path} cannot be used: {why or 'not ' + allowed}", hint) from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def settings_of(values: Mapping[str, Any]) -> AccessSettings:
    """Return the settings in the texts of inputs (a sweep's points), with the given ones only."""
    texts = {one.name: values.get(AccessSettings.INPUTS[one.name]) or None for one in fields(AccessSettings)}
    headers = tuple(part.strip() for part in str(texts.pop("headers") or "").split(",") if part.strip())
    return AccessSettings(headers=headers, **{name: str(one) for name, one in texts.items() if one is not None})
