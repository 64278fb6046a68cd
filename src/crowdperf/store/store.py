"""The results database: adds results, finds them, gives them out, and records what was done to them.

One Store is one connection and is used by one thread at a time; a server opens one for each thread that reads, and one
that writes. Nothing is ever deleted but what its owner withdraws.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from crowdperf.kit.records import number_of
from crowdperf.store import query
from crowdperf.store.insert import add_result, drop_body, log_taken_by, set_states
from crowdperf.store.model import Configuration, Item, NewResult, Result, Signer, Source, System
from crowdperf.store.query import Counts, Filter, Groups, Page, Sort
from crowdperf.store.result_json import kept_text
from crowdperf.store.schema import BUSY_TIMEOUT_S, connect
from crowdperf.store.select import configuration_of, read_result, system_of

What = Literal["hide", "free", "unhide", "note", "block", "unblock", "know", "withdraw"]
OF_A_KEY = ("block", "unblock", "know")
_SHORT_WAIT_MS = 200
_SIGNER = "SELECT alias, trust FROM signer WHERE key_id = ?"
_TRUST = {"block": "blocked", "unblock": "none", "know": "known"}


class NoSuchResult(LookupError):
    """No result has this id."""


class Withdrawn(LookupError):
    """The result was withdrawn: its id is kept, its content is not."""

    def __init__(self, result_id: str, time_utc: str, reason: str) -> None:
        super().__init__(f"result {result_id} was withdrawn on {time_utc}: {reason or 'no reason'}")
        self.result_id, self.time_utc, self.reason = result_id, time_utc, reason


class Conflict(ValueError):
    """The same run of the same signer is kept with other content."""

    def __init__(self, result_id: str) -> None:
        super().__init__(f"this run is kept as {result_id} with other content")
        self.result_id = result_id


class SameLog(Conflict):
    """The log of this run is that of another result."""

    def __init__(self, result_id: str, how: str) -> None:
        ValueError.__init__(self, f"the log of this run is kept {how}: {result_id}. One run makes one result")
        self.result_id = result_id


@dataclass(frozen=True, slots=True)
class Added:
    """Where a result is kept; is_new: False where it was kept before."""

    id: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSigner:
    """A signer, when it was first seen, and how many of its results are kept (withdrawn ones not counted)."""

    signer: Signer
    first_seen: str
    trust: Literal["none", "known", "blocked"]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that was done to a result or to a key: result_id or signer is "" for the other."""

    time_utc: str
    actor: str
    result_id: str
    signer: str
    what: str
    reason: str


