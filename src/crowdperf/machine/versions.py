"""Dotted numeric versions as drivers, CUDA, cuDNN, TensorRT and Docker have them, in order."""

import re
from collections.abc import Mapping
from typing import Any

from crowdperf.call.values import text_of

VersionKey = tuple[int, ...]


def key(text: str) -> VersionKey:
    """A sort key: the leading dotted numbers without zeros at the end, so that ``12.0 == 12``; () without a number."""
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    numbers = [int(part) for part in found[1].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_within(version: str, minimum: str = "", maximum: str = "") -> bool:
    """Whether ``version`` lies in the bounds; an empty bound is none. ``maximum`` 12.4 admits 12.4.1."""
    if minimum and key(version) < key(minimum):
        return False
    top = key(maximum)
    return not maximum or key(version)[: len(top)] <= top


def is_exact(version: str, wanted: str) -> bool:
    """Whether ``version`` is the wanted one as far as that is written: 12.4.131 is 12.4."""
    return re.match(rf"\s*v?{re.escape(wanted.strip())}(?![\d])", version) is not None


def is_asked(version: str, exact: str, minimum: str, maximum: str) -> bool:
    """Whether ``version`` is one of those asked for; an exact one leaves the bounds out of account."""
    return is_exact(version, exact) if exact else is_within(version, minimum, maximum)


def asked_text(exact: str, minimum: str, maximum: str) -> str:
    """The versions asked for, in words."""
    if exact:
        return f"version {exact}"
    parts = [f"{minimum} or newer"] if minimum else []
    parts += [f"{maximum} or older"] if maximum else []
    return "version " + " and ".join(parts) if parts else "any version"


def misfit(version: str, env: Mapping[str, Any]) -> str:
    """Why ``version`` is not the one that CM's env asks for; empty when it is."""
    asked = [text_of(env, key) for key in ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX")]
    return "" if is_asked(version, *asked) else f"{version}, required: {asked_text(*asked)}"
