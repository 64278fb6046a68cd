"""Which cache entries ``cm gc cache`` removes and which it keeps, as one pure decision.

A finished entry that another finished entry was made with is kept as long as that other one. So an entry counts as used
when one that needs it was used, and entries are removed in the order of that time, each together with those that need
it. What a pinned entry needs, or one in use, is never removed.
"""

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


def decide(items: Sequence[Item], limits: Limits, now_s: float) -> tuple[dict[str, str], dict[str, str]]:
    """The uids that are removed, in order, and those that are kept although they are useless or break a limit, each
    with the reason. All others are kept, and no limit asks for their removal.
    """
    cache = _Cache(items)
    cache.remove_useless()
    if limits.older_than_s is not None:
        for uid in cache.by_last_use:
            if now_s - cache.last_use_s[uid] > limits.older_than_s:
                cache.remove(uid, "not used within --older-than")
    if limits.max_size_bytes is not None:
        for uid in cache.by_last_use:
            if cache.size_bytes <= limits.max_size_bytes:
                break
            cache.remove(uid, "least recently used, and the cache is larger than --max-size")
    cache.remove_useless()
    return cache.removed, {uid: reason for uid, reason in cache.kept.items() if uid not in cache.removed}


class _Cache:
    """The entries by uid with what needs each of them, and what was decided so far, with the reasons."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = {item.uid: item for item in sorted(items, key=lambda item: item.uid)}
        needs = {uid: sorted((self._items.keys() & item.depends_on) - {uid}) for uid, item in self._items.items()}
        self._needed_by: dict[str, list[str]] = {uid: [] for uid in self._items}
        for uid, needed in needs.items():
            for name in needed:
                self._needed_by[name].append(uid)
        self.size_bytes = sum(item.size_bytes for item in items)
        self.removed: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        reasons = {uid: item.kept_because for uid, item in self._items.items() if item.kept_because}
        self._must_stay = {
            uid: reasons.get(uid) or f"needed by {start}, which is {reasons[start]}"
            for uid, start in _reached(reasons, needs).items()
        }
        latest_first = sorted(self._items, key=lambda uid: -self._items[uid].last_use_s)
        self.last_use_s = {uid: self._items[start].last_use_s for uid, start in _reached(latest_first, needs).items()}
        """Of an entry, or of one that needs it."""
        self.by_last_use = sorted(self._items, key=lambda uid: (self.last_use_s[uid], len(self._needed_by[uid]), uid))

    def _with_dependents(self, uid: str) -> list[str]:
        """The entry and all that need it, directly or not, and are not removed; what needs others comes first."""
        return [name for name in reversed(_reached([uid], self._needed_by)) if name not in self.removed]

    def remove_useless(self) -> None:
        """Removes what can never be used again, unless something that is kept needs it."""
        for uid in [uid for uid, item in self._items.items() if item.useless]:
            unit = self._with_dependents(uid)
            holders = [name for name in unit if name in self._must_stay or not self._items[name].useless]
            if holders:
                self.kept[uid] = self._must_stay.get(uid) or f"needed by {holders[-1]}"
            else:
                self._take({name: self._items[name].useless for name in unit})

    def remove(self, uid: str, reason: str) -> None:
        """Removes an entry with all that need it, unless one of them must stay."""
        unit = self._with_dependents(uid) if uid not in self.removed else []
        holders = [name for name in unit if name in self._must_stay]
        if holders:
            cause = self._must_stay[holders[-1]]
            self.kept[uid] = cause if holders[-1] == uid else f"needed by {holders[-1]}, which is {cause}"
        else:
            self._take({name: reason if name == uid else f"needs {uid}, which is removed: {reason}" for name in unit})

    def _take(self, reasons: Mapping[str, str]) -> None:
        self.removed.update(reasons)
        self.size_bytes -= sum(self._items[name].size_bytes for name in reasons)


def _reached(starts: Iterable[str], graph: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """All that is reached from ``starts``, these included, to the start from which it is reached first."""
    found: dict[str, str] = {}
    for start in starts:
        waiting = [start]
        for name in waiting:
            if name not in found:
                found[name] = start
                waiting += graph[name]
    return found
