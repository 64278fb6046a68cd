"""Texts of a user as lists of words: taken apart without a shell, and refused where they could do harm.

What may not pass: control characters (a line break would begin a new line of a Dockerfile), and values of secrets (a
layer of an image and the arguments of a program are seen by others).
"""

import json
import re
import shlex
import unicodedata

from recipe_engine.rules.secrets import is_secret, without_shapes

ASSIGNED = re.compile(r"(?<![\w.])(?:-{1,2}(?:e(?=[A-Z]))?)?([A-Za-z_][\w.-]*)=(?=(['\"]?[^\s'\"]+))")
"""``NAME=value``, ``--name=value``, ``-eNAME=value``, also after another ``=`` as in ``--build-arg=NAME=value``."""
OPTION = re.compile(r"(?<!\S)--?([A-Za-z][\w.-]*)\s+(?![\w-]+=[\w/])(?=(['\"]?[^\s'\"-][^\s'\"]*))")
"""``--name value``, the value behind a blank; not ``--secret id=NAME``."""
LOGIN = re.compile(
    r"(?<![\w-])(?:(?:login|sshpass)\b[^|;&]*?\s-p[\s=]*|(?:mysql|mysqldump|mariadb)\b[^|;&]*?\s-p"
    r"|(?:curl|http|wget)\b[^|;&]*?\s(?:-u|--user|--proxy-user)[\s=]*[^\s:'\"]+:)['\"]?([^\s'\"]+)"
)
"""Programs whose option for a password has no telling name: docker, podman and helm login, sshpass, MySQL, curl."""
REFERENCE = re.compile(r"\$(?:\{[^{}]*\}|\w+)")
"""A variable: what it holds is not in the text."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class RequestError(Exception):
    """An input that cannot be used: what it is, what is allowed, and what to try."""

    def __init__(self, text: str, allowed: str = "", hint: str = "") -> None:
        more = (f"\n  allowed: {allowed}" if allowed else "") + (f"\n  hint: {hint}" if hint else "")
        super().__init__(text + more)


def clean(text: str, flag: str) -> str:
    """The text, if it is one line of characters that every engine and file can hold. Raises RequestError."""
    bad = next((sign for sign in text if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")), "")
    if bad:
        raise RequestError(f"--{flag} contains the control character {bad!r}: {text!r}", "one line of text")
    return text


def without_secret(text: str, flag: str) -> str:
    """The clean text, if it holds no value of a secret that can be told. Raises RequestError, without the value."""
    clean(text, flag)
    given = [*ASSIGNED.findall(text), *OPTION.findall(text)]
    name = next((name for name, value in given if is_secret(name) and value.lstrip("'\"")[:1] != "$"), "")
    is_login = any(value[0] != "$" for value in LOGIN.findall(text))
    told = REFERENCE.sub("$", text)
    if name or is_login or without_shapes(told) != told:
        what = f"the value of {name}" if name else "a token or password"
        raise RequestError(
            f"--{flag} contains {what}, which other users could read in the image or in the list of processes",
            hint=f"export it, and name it only: --secrets={name if NAME.fullmatch(name) else 'NAME'}",
        )
    return text


def split(value: object, flag: str) -> tuple[str, ...]:
    """A text as words, by the quoting rules of a shell but with nothing expanded; a list as it is.

    Raises RequestError.
    """
    try:
        words = [str(item) for item in value] if isinstance(value, list) else shlex.split(str(value or ""))
    except ValueError as error:
        raise RequestError(f"--{flag}={value!r} cannot be parsed: {error}", "words, with quotes that end") from error
    without_secret(" ".join(words), flag)
    return tuple(clean(word, flag) for word in words)


def commands(value: object, flag: str) -> tuple[str, ...]:
    """A list of commands: a list, a JSON list, or a text with one command on each line. Raises RequestError."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise RequestError(
                f"--{flag} begins like a JSON list, but is not one: {error}", '["make build", "make run"]'
            ) from error
    items = value if isinstance(value, list) else str(value or "").splitlines()
    if not all(isinstance(item, str) for item in items):
        raise RequestError(f"--{flag} contains a value that is not a string", '["make build", "make run"]')
    return tuple(without_secret(item.strip(), flag) for item in items if item.strip())


def pairs(value: object, flag: str) -> tuple[tuple[str, str], ...]:
    """``A=1 B="x y"`` as pairs, or a mapping; names of secrets are refused. Raises RequestError."""
    items = [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else None
    found = []
    for word in split(items if items is not None else value, flag):
        name, sign, text = word.partition("=")
        if not sign or not NAME.fullmatch(name):
            raise RequestError(
                f"--{flag}: {word!r} is not NAME=VALUE", "letters, digits and _ in NAME", f"--{flag}='A=1'"
            )
        if is_secret(name):
            raise RequestError(
                f"--{flag} names the secret {name}", hint=f"export it, and give only its name: --secrets={name}"
            )
        found.append((name, text))
    return tuple(found)
