"""Rules of the recipe install-python-venv: the names of environments."""

from __future__ import annotations

import re

DEFAULT_NAME = "venv"


class BadName(Exception):
    """A name that cannot be the name of an environment."""


def folder_name(name: str) -> str:
    """The folder and tag of an environment: its name in lower case, "venv" for none.

    Raises BadName for a name that is not letters, digits, '.', '_' and '-'.
    """
    lower = name.strip().lower() or DEFAULT_NAME
    if not re.fullmatch(r"[a-z0-9_][a-z0-9._-]{0,99}", lower):
        raise BadName(
            f"{name!r} cannot name an environment; allowed are letters, digits, '.', '_' and '-', "
            'at most 100\nhint: cm run script "install python-venv" --name=my-venv'
        )
    return lower


def venv_id(created_ms: int) -> str:
    """Eleven hexadecimal digits that tell environments of one name apart, from the time in ms since 1970.

    They count down: cache entries are found in the order of their tags, so the newest of a name comes first, and one
    that was damaged and made again never hides the new one.
    """
    return f"{(1 << 44) - 1 - created_ms:011x}"
