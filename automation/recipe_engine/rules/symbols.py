"""Values that a plan does not know yet, as texts that can flow through env, tags and cache keys like real ones.

A symbol stands for "whatever KEY will be once STEP has run". Two equal symbols are the same unknown value, so a plan
can tell that two steps will use the same entry without knowing which. Symbols are framed by two characters of
Unicode's private use area, which no recipe uses. A real run never makes one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .env import key_matcher

START, END = "\ue000", "\ue001"
_SYMBOL = re.compile(f"{START}([^{START}{END}|]*)\\|([^{START}{END}]*){END}")


def symbol(key: str, source: str) -> Any:
    """The unknown value of an env key that ``source`` will give; a list of one for a ``+KEY``."""
    text = f"{START}{key}|{source}{END}"
    return [text] if key.startswith("+") else text


def has_symbol(value: Any) -> bool:
    """Whether a value, or an item of a list or mapping, is not known yet."""
    if isinstance(value, str):
        return START in value
    if isinstance(value, Mapping):
        return any(has_symbol(item) for item in value.values())
    return isinstance(value, list | tuple) and any(has_symbol(item) for item in value)


def shown(value: Any) -> Any:
    """A value with its symbols in words, for people: ``<CM_CUDA_VERSION from get-cuda>``."""
    if isinstance(value, str):
        return _SYMBOL.sub(r"<\1 from \2>", value)
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


def sources(value: Any) -> tuple[str, ...]:
    """What a value waits for: ``CM_CUDA_VERSION from get-cuda`` for each symbol in it."""
    texts = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(f"{key} from {source}" for text in texts for key, source in _SYMBOL.findall(str(text))))


class Unknown(NamedTuple):
    """Keys that are not in the env now, but that a step may have set by the time it matters.

    ``rules`` are pairs of a key or glob and the step that may set it; keys that match ``hidden`` are surely not there.
    """

    rules: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()

    def source(self, key: str) -> str:
        """The step that may set ``key``; an empty text when none may."""
        if self.hidden and key_matcher(self.hidden).match(key):
            return ""
        return next((source for pattern, source in self.rules if key_matcher((pattern,)).match(key)), "")

    def hiding(self, hidden: tuple[str, ...]) -> Unknown:
        """What is unknown to somebody who does not see ``hidden`` keys."""
        return self._replace(hidden=hidden) if self.rules else self

    def outside(self, env: Mapping[str, Any]) -> Container[str]:
        """The keys that are not in ``env`` now but may be set before it matters."""
        return _Outside(self, env) if self.rules else ()

    def with_rules(self, rules: Iterable[tuple[str, str]]) -> Unknown:
        """These keys and more; who is known to set a key already stays its source."""
        patterns = {pattern for pattern, _ in self.rules}
        return self._replace(rules=(*self.rules, *(rule for rule in rules if rule[0] not in patterns)))


class _Outside(Container[str]):
    """See ``Unknown.outside``."""

    def __init__(self, unknown: Unknown, env: Mapping[str, Any]) -> None:
        self._unknown = unknown
        self._env = env

    def __contains__(self, key: object) -> bool:
        return key not in self._env and self._unknown.source(str(key)) != ""


NOTHING_UNKNOWN = Unknown()


def is_glob(pattern: str) -> bool:
    """Whether a key pattern matches more than one name."""
    return any(letter in pattern for letter in "*?[")


def overlap(patterns: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """The keys and globs for what both ``patterns`` and ``allowed`` may match; rather one too many than one too few."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for other in allowed:
            if not is_glob(pattern):
                if key_matcher((other,)).match(pattern):
                    found[pattern] = None
            elif not is_glob(other):
                if key_matcher((pattern,)).match(other):
                    found[other] = None
            elif _may_meet(pattern, other):
                found[max(pattern, other, key=len)] = None
    return tuple(found)


def _may_meet(first: str, second: str) -> bool:
    """Whether two globs can match one name, judged by what stands before their first wildcard."""
    left, right = (re.split(r"[*?[]", glob, maxsplit=1)[0] for glob in (first, second))
    return left.startswith(right) or right.startswith(left)