def now_utc() -> str:
    """This moment in seconds, `2026-11-23T10:20:30Z`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """An open results database. A context manager: closed at the end of a `with` block."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], str] = now_utc) -> None:
        self._db, self._clock = connection, clock
        self._groups: tuple[object, Groups] = (None, ())

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, clock: Callable[[], str] = now_utc) -> Store:
        """Open a database; made where there is none, unless `read_only`. Raises StoreError, sqlite3.Error."""
        return cls(connect(path, read_only=read_only), clock)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the modules of this package."""
        return self._db

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in the block is kept together or not at all; blocks may be nested."""
        is_outer = not self._db.in_transaction
        self._db.execute("BEGIN IMMEDIATE" if is_outer else "SAVEPOINT inner")
        try:
            yield
        except BaseException:
            if is_outer:
                self._db.execute("ROLLBACK")
            else:
                self._db.execute("ROLLBACK TO inner")
                self._db.execute("RELEASE inner")
            raise
        self._db.execute("COMMIT" if is_outer else "RELEASE inner")

    def add(self, new: NewResult, source: Source, signer: Signer | None = None, *, added_utc: str = "") -> Added:
        """Keep a result; one that is kept already stays as it is.

        added_utc: when it was first kept, for an import of an export; now where it is empty. Raises Conflict,
        SameLog, Withdrawn, ValueError for a number or text that cannot be kept.
        """
        numbers = [new.value, *(figure.value for figure in new.figures), *(score.value for score in new.accuracy)]
        if None in map(number_of, numbers):
            raise ValueError("a result is not finite")
        with self.transaction():
            try:
                row = add_result(self._db, Item(new, source, signer, added_utc or self._clock()))
            except OverflowError as error:
                raise ValueError(f"a number is too large to be kept: {error}") from error
            if row.state == "withdrawn":
                raise self._withdrawn(row.id)
            if row.same_log:
                raise SameLog(row.id, row.same_log)
            if row.has_other_content:
                raise Conflict(row.id)
        return Added(row.id, row.is_new)

    def seen(self) -> dict[str, str]:
        """The state of the results whose files need not be read again, by the stamp of these files."""
        return dict(self._db.execute("SELECT stamp, state FROM seen JOIN result ON result.id = result_id"))

    def note_seen(self, stamp: str, result_id: str) -> None:
        """Note that files of this stamp gave a result that is kept."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO seen (stamp, result_id) VALUES (?, ?)", (stamp, result_id))

    def result(self, result_id: str) -> Result:
        """The whole result, hidden ones, too, without the bodies of its files. Raises NoSuchResult, Withdrawn."""
        if self._state(result_id) == "withdrawn":
            raise self._withdrawn(result_id)
        return read_result(self._db, result_id)

    def file(self, result_id: str, name: str) -> bytes | None:
        """The content of a result's file; None where only its digest is kept, or the result has no such file."""
        found = self._one("SELECT body FROM file WHERE result_id = ? AND name = ?", result_id, name)
        return None if found is None else found[0]

    def find(
        self,
        wanted: Filter | None = None,
        sort: Sort | None = None,
        after: str = "",
        limit: int = 100,
        has_details: bool = True,
    ) -> Page:
        """A page of results. after: `next_key` of the page before, "" for the first. Raises BadQuery.

        has_details: with the keys, settings, score and token times of each, which take as long as all the rest.
        """
        sort = sort or Sort()
        sql = query.page_sql(wanted or Filter(), sort, after, limit, has_details)
        found = self._db.execute(sql.text, sql.values).fetchall()
        signers = {key: self._db.execute(_SIGNER, (key,)).fetchone() for key in query.signers_of(found)}
        rows = query.rows_of(found[:limit], signers)
        next_key = query.key_of(sort, found[limit - 1][1], found[limit - 1][0]) if len(found) > limit else ""
        return Page(rows, next_key)

    def groups(self, wanted: Filter | None = None) -> Groups:
        """What `query.counts_of` counts the facets of: for this filter, and for those that choose more of them.

        They take half the time of a page, so the last ones are kept until a connection changes the database.
        """
        sql = query.groups_sql(wanted or Filter())
        is_kept = not self._db.in_transaction  # which may be taken back
        state = sql, self._one("PRAGMA data_version"), self._db.total_changes
        if not is_kept or self._groups[0] != state:
            self._groups = state if is_kept else None, self._db.execute(sql.text, sql.values).fetchall()
        return self._groups[1]

    def facets(self, wanted: Filter | None = None) -> Counts:
        """How many results a filter has, and how many for each value of each facet. Raises BadQuery."""
        return query.counts_of(self.groups(wanted), wanted or Filter())

    def configuration(self, key: str) -> Configuration | None:
        """The configuration of a key: without round, division, category and facts, which its results may differ in."""
        return configuration_of(self._db, key)

    def system(self, key: str) -> System | None:
        """The system of a key, with those facts that all its results which are shown agree on."""
        return system_of(self._db, key)

    def signer(self, key_id: str) -> KnownSigner | None:
        """Who has this key; None where nobody was seen with it."""
        found = self._one("SELECT key_id, public_key, alias, first_seen, trust FROM signer WHERE key_id = ?", key_id)
        if found is None:
            return None
        count = self._db.execute("SELECT count(*) FROM listing WHERE signer = ?", (key_id,)).fetchone()[0]
        return KnownSigner(
            signer=Signer(key_id=found[0], public_key=found[1], alias=found[2]),
            first_seen=found[3],
            trust=found[4],
            count=count,
        )

    def actions(self, *, result_id: str = "", signer: str = "", limit: int = 1000) -> tuple[Action, ...]:
        """What was done, the newest first: to one result, to one key, or at all."""
        condition = "result_id = ?" if result_id else "signer = ?" if signer else "? = ''"
        found = self._db.execute(
            "SELECT time, actor, coalesce(result_id, ''), coalesce(signer, ''), what, reason FROM action "
            f"WHERE {condition} ORDER BY seq DESC LIMIT ?",
            (result_id or signer, limit),
        )
        names = ("time_utc", "actor", "result_id", "signer", "what", "reason")
        return tuple(Action(**dict(zip(names, columns, strict=True))) for columns in found)

    def act(self, what: What, *, actor: str, reason: str, result_id: str = "", signer: str = "") -> None:
        """Hide, free, unhide or note a result; block, unblock or know a key; recorded with its reason.

        A blocked key's results are hidden as long as it is blocked. A hidden result keeps its log; that of a freed one,
        which is hidden too, may be sent with another key. Raises NoSuchResult, Withdrawn, LookupError; SameLog for
        showing a result whose log was.
        """
        with self.transaction():
            if what in OF_A_KEY:
                if self.signer(signer) is None:
                    raise LookupError(f"no result was sent with key {signer}")
                self._db.execute("UPDATE signer SET trust = ? WHERE key_id = ?", (_TRUST[what], signer))
                set_states(self._db, "signer", signer)
                result_id = ""
            else:
                signer = ""
                if self._state(result_id) == "withdrawn":
                    raise self._withdrawn(result_id)
                if what == "unhide" and (other := log_taken_by(self._db, read_result(self._db, result_id))):
                    raise SameLog(other, "as another result")
                if what in ("hide", "free", "unhide"):
                    state = "shown" if what == "unhide" else "hidden"
                    self._db.execute("UPDATE result SET state = ? WHERE id = ?", (state, result_id))
                    set_states(self._db, "id", result_id)
                elif what == "withdraw":
                    drop_body(self._db, result_id)
            self.record(Action(time_utc=self._clock(), actor=actor, result_id=result_id, signer=signer, what=what,
                                reason=reason))  # fmt: skip

    def withdraw(self, result_id: str, *, actor: str, reason: str = "") -> None:
        """Drop the content of a result for ever; its id stays. Raises NoSuchResult, Withdrawn."""
        self.act("withdraw", actor=actor, reason=reason, result_id=result_id)
        if not self._db.in_transaction:
            self._empty_log()

    def _empty_log(self) -> None:
        """Drop what was withdrawn from the write-ahead log as well; not where a reader is in the way."""
        self._db.execute(f"PRAGMA busy_timeout = {_SHORT_WAIT_MS}")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}")

    def record(self, action: Action) -> None:
        """Add to the list of what was done; `act` does so itself."""
        self._db.execute(
            "INSERT INTO action (time, actor, result_id, signer, what, reason) VALUES (?, ?, ?, ?, ?, ?)",
            (action.time_utc, action.actor, action.result_id or None, action.signer or None, action.what,
             action.reason),
        )  # fmt: skip

    def _one(self, text: str, *values: object) -> tuple[Any, ...] | None:
        bound = tuple(kept_text(value) if isinstance(value, str) else value for value in values)
        found = self._db.execute(text, bound).fetchone()
        return None if found is None else tuple(found)

    def _state(self, result_id: str) -> str:
        found = self._one("SELECT state FROM result WHERE id = ?", result_id)
        if found is None:
            raise NoSuchResult(f"unknown result {result_id}")
        return str(found[0])

    def _withdrawn(self, result_id: str) -> Withdrawn:
        found = self._one(
            "SELECT time, reason FROM action WHERE result_id = ? AND what = 'withdraw' ORDER BY seq DESC", result_id
        )
        time_utc, reason = found or ("", "")
        return Withdrawn(result_id, time_utc, reason)
