"""Writes all results of a database as files and reads them back: into an empty database they give the same rows.

    results-export.json    {"format": 1, "signers": [...], "results": [
                           {"id", "state", "added_utc", "source", "signer", "result": {...}}, ...
                           ], "actions": [...]}
    files/<sha256>         the files of results whose bodies are kept

A withdrawn result has its kind, run_id and digest in the place of `result`. `results` stands in the order in which they
were added, one a line. results-export.json is written last.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_bytes, given_text, json_object
from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.store.keys import key_id_of
from crowdperf.store.model import NewResult, Signer, Source
from crowdperf.store.result_folders import LeftOut
from crowdperf.store.result_json import WrongFields, WrongObject, result_object, result_of, value_of
from crowdperf.store.select import read_result
from crowdperf.store.store import Action, Store

EXPORT, FILES = "results-export.json", "files"
FORMAT = 1
_LARGEST_EXPORT_BYTES = 1 << 30
"""Of the list of results, without their files; 10,000 results have some 100 MB (this project's choice)."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NotEmpty(ValueError):
    """The output folder contains something else."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: results, withdrawn ones among them, and files with their bodies."""

    results: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedResult:
    """A result of an export. new: None of a withdrawn one, of which `gone` has id, kind, run_id and digest, and
    marks what its log is known by."""

    id: str
    state: str
    added_utc: str
    source: Source
    signer: Signer | None
    new: NewResult | None
    gone: Mapping[str, str]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export as it was read. left_out: results with a wrong field. trust: of keys that somebody knows or blocked."""

    results: tuple[ExportedResult, ...]
    left_out: tuple[LeftOut, ...]
    actions: tuple[Action, ...]
    trust: Mapping[str, str]


def _files_of(store: Store, output: Path, result_id: str) -> dict[str, str]:
    """Write the bodies of a result's files that are not there yet; return the digests of those with a body by name."""
    found = store.connection.execute(
        "SELECT name, sha256, body FROM file WHERE result_id = ? AND body IS NOT NULL", (result_id,)
    )
    digests = {}
    for name, sha256, body in found:
        digests[str(name)] = str(sha256)
        path = output / FILES / str(sha256)
        if not path.exists():
            write_bytes_whole(path, body)
    return digests


def _withdrawn_object(store: Store, result_id: str) -> dict[str, Any]:
    row = store.connection.execute(
        "SELECT added_utc, signer, result.kind, run_id, result.digest, source.kind, source.name, source.digest "
        "FROM result JOIN source ON source.id = source_id WHERE result.id = ?",
        (result_id,),
    ).fetchone()
    return {
        "id": result_id,
        "state": "withdrawn",
        "added_utc": row[0],
        "source": {"kind": row[5], "name": row[6], "digest": row[7]},
        "signer": row[1],
        "kind": row[2],
        "run_id": row[3],
        "digest": row[4],
        "marks": [
            found[0]
            for found in store.connection.execute(
                "SELECT mark FROM log WHERE result_id = ? ORDER BY mark", (result_id,)
            )
        ],
    }


def _result_object(store: Store, result_id: str, state: str, names: Collection[str]) -> dict[str, Any]:
    """The object of a result; `names`: of its files with a body."""
    kept = read_result(store.connection, result_id)
    found = result_object(kept.result)
    return {
        "id": result_id,
        "state": state,
        "added_utc": kept.added_utc,
        "source": dataclasses.asdict(kept.source),
        "signer": kept.signer.key_id if kept.signer is not None else None,
        "result": {**found, "files": [{**file, "is_kept": file["name"] in names} for file in found["files"]]},
    }


def _signers(store: Store) -> list[dict[str, Any]]:
    found = store.connection.execute("SELECT key_id, public_key, alias, trust FROM signer ORDER BY key_id")
    return [{"key_id": row[0], "public_key": row[1].hex(), "alias": row[2], "trust": row[3]} for row in found]


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def write_export(store: Store, output: Path) -> Exported:
    """Write all results into a folder, which is new, empty or an earlier export. Raises NotEmpty, OSError."""
    if output.exists() and not (output / EXPORT).is_file() and any(output.iterdir()):
        raise NotEmpty(f"{output} contains something else\n  hint: use a new or an empty folder")
    output.mkdir(parents=True, exist_ok=True)
    count, digests = 0, set[str]()
    unfinished = output / f".{EXPORT}.part"
    with store.transaction(), unfinished.open("w", encoding="ascii") as file:
        rows = store.connection.execute("SELECT id, state FROM result ORDER BY seq").fetchall()
        file.write(f'{{"format": {FORMAT},\n"signers": {_line(_signers(store))},\n"results": [')
        for result_id, state in rows:
            kept = _files_of(store, output, result_id)
            digests.update(kept.values())
            is_gone = state == "withdrawn"
            found = _withdrawn_object(store, result_id) if is_gone else _result_object(store, result_id, state, kept)
            file.write(f"{',' if count else ''}\n{_line(found)}")
            count += 1
        actions = [dataclasses.asdict(action) for action in reversed(store.actions(limit=-1))]
        file.write(f'\n],\n"actions": {_line(actions)}}}\n')
    os.replace(unfinished, output / EXPORT)
    for path in (output / FILES).glob("*"):
        if path.name not in digests and _SHA256.fullmatch(path.name):
            path.unlink()  # of a result that was withdrawn since the earlier export
    return Exported(count, len(digests))


def _objects(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = content.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise WrongObject(f"{EXPORT}: {name} must be a list of objects")
    return found


def _result(folder: Path, content: Mapping[str, Any]) -> NewResult:
    """A result with the bodies that the export has. Raises WrongObject for one that is not what it says."""
    bodies: dict[str, bytes | None] = {}
    files = _objects(content, "files")
    for file in files:
        sha256 = str(file.get("sha256"))
        if not file.get("is_kept") or not _SHA256.fullmatch(sha256):
            continue
        path = folder / FILES / sha256
        if not path.is_file():
            raise WrongObject(f"{FILES}/{sha256} is missing")
        body = given_bytes(path)
        if hashlib.sha256(body).hexdigest() != sha256:
            raise WrongObject(f"{FILES}/{sha256} has been changed: its SHA-256 is another one")
        bodies[str(file.get("name"))] = body
    own = [{name: value for name, value in file.items() if name != "is_kept"} for file in files]
    return result_of({**content, "files": own}, bodies)


def _kept(folder: Path, row: Mapping[str, Any], signers: Mapping[str, Signer]) -> ExportedResult | LeftOut:
    result, gone = row.get("result"), {}
    if isinstance(result, Mapping):
        try:
            new = _result(folder, result)
        except WrongFields as error:
            return LeftOut(str(result.get("run_id")), str(error))
    elif row.get("state") == "withdrawn":
        new, gone = None, {name: str(row.get(name)) for name in ("id", "kind", "run_id", "digest")}
    else:
        raise WrongObject(f"{EXPORT}: result {row.get('id')} has no content")
    key_id = row.get("signer")
    if key_id is not None and key_id not in signers:
        raise WrongObject(f"{EXPORT}: result {row.get('id')} has a signer {key_id} that is not among the signers")
    return ExportedResult(
        id=str(row.get("id")),
        state=str(row.get("state")),
        added_utc=str(row.get("added_utc")),
        source=value_of(Source, row.get("source"), f"{EXPORT}: result {row.get('id')}: source"),
        signer=signers[key_id] if key_id is not None else None,
        new=new,
        gone=gone,
        marks=tuple(str(mark) for mark in row.get("marks") or ()),
    )


def _signer(row: Mapping[str, Any]) -> Signer:
    try:
        found = Signer(key_id=row["key_id"], public_key=bytes.fromhex(row["public_key"]), alias=row["alias"])
    except (KeyError, TypeError, ValueError) as error:
        raise WrongObject(f"{EXPORT}: signers: {error}") from error
    if found.key_id != key_id_of(found.public_key):
        raise WrongObject(
            f"{EXPORT}: signers: key_id {found.key_id} is not that of its public key, {key_id_of(found.public_key)}"
        )
    return found


def read_export(folder: Path) -> Export:
    """Return what was exported. Raises WrongObject, OSError."""
    try:
        content = json_object(given_text(folder / EXPORT, _LARGEST_EXPORT_BYTES))
    except ValueError as error:
        raise WrongObject(f"{EXPORT}: {error}") from error
    if content.get("format") != FORMAT:
        raise WrongObject(f"{EXPORT}: format must be {FORMAT}, got {content.get('format')!r}")
    rows = _objects(content, "signers")
    signers = {signer.key_id: signer for signer in map(_signer, rows)}
    read = [_kept(folder, row, signers) for row in _objects(content, "results")]
    return Export(
        results=tuple(one for one in read if isinstance(one, ExportedResult)),
        left_out=tuple(one for one in read if isinstance(one, LeftOut)),
        actions=tuple(value_of(Action, row, f"{EXPORT}: actions") for row in _objects(content, "actions")),
        trust={str(row["key_id"]): str(row.get("trust", "none")) for row in rows if row.get("trust") != "none"},
    )
