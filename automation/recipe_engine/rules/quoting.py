"""How an env value is written into a shell script so that it never runs anything.

Two rules. ``literal``: the script sees the value as it is. ``cm``: the script sees what bash makes of the value between
double quotes, which is how CM's engine writes it and what its recipes are written for, except that commands never run:

=========================================  =====================================================================
text of the value                          what the script sees
=========================================  =====================================================================
``\\$``, ``\\"``, ``\\```, ``\\\\``        the character behind the backslash
a backslash at the end of a line           neither
``$NAME``, ``${NAME}``, NAME is known      the value of NAME, which is not looked at again
``$(...)``, ``$((...))``, ``${...}``,      the same text, to the last character
backticks
everything else, ``"`` and ``$?`` too      the same text
=========================================  =====================================================================
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container
from typing import Literal

ValueRule = Literal["literal", "cm"]
"""``literal`` for recipes of a repository whose ``cmr.yaml`` says ``values: literal``, else ``cm``."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf'\\(?P<escaped>[$"`\\]|\n)|\$(?P<plain>{_NAME})|\$\{{(?P<braced>{_NAME})\}}|(?P<open>\$[({{]|`)')
_CLOSING = {"$(": re.compile(r"\\.|[()]", re.DOTALL), "${": re.compile(r"\\.|[{}]", re.DOTALL)}
_BACKTICK = re.compile(r"\\.|`", re.DOTALL)


def quoted(text: str, rule: ValueRule, known: Container[str]) -> str:
    """The shell word that stands for a value; ``known`` are the variables that the ``cm`` rule expands."""
    if rule == "literal" or not ("\\" in text or "$" in text or "`" in text):
        return shlex.quote(text)
    words: list[str] = []
    plain, position = "", 0
    while found := _TOKEN.search(text, position):
        plain += text[position : found.start()]
        position = found.end()
        name = found["plain"] or found["braced"]
        if found["open"]:
            position = _end_of_substitution(text, found["open"], position)
            plain += text[found.start() : position]
        elif name and name in known:
            words += [shlex.quote(plain)] if plain else []
            words.append(f'"${{{name}-}}"')
            plain = ""
        elif name:
            plain += found[0]
        elif found["escaped"] != "\n":
            plain += found["escaped"]
    plain += text[position:]
    return "".join([*words, shlex.quote(plain)] if plain or not words else words)


def _end_of_substitution(text: str, opening: str, position: int) -> int:
    """The position behind the substitution that was opened just before ``position``; the end when it is not closed."""
    depth = 1
    for found in _CLOSING.get(opening, _BACKTICK).finditer(text, position):
        if found[0] in ("(", "{"):
            depth += 1
        elif found[0] in (")", "}", "`"):
            depth -= 1
            if depth == 0:
                return found.end()
    return len(text)
