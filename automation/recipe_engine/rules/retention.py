"""Which cache entries go and which stay: the rule behind ``cm gc cache``, as one pure decision.

A finished entry that another finished entry was made with stays as long as that other one does. So an entry counts as
used when one that needs it was used, and entries go in the order of that time, each together with those that need it.
Never does anything go that a pinned entry, or one in use, needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Item(NamedTuple):
    """What the decision needs to know of a finished entry.

    ``last_use_s`` is in seconds since 1970. ``kept_because`` says why it must stay (pinned, in use), ``useless`` why it
    can never be used again; both empty for most.
    """

    uid: str
    size_bytes: int
    last_use_s: float
    depends_on: tuple[str, ...] = ()
    kept_because: str = ""
    useless: str = ""


class Limits(NamedTuple):
    """What the cache may hold: bytes in all, and seconds since the last use; None for no limit."""

    max_size_bytes: int | None = None
    older_than_s: float | None = None


class Decision(NamedTuple):
    """What happens to an entry, and why."""

    uid: str
    is_removed: bool
    reason: str


def decide(items: Sequence[Item], limits: Limits, now_s: float) -> list[Decision]:
    """What goes, in the order of removal, then what stays although it is useless or breaks a limit.

    Entries not named in the answer stay, and no limit asks for their removal.
    """
    cache = _Cache(items)
    cache.remove_useless()
    if limits.older_than_s is not None:
        for uid in cache.by_last_use:
            if now_s - cache.last_use_s[uid] > limits.older_than_s:
                cache.remove(uid, "not used for longer than asked")
    if limits.max_size_bytes is not None:
        for uid in cache.by_last_use:
            if cache.size_bytes <= limits.max_size_bytes:
                break
            cache.remove(uid, "least recently used, and the cache is larger than asked")
    cache.remove_useless()
    gone = [Decision(uid, True, reason) for uid, reason in cache.removed.items()]
    return gone + [Decision(uid, False, reason) for uid, reason in cache.staying.items() if uid not in cache.removed]


class _Cache:
    """The entries by uid, with what each needs and what needs it; and what was decided so far, with the reasons."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = {item.uid: item for item in sorted(items, key=lambda item: item.uid)}
        self._needs = {uid: (self._items.keys() & item.depends_on) - {uid} for uid, item in self._items.items()}
        self._needed_by: dict[str, set[str]] = {uid: set() for uid in self._items}
        for uid, needed in self._needs.items():
            for name in needed:
                self._needed_by[name].add(uid)
        self.size_bytes = sum(item.size_bytes for item in items)
        self.removed: dict[str, str] = {}
        self.staying: dict[str, str] = {}
        self._kept = {uid: item.kept_because for uid, item in self._items.items() if item.kept_because}
        seen = set(self._kept)
        for uid, reason in list(self._kept.items()):
            for name in _reached(uid, self._needs, seen)[1:]:
                self._kept[name] = f"needed by {uid}, which is {reason}"
        self.last_use_s: dict[str, float] = {}
        """Of an entry, or of one that needs it."""
        seen = set()
        for item in sorted(self._items.values(), key=lambda item: -item.last_use_s):
            if item.uid not in seen:
                self.last_use_s.update(dict.fromkeys(_reached(item.uid, self._needs, seen), item.last_use_s))
        self.by_last_use = sorted(self._items, key=lambda uid: (self.last_use_s[uid], len(self._needed_by[uid]), uid))

    def _with_dependents(self, uid: str) -> list[str]:
        """The entry and all that need it, directly or not, and are still there; what needs others comes first."""
        return [name for name in reversed(_reached(uid, self._needed_by, set())) if name not in self.removed]

    def remove_useless(self) -> None:
        """Removes what can never be used again, unless something that stays needs it."""
        for uid in [uid for uid, item in self._items.items() if item.useless]:
            unit = self._with_dependents(uid)
            holders = [name for name in unit if name in self._kept or not self._items[name].useless]
            if holders:
                self.staying[uid] = self._kept.get(uid) or f"needed by {holders[-1]}"
            else:
                self._take({name: self._items[name].useless for name in unit})

    def remove(self, uid: str, reason: str) -> None:
        """Removes an entry with all that need it, unless one of them must stay."""
        unit = self._with_dependents(uid) if uid not in self.removed else []
        holders = [name for name in unit if name in self._kept]
        if holders:
            kept = self._kept[holders[-1]]
            self.staying[uid] = kept if holders[-1] == uid else f"needed by {holders[-1]}, which is {kept}"
        else:
            self._take({name: reason if name == uid else f"needs {uid}, which goes: {reason}" for name in unit})

    def _take(self, reasons: Mapping[str, str]) -> None:
        self.removed.update(reasons)
        self.size_bytes -= sum(self._items[name].size_bytes for name in reasons)


def _reached(start: str, graph: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """``start`` and all that is reached from it and was not ``seen``; these are added to ``seen``."""
    found = [start]
    seen.add(start)
    for name in found:
        more = sorted(graph[name] - seen)
        found += more
        seen.update(more)
    return found
