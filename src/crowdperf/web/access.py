"""Who may do what: the tokens of a collector, short-lived passes for moderation, limits per hour.

Nothing here is kept about a visitor: an address only counts, hashed with a key that lives for a day.
"""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crowdperf.kit.text_documents import given_text
from crowdperf.kit.whole_file import write_once

UPLOAD, MODERATION = "upload", "moderation"
_SHORTEST_TOKEN: Final = 16
PASS_LASTS_S: Final = 15 * 60


class TokenFileError(Exception):
    """The file of the tokens cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The two secrets of a collector: volunteers get the first, the second hides results and blocks keys."""

    upload: str
    moderation: str

    def allows(self, kind: str, given: str) -> bool:
        """Whether a token that came from outside is the one of `kind`; the time it takes says nothing about it."""
        wanted = {UPLOAD: self.upload, MODERATION: self.moderation}[kind]
        return hmac.compare_digest(wanted.encode(), given.encode("utf-8", "surrogatepass"))


def tokens_of(path: Path) -> tuple[Tokens, bool]:
    """The tokens in a file, which is made where it is missing, for its owner only; and whether it was made.

    The file has two lines, `upload TOKEN` and `moderation TOKEN`. Raises TokenFileError.
    """
    if path.exists():
        return _read_tokens(path), False
    made = Tokens(secrets.token_urlsafe(24), secrets.token_urlsafe(24))
    try:
        is_made = write_once(path, f"{UPLOAD} {made.upload}\n{MODERATION} {made.moderation}\n".encode("ascii"), 0o600)
    except OSError as error:
        raise TokenFileError(f"the tokens cannot be written: {error}") from error
    return (made, True) if is_made else (_read_tokens(path), False)


_LARGEST_BYTES = 1 << 16


def _read_tokens(path: Path) -> Tokens:
    try:
        if path.stat().st_mode & 0o077:
            raise TokenFileError(f"{path} can be read by others\nhint: chmod 600 '{path}'")
        found = dict(line.split(None, 1) for line in given_text(path, _LARGEST_BYTES).splitlines() if line.strip())
    except (OSError, ValueError) as error:
        raise TokenFileError(f"{path} cannot be read: {error}") from error
    tokens = {name: found.get(name, "").strip() for name in (UPLOAD, MODERATION)}
    short = [name for name, token in tokens.items() if len(token) < _SHORTEST_TOKEN]
    if short or len(found) != len(tokens) or len(set(tokens.values())) != len(tokens):
        raise TokenFileError(
            f"{path} must have two lines, `{UPLOAD} TOKEN` and `{MODERATION} TOKEN`, with two different tokens of"
            f" {_SHORTEST_TOKEN} characters or more\nhint: remove it, and the next start makes new ones"
        )
    return Tokens(tokens[UPLOAD], tokens[MODERATION])


@dataclass(slots=True)
class Limit:
    """At most `most` events of one key within `within_s` seconds. Remembers at most `max_keys` keys."""

    most: int
    within_s: float
    clock: Callable[[], float] = time.monotonic
    max_keys: int = 10_000
    _events: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def wait_s(self, key: str) -> float:
        """Seconds until `key` may do it again; 0 where it may now. Nothing is counted."""
        events = self._recent(key)
        return 0.0 if len(events) < self.most else max(events[0] + self.within_s - self.clock(), 0.001)

    def count(self, key: str) -> None:
        """Count one event of `key`."""
        self._events[key] = events = self._recent(key)
        events.append(self.clock())
        self._events.move_to_end(key)
        while len(self._events) > self.max_keys:
            self._events.popitem(last=False)

    def _recent(self, key: str) -> deque[float]:
        events = self._events.get(key, deque())
        while events and events[0] <= self.clock() - self.within_s:
            events.popleft()
        return events


@dataclass(slots=True)
class AddressHash:
    """Turns an address into a word that says nothing about it from the next day on."""

    day: int = -1
    key: bytes = b""

    def word(self, address: str) -> str:
        """The address hashed with today's key; of IPv6 the network, because a host has 2**64 addresses in it."""
        today = int(time.time() // 86_400)
        if today != self.day:
            self.day, self.key = today, secrets.token_bytes(32)
        counted = _network(address).encode("utf-8", "replace")
        return hmac.new(self.key, counted, hashlib.sha256).hexdigest()[:16]


def _network(address: str) -> str:
    """The /64 network of an IPv6 address, the IPv4 address that one stands for, anything else as it is."""
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Network((found, 64), strict=False))


@dataclass(frozen=True, slots=True)
class Passes:
    """Makes and reads the passes in the forms of moderation: who has one has shown the token, minutes ago.

    The key lives as long as the process, so a restart ends all of them. A page of another site has none to send.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def make(self, now_s: float) -> str:
        """A pass for the next quarter of an hour."""
        ends = str(int(now_s) + PASS_LASTS_S)
        return f"{ends}.{self._seal(ends)}"

    def is_good(self, given: str, now_s: float) -> bool:
        """Whether `given` was made here and has not ended."""
        ends, _, seal = given.partition(".")
        is_ours = hmac.compare_digest(seal.encode("utf-8", "surrogatepass"), self._seal(ends).encode())
        return is_ours and ends.isascii() and ends.isdigit() and now_s < int(ends)

    def _seal(self, ends: str) -> str:
        return hmac.new(self.key, f"moderation {ends}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
