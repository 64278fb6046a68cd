"""An env as ``plan(i)`` gets it, which notes what is read and set, and the env keys that metadata decides by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from ..rules.conditions import KINDS, Unknown, has_symbol, is_glob
from ..rules.env import PLACEHOLDER


class WatchedEnv(MutableMapping[str, Any]):
    """An env that keeps which keys were set (also to the value that they had) and which unknown keys were read.

    ``plain`` are the values; to look there does not count.
    """

    def __init__(self, env: Mapping[str, Any], unknown: Unknown) -> None:
        self.plain = dict(env)
        self._unknown = unknown
        self.changed: set[str] = set()
        self.read_unknown: dict[str, None] = {}

    def knows(self, key: str) -> bool:
        """Whether it is known which value the key has, or that it has none; does not count as a look at it."""
        return not (has_symbol(self.plain[key]) if key in self.plain else self._unknown.source(key))

    def _read(self, key: str) -> None:
        if key not in self.changed and not self.knows(key):
            self.read_unknown[key] = None

    def __getitem__(self, key: str) -> Any:
        self._read(key)
        return self.plain[key]

    def __iter__(self) -> Iterator[str]:
        for key in self.plain:
            self._read(key)
        self.read_unknown.update({rule: None for rule, source in self._unknown.rules if is_glob(rule) and source})
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __setitem__(self, key: str, value: Any) -> None:
        self.changed.add(key)
        self.plain[key] = value

    def __delitem__(self, key: str) -> None:
        self.changed.add(key)
        del self.plain[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As ``dict.setdefault``; the key counts as set in any case."""
        self[key] = self.get(key, default)
        return self[key]

    def clear(self) -> None:
        """As ``dict.clear``; does not count as a look at the keys."""
        self.changed.update(self.plain)
        self.plain.clear()

    def copy(self) -> dict[str, Any]:
        """As ``dict.copy``."""
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self


def env_names(meta: Any) -> Iterator[str]:
    """The env keys that metadata, or a part of it, decides by: conditions, defaults, tags from env, ``<<<KEY>>>``."""
    if isinstance(meta, str):
        yield from re.findall(PLACEHOLDER, meta)
    elif isinstance(meta, Mapping):
        for key, value in meta.items():
            if key in (*KINDS, "default_env") and isinstance(value, Mapping):
                yield from map(str, value)
            elif key == "update_tags_from_env":
                yield from _texts(value)
            elif key == "update_tags_from_env_with_prefix" and isinstance(value, Mapping):
                yield from (name for names in value.values() for name in _texts(names))
            elif key == "extra_cache_tags_from_env" and isinstance(value, list):
                yield from (str(row["env"]) for row in value if isinstance(row, Mapping) and row.get("env"))
            yield from env_names(value)
    elif isinstance(meta, list | tuple):
        for item in meta:
            yield from env_names(item)


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or () if item is not None]
