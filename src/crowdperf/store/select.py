"""Reads whole values out of the tables: a result, a configuration, a system."""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from crowdperf.store.keys import CONFIGURATION, SYSTEM
from crowdperf.store.model import (
    Accuracy,
    Configuration,
    CurvePoint,
    Figure,
    File,
    NewResult,
    Result,
    Signer,
    Source,
    System,
)


def _rows(db: sqlite3.Connection, text: str, *values: object) -> list[dict[str, Any]]:
    found = db.execute(text, values)
    names = [column[0] for column in found.description]
    return [dict(zip(names, columns, strict=True)) for columns in found]


def _parts(db: sqlite3.Connection, table: str, columns: str, result_id: str) -> list[dict[str, Any]]:
    return _rows(db, f"SELECT {columns} FROM {table} WHERE result_id = ? ORDER BY place", result_id)


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _system(row: dict[str, Any], facts: dict[str, Any]) -> System:
    return System(**{name: row[name] for name in SYSTEM}, facts=facts)


def _configuration(row: dict[str, Any], place: tuple[str, str, str], facts: dict[str, Any]) -> Configuration:
    return Configuration(
        **{name: row[name] for name in CONFIGURATION},
        round=place[0],
        division=place[1],
        category=place[2],
        settings=json.loads(row["settings"]),
        system=_system(row, facts),
    )


_JOINED = "FROM configuration JOIN system ON system.key = configuration.system_key"


def configuration_of(db: sqlite3.Connection, key: str) -> Configuration | None:
    """The configuration of a key, without what its results may differ in."""
    found = _rows(db, f"SELECT system.*, configuration.* {_JOINED} WHERE configuration.key = ?", key)
    return _configuration(found[0], ("", "", ""), {}) if found else None


def common_facts(all_facts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What all of these say alike."""
    common: dict[str, Any] | None = None
    for facts in all_facts:
        common = facts if common is None else {k: v for k, v in common.items() if k in facts and facts[k] == v}
    return common or {}


def system_of(db: sqlite3.Connection, key: str) -> System | None:
    """The system of a key with the facts that its results agree on; of hidden ones nothing is told."""
    found = _rows(db, "SELECT * FROM system WHERE key = ?", key)
    if not found:
        return None
    texts = db.execute(
        "SELECT DISTINCT system_facts FROM result JOIN listing ON listing.seq = result.seq "
        "WHERE listing.system_key = ? AND listing.state = 'shown'",
        (key,),
    )
    return _system(found[0], common_facts(json.loads(text) for (text,) in texts))


def _new_result(db: sqlite3.Connection, row: dict[str, Any]) -> NewResult:
    result_id = row["id"]
    names = ("run_id", "kind", "made_utc", "stack_version", "metric", "value", "unit", "verification", "command",
             "submitter", "system_name")  # fmt: skip
    files = _parts(db, "file", "name, sha256, bytes", result_id)
    scores = _parts(db, "accuracy", "name, value, target, passed, basis", result_id)
    points = "concurrency, region, system_tps, tps_per_user, ttft_p90_ms, accuracy"
    place = (row["round"], row["division"], row["category"])
    return NewResult(
        **{name: row[name] for name in names},
        configuration=_configuration(row, place, json.loads(row["system_facts"])),
        labels=tuple(json.loads(row["labels"])),
        higher_is_better=bool(row["higher_is_better"]),
        valid=_truth(row["valid"]),
        figures=tuple(Figure(**part) for part in _parts(db, "figure", "name, value, unit", result_id)),
        accuracy=tuple(Accuracy(**{**part, "passed": _truth(part["passed"])}) for part in scores),
        files=tuple(
            File(name=part["name"], sha256=part["sha256"], size_bytes=part["bytes"], body=None) for part in files
        ),
        curve=tuple(CurvePoint(**part) for part in _parts(db, "curve_point", points, result_id)),
        notes=tuple(json.loads(row["notes"])),
        raw=json.loads(row["raw"]),
    )


def read_result(db: sqlite3.Connection, result_id: str) -> Result:
    """A result that is kept and not withdrawn; its files without their bodies."""
    row = _rows(
        db,
        "SELECT system.*, configuration.*, result.*, listing.state AS state_shown "
        f"{_JOINED} JOIN result ON result.configuration_key = configuration.key "
        "JOIN listing ON listing.seq = result.seq WHERE result.id = ?",
        result_id,
    )[0]
    source = _rows(db, "SELECT kind, name, digest FROM source WHERE id = ?", row["source_id"])[0]
    signers = _rows(db, "SELECT key_id, public_key, alias FROM signer WHERE key_id = ?", row["signer"])
    return Result(
        id=row["id"],
        key=row["configuration_key"],
        system_key=row["system_key"],
        added_utc=row["added_utc"],
        state=row["state_shown"],
        source=Source(**source),
        signer=Signer(**signers[0]) if signers else None,
        result=_new_result(db, row),
    )
