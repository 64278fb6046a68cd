"""Which cache entries go and which stay: the rule behind ``cm gc cache``, as one pure decision.

A finished entry that another finished entry was made with stays as long as that other one does. So an entry counts as
used when one that needs it was used, and entries go in the order of that time, each together with those that need it.
Never does anything go that a pinned entry, or one in use, needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

    Entries not named in the answer stay, and nobody asked for their removal.
    """
    return _Decider(items, limits).decide(now_s)


class _Decider:
    def __init__(self, items: Sequence[Item], limits: Limits) -> None:
        items = sorted(items, key=lambda item: item.uid)
        self._items = {item.uid: item for item in items}
        self._limits = limits
        self._needed_by = _needed_by(items)
        self._kept = _protected(items, self._items)
        self._last_use = _effective_use(items, self._items)
        self._removed: dict[str, str] = {}
        self._stay: dict[str, str] = {}

    def decide(self, now_s: float) -> list[Decision]:
        order = sorted(self._items, key=lambda uid: (self._last_use[uid], len(self._needed_by[uid]), uid))
        self._remove_useless()
        if self._limits.older_than_s is not None:
            for uid in order:
                if now_s - self._last_use[uid] > self._limits.older_than_s:
                    self._remove(uid, "not used for longer than asked")
        if self._limits.max_size_bytes is not None:
            total = sum(item.size_bytes for uid, item in self._items.items() if uid not in self._removed)
            for uid in order:
                if total <= self._limits.max_size_bytes:
                    break
                total -= self._remove(uid, "least recently used, and the cache is larger than asked")
        self._remove_useless()
        gone = [Decision(uid, True, reason) for uid, reason in self._removed.items()]
        return gone + [Decision(uid, False, reason) for uid, reason in self._stay.items() if uid not in self._removed]

    def _remove_useless(self) -> None:
        """Removes what can never be used again, unless something that stays needs it."""
        for uid in [uid for uid, item in self._items.items() if item.useless]:
            unit = [name for name in _with_dependents(uid, self._needed_by) if name not in self._removed]
            holder = next((name for name in unit if name in self._kept or not self._items[name].useless), "")
            if holder:
                self._stay[uid] = self._kept.get(uid) or f"needed by {holder}"
            else:
                self._removed.update((name, self._items[name].useless) for name in reversed(unit))

    def _remove(self, uid: str, reason: str) -> int:
        """Removes an entry with all that need it; the bytes that this frees, 0 when one of them must stay."""
        if uid in self._removed:
            return 0
        unit = [name for name in _with_dependents(uid, self._needed_by) if name not in self._removed]
        holder = next((name for name in unit if name in self._kept), "")
        if holder:
            kept = self._kept[holder]
            self._stay[uid] = kept if holder == uid else f"needed by {holder}, which is {kept}"
            return 0
        for name in reversed(unit):
            self._removed[name] = reason if name == uid else f"needs {uid}, which goes: {reason}"
        return sum(self._items[name].size_bytes for name in unit)


def _needed_by(items: Iterable[Item]) -> dict[str, set[str]]:
    """Entry to the entries that were made with it."""
    found: dict[str, set[str]] = {item.uid: set() for item in items}
    for item in items:
        for uid in item.depends_on:
            if uid in found and uid != item.uid:
                found[uid].add(item.uid)
    return found


def _with_dependents(uid: str, needed_by: Mapping[str, set[str]]) -> list[str]:
    """The entry and all that need it, directly or not."""
    found, seen = [uid], {uid}
    for name in found:
        more = sorted(needed_by[name] - seen)
        found += more
        seen.update(more)
    return found


def _protected(items: Iterable[Item], by_uid: Mapping[str, Item]) -> dict[str, str]:
    """The entries that must stay, with the reason: those marked so, and all that these need."""
    roots = [item for item in items if item.kept_because]
    kept = {root.uid: root.kept_because for root in roots}
    for root in roots:
        queue = [root.uid]
        for uid in queue:
            for name in by_uid[uid].depends_on:
                if name in by_uid and name not in kept:
                    queue.append(name)
                    kept[name] = f"needed by {root.uid}, which is {root.kept_because}"
    return kept


def _effective_use(items: Iterable[Item], by_uid: Mapping[str, Item]) -> dict[str, float]:
    """Entry to the last use of it or of any entry that needs it, directly or not."""
    last: dict[str, float] = {}
    for item in sorted(items, key=lambda item: -item.last_use_s):
        queue = [item.uid]
        for uid in queue:
            if uid not in last:
                last[uid] = item.last_use_s
                queue += [name for name in by_uid[uid].depends_on if name in by_uid]
    return last
