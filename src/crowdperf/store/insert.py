"""The rows of one result, written in the caller's transaction: store.py says when and what follows."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.canonical_json import canonical_json
from crowdperf.store.keys import CONFIGURATION, SYSTEM, configuration_key, curve_marks, log_marks, result_id, system_key
from crowdperf.store.model import Configuration, Item, NewResult, Result, Signer, Source, System
from crowdperf.store.result_json import fields_of, kept_text, kept_value, result_digest

_PARTS = ("figure", "accuracy", "file", "curve_point")


@dataclass(frozen=True, slots=True)
class StoreOutcome:
    """What stands in the database of a result; other content: it stood there before with another digest.

    same_log: why it is not kept though it is new: another result has its log. "" otherwise.
    """

    id: str
    state: str
    is_new: bool
    has_other_content: bool
    same_log: str = ""


def _insert(db: sqlite3.Connection, table: str, row: dict[str, Any], *, or_keep: bool = False) -> int:
    """Insert a row; names are this module's own, values are bound."""
    verb = "INSERT OR IGNORE" if or_keep else "INSERT"
    text = f"{verb} INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    values = tuple(kept_text(value) if isinstance(value, str) else value for value in row.values())
    return int(db.execute(text, values).lastrowid or 0)


def _json(value: Any) -> str:
    return json.dumps(kept_value(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _source_id(db: sqlite3.Connection, source: Source, now: str) -> int:
    row = {"kind": source.kind, "name": source.name, "digest": source.digest, "imported_utc": now}
    _insert(db, "source", row, or_keep=True)
    text = "SELECT id FROM source WHERE kind = ? AND name = ? AND digest = ?"
    return int(db.execute(text, (source.kind, kept_text(source.name), source.digest)).fetchone()[0])


def _keep_signer(db: sqlite3.Connection, signer: Signer, now: str) -> None:
    row = {"key_id": signer.key_id, "public_key": signer.public_key, "alias": signer.alias, "first_seen": now}
    _insert(db, "signer", row, or_keep=True)
    alias = kept_text(signer.alias)
    db.execute("UPDATE signer SET alias = ? WHERE key_id = ? AND alias <> ?", (alias, signer.key_id, alias))


def _keep_system(db: sqlite3.Connection, system: System) -> str:
    key = system_key(system)
    _insert(db, "system", {"key": key, **{name: getattr(system, name) for name in SYSTEM}}, or_keep=True)
    return key


def _keep_configuration(db: sqlite3.Connection, found: Configuration) -> str:
    key = configuration_key(found)
    row = {
        **{name: getattr(found, name) for name in CONFIGURATION},
        "key": key,
        "settings": canonical_json(kept_value(found.settings)),
        "system_key": _keep_system(db, found.system),
    }
    _insert(db, "configuration", row, or_keep=True)
    return key


def _result_row(added: Item) -> dict[str, Any]:
    new, place = added.new, added.new.configuration
    names = ("run_id", "kind", "submitter", "system_name", "made_utc", "stack_version", "metric", "value", "unit",
             "higher_is_better", "valid", "verification", "command")  # fmt: skip
    return {
        **{name: getattr(new, name) for name in names},
        "round": place.round,
        "division": place.division,
        "category": place.category,
        "labels": _json(new.labels),
        "added_utc": added.added_utc,
        "notes": _json(new.notes),
        "system_facts": _json(place.system.facts),
        "raw": _json(new.raw),
    }


def _keep_parts(db: sqlite3.Connection, row_id: str, new: NewResult) -> None:
    parts = (("figure", new.figures), ("accuracy", new.accuracy), ("curve_point", new.curve))
    rows = [(table, fields_of(part)) for table, found in parts for part in found]
    rows += [("file", {"name": f.name, "sha256": f.sha256, "bytes": f.size_bytes, "body": f.body}) for f in new.files]
    for place, (table, row) in enumerate(rows):
        _insert(db, table, {"result_id": row_id, "place": place, **row})


_SEARCHED = ("benchmark", "scenario", "precision", "stack", "stack_version", "division", "round", "accelerator", "cpu",
             "submitter", "system_name")  # fmt: skip


def words_of(row: dict[str, Any], alias: str) -> str:
    """What a search finds a result by; `row` has the columns of result, configuration and system."""
    facts = (value for value in json.loads(row["system_facts"]).values() if isinstance(value, str))
    parts = (*(row[name] for name in _SEARCHED), alias, *json.loads(row["labels"]), *facts)
    return " ".join(dict.fromkeys(part for part in parts if part))


def _list(db: sqlite3.Connection, seq: int, alias: str) -> None:
    """Make the rows that pages of many results read."""
    row = db.execute(
        "SELECT result.*, configuration.*, system.accelerator, system.accelerator_count, system.nodes, system.cpu "
        "FROM result JOIN configuration ON configuration.key = configuration_key "
        "JOIN system ON system.key = system_key WHERE seq = ?",
        (seq,),
    )
    found = dict(zip((column[0] for column in row.description), row.fetchone(), strict=True))
    names = [str(column[1]) for column in db.execute("PRAGMA table_info(listing)")]
    _insert(db, "listing", {**{name: found[name] for name in names}, "signer": found["signer"] or ""})
    for label in dict.fromkeys(json.loads(found["labels"])):
        _insert(db, "label", {"label": label, "seq": seq})
    _insert(db, "search", {"rowid": seq, "words": words_of(found, alias)})


def _marks_of(new: NewResult) -> tuple[str, ...]:
    return curve_marks(new.curve) + log_marks(new.raw.get("detail_sha256"), new.value, new.figures)


def add_marks(db: sqlite3.Connection, marks: Iterable[str], row_id: str) -> None:
    """Note that a result has these marks of a log, but for those that another one has."""
    for mark in marks:
        _insert(db, "log", {"mark": mark, "result_id": row_id}, or_keep=True)


def _same_log(db: sqlite3.Connection, new: NewResult) -> StoreOutcome | None:
    """The kept result with the log of a new one. None where there is none, and for tables that MLCommons published.

    One run is one result: an own import and the shared copy of the same run, on the same machine, are the same one.
    """
    marks = _marks_of(new) if new.kind != "published" else ()
    found = db.execute(
        "SELECT result.id, state, kind, system_key FROM log JOIN result ON result.id = result_id "
        "LEFT JOIN configuration ON configuration.key = configuration_key "
        f"WHERE mark IN ({', '.join('?' * len(marks))}) LIMIT 1",
        marks,
    ).fetchone()
    if found is None:
        return None
    row_id, state, kind, system = found
    if state == "withdrawn":
        return StoreOutcome(row_id, state, False, False)
    if system != system_key(new.configuration.system):
        return StoreOutcome(row_id, state, False, False, "on another machine")
    return StoreOutcome(row_id, state, False, False, "" if kind != new.kind or kind == "own" else "as another result")


_FREED = """
DELETE FROM log WHERE result_id = ? AND (SELECT what FROM action WHERE action.result_id = log.result_id
AND what IN ('hide', 'unhide', 'free') ORDER BY seq DESC LIMIT 1) = 'free'
"""


def _free_hidden(db: sqlite3.Connection, new: NewResult, key_id: str) -> None:
    """Free the log of a new result from one of another key that a moderator freed: the copy of a thief."""
    marks = _marks_of(new) if new.kind != "published" else ()
    held = db.execute(
        "SELECT DISTINCT result.id FROM log JOIN result ON result.id = result_id WHERE state = 'hidden' "
        f"AND coalesce(signer, '') != ? AND mark IN ({', '.join('?' * len(marks))})",
        (key_id, *marks),
    ).fetchall()
    for (row_id,) in held:
        db.execute(_FREED, (row_id,))


def log_taken_by(db: sqlite3.Connection, one: Result) -> str:
    """Return the id of the other result that has the log of this one now; "" where none has."""
    marks = _marks_of(one.result) if one.result.kind != "published" else ()
    found = db.execute(
        f"SELECT result_id FROM log WHERE mark IN ({', '.join('?' * len(marks))}) AND result_id != ? LIMIT 1",
        (*marks, one.id),
    ).fetchone()
    return "" if found is None else str(found[0])


def add_result(db: sqlite3.Connection, added: Item) -> StoreOutcome:
    """Write a result unless it is there. Raises ValueError for what cannot be written."""
    new, signer = added.new, added.signer
    key_id = signer.key_id if signer is not None else ""
    found_id, digest = result_id(new.kind, key_id, new.run_id), result_digest(new)
    found = db.execute("SELECT state, digest FROM result WHERE id = ?", (found_id,)).fetchone()
    if found is not None:
        return StoreOutcome(found_id, found[0], False, found[1] != digest)
    _free_hidden(db, new, key_id)
    if (same := _same_log(db, new)) is not None:
        return same
    if signer is not None:
        _keep_signer(db, signer, added.added_utc)
    row = {
        **_result_row(added),
        "id": found_id,
        "digest": digest,
        "configuration_key": _keep_configuration(db, new.configuration),
        "source_id": _source_id(db, added.source, added.added_utc),
        "signer": key_id or None,
    }
    seq = _insert(db, "result", row)
    _keep_parts(db, found_id, new)
    add_marks(db, _marks_of(new), found_id)
    _list(db, seq, signer.alias if signer is not None else "")
    set_states(db, "id", found_id)
    return StoreOutcome(found_id, "shown", True, False)


_TEXTS = ("round", "division", "category", "submitter", "system_name", "made_utc", "stack_version", "metric", "unit",
          "command")  # fmt: skip
_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(_TEXTS, ""),
    **dict.fromkeys(("labels", "notes"), "[]"),
    **dict.fromkeys(("system_facts", "raw"), "{}"),
    "state": "withdrawn",
    "verification": "none",
    "higher_is_better": 0,
    "configuration_key": None,
    "value": None,
    "valid": None,
}
"""The columns of a withdrawn result, but for its id, kind, run and digest."""


Origin = tuple[Source, Signer | None, str]
"""Where a withdrawn result came from: its source, its signer, and when it was added."""


def add_withdrawn(db: sqlite3.Connection, gone: Mapping[str, str], origin: Origin, marks: Iterable[str] = ()) -> bool:
    """Write a withdrawn result; False where its id is there. Raises sqlite3.IntegrityError for a wrong kind.

    gone: its id, kind, run_id and digest. marks: of its log.
    """
    if db.execute("SELECT 1 FROM result WHERE id = ?", (gone["id"],)).fetchone() is not None:
        return False
    source, signer, added_utc = origin
    if signer is not None:
        _keep_signer(db, signer, added_utc)
    row = {
        **_NOTHING,
        **gone,
        "added_utc": added_utc,
        "source_id": _source_id(db, source, added_utc),
        "signer": signer.key_id if signer is not None else None,
    }
    _insert(db, "result", row)
    add_marks(db, marks, gone["id"])
    return True


def set_states(db: sqlite3.Connection, column: str, value: str) -> None:
    """Give the listing of a result (`id`) or of a key's results (`signer`) the state that the public sees."""
    db.execute(
        "UPDATE listing SET state = (SELECT CASE WHEN signer.trust = 'blocked' THEN 'hidden' ELSE result.state END "
        "FROM result LEFT JOIN signer ON signer.key_id = result.signer WHERE result.seq = listing.seq) "
        f"WHERE {column} = ?",
        (value,),
    )


def drop_body(db: sqlite3.Connection, row_id: str) -> None:
    """Drop all of a result but its id, its run, its digest, its source and its signer."""
    seq, key = db.execute("SELECT seq, configuration_key FROM result WHERE id = ?", (row_id,)).fetchone()
    for table in _PARTS:
        db.execute(f"DELETE FROM {table} WHERE result_id = ?", (row_id,))
    db.execute("DELETE FROM search WHERE rowid = ?", (seq,))
    db.execute("DELETE FROM label WHERE seq = ?", (seq,))
    db.execute("DELETE FROM listing WHERE seq = ?", (seq,))
    columns = ", ".join(f"{name} = ?" for name in _NOTHING)
    db.execute(f"UPDATE result SET {columns} WHERE seq = ?", (*_NOTHING.values(), seq))
    system = db.execute("SELECT system_key FROM configuration WHERE key = ?", (key,)).fetchone()[0]
    db.execute(
        "DELETE FROM configuration WHERE key = ? AND NOT EXISTS "
        "(SELECT 1 FROM result WHERE configuration_key = configuration.key)",
        (key,),
    )
    db.execute(
        "DELETE FROM system WHERE key = ? AND NOT EXISTS (SELECT 1 FROM configuration WHERE system_key = system.key)",
        (system,),
    )
