"""Hides the secrets of an env wherever an explanation shows a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .env import is_secret
from .rerun import LOGIN_IN_ADDRESS, TOKEN

MASK = "********"
MASKED_LENGTH = 6
"""Shorter secrets are hidden under their own key only: as a part of other texts they would hide ordinary words."""


def masker(env: Mapping[str, Any]) -> Masker:
    """Hides the secrets in ``env`` wherever they are shown."""
    values = [str(value) for key, value in env.items() if is_secret(key) and len(str(value)) >= MASKED_LENGTH]
    return Masker(tuple(sorted(set(values), key=len, reverse=True)))


def masked(text: str, env: Mapping[str, Any]) -> str:
    """A text without the secrets in ``env``, logins in addresses, and what is shaped like a token."""
    return str(masker(env).text(text))


class Masker(NamedTuple):
    """The secrets of one explanation."""

    secrets: tuple[str, ...]

    def text(self, value: Any, key: str = "") -> Any:
        """A value without secrets; all of it is hidden when ``key`` names a secret."""
        if key and is_secret(key):
            return MASK if value not in ("", []) else value
        if isinstance(value, str):
            for secret in self.secrets:
                value = value.replace(secret, MASK)
            return TOKEN.sub(MASK, LOGIN_IN_ADDRESS.sub(f"://{MASK}@", value))
        if isinstance(value, Mapping):
            return {name: self.text(item, str(name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.text(item) for item in value]
        if isinstance(value, tuple):
            items = [self.text(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value
