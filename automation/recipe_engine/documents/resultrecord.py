"""The record of a result: what is needed to make the result again, and what came out, in one file beside it.

    record.json   {"format": 1, "name": "digits/Offline/accuracy", "made_utc": "...", "duration_s": 12.5,
                   "command": "cm run script --tags=...",       the request as a line, for people
                   "request": {"inputs": {...}, "secrets": [...], "folder_input": "results_dir"},
                   "attachments": {"user_conf": "text"},        files that inputs name, as "<record>/user_conf"
                   "lock": {...},                               as ``cm lock script`` writes it
                   "recipe_files": {"alias,uid": {"customize.py": "<sha256>"}},
                   "journal": [...],                            what happened, without places
                   "inputs": {"model": {...}, "conf": {...}},   further inputs by group, as the recipe names them
                   "settings": {"batch_size": {"value": 4, "origin": "warm-up estimate"}},
                   "machine": {...},
                   "outcome": {"exact": {...}, "within": {"samples_per_second": {"value": 8.1, "unit": "1/s"}}},
                   "files": {"result.json": "<sha256>"},        the result itself
                   "seals": {"lock": "<sha256>", ...}}          one for each part: an edited one is named

The recipe says what the result is called, what makes it again and what counts as its outcome; the engine adds the rest.
Places of one machine are written as ``<home>``, ``<cache>`` and ``<result>``. Secrets are named, never kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..rules.errors import RequestError
from .lockfile import Lock, parse_lock, portable

FORMAT = 1
RECORD_FILE = "record.json"
ATTACHED = "<record>/"
"""How an input begins whose file is in the record itself."""
SEALS = "seals"
PARTS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "made_utc": str,
    "duration_s": (int, float),
    "command": str,
    "request": dict,
    "attachments": dict,
    "lock": dict,
    "recipe_files": dict,
    "journal": list,
    "inputs": dict,
    "settings": dict,
    "machine": dict,
    "outcome": dict,
    "files": dict,
}
"""The parts of a record and what each must be."""


class BadRecord(RequestError):
    """A record that cannot be used: missing parts, another format, or edited."""


class Quantity(NamedTuple):
    """A figure that may differ within a tolerance."""

    value: float
    unit: str = ""


class ResultRecord(NamedTuple):
    """A record that was read and whose seals hold; see the module's docstring for the parts."""

    name: str
    made_utc: str
    duration_s: float
    command: str
    inputs_again: Mapping[str, Any]
    secrets: tuple[str, ...]
    folder_input: str
    attachments: Mapping[str, str]
    lock: Lock
    lock_row: Mapping[str, Any]
    recipe_files: Mapping[str, Mapping[str, str]]
    journal: tuple[Mapping[str, Any], ...]
    inputs: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    exact: Mapping[str, Any]
    within: Mapping[str, Quantity]
    files: Mapping[str, str]


def digest_of(value: Any) -> str:
    """The SHA-256 of a value as JSON, keys sorted."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a record with its format and the seal of each part."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(row), default=str))
    return {"format": FORMAT, **plain, SEALS: {name: digest_of(plain[name]) for name in sorted(plain)}}


def parse_record(text: str, where: str) -> ResultRecord:
    """The record in a file; raises BadRecord that names the part which is missing, damaged or edited."""
    hint = "nothing can be made again from it; make the result anew, which writes a new record"
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{where} is no record: {error}", hint=hint) from None
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        found = row.get("format") if isinstance(row, dict) else type(row).__name__
        raise BadRecord(f"{where} is no record of format {FORMAT}: found {found}", hint=hint)
    _check_parts(row, where, hint)
    return _record(row, where, hint)


def _check_parts(row: Mapping[str, Any], where: str, hint: str) -> None:
    missing = [name for name in PARTS if name not in row]
    if missing:
        raise BadRecord(f"{where}: its {', '.join(missing)} is missing", hint=hint)
    seals = row.get(SEALS)
    seals = seals if isinstance(seals, dict) else {}
    edited = [name for name in PARTS if seals.get(name) != digest_of(row[name])]
    if edited:
        raise BadRecord(f"{where} was edited after it was written: {', '.join(edited)}", hint=hint)
    wrong = [name for name, kind in PARTS.items() if not isinstance(row[name], kind)]
    wrong += [part for part in ("attachments", "files") if part not in wrong and not all(map(is_inside, row[part]))]
    wrong += [part for part in ("name", "request", "lock") if not _is_printable(row[part])]
    if wrong:
        raise BadRecord(f"{where}: {', '.join(wrong)} is not what a record of format {FORMAT} holds", hint=hint)


def _record(row: Mapping[str, Any], where: str, hint: str) -> ResultRecord:
    request, outcome = row["request"], row["outcome"]
    try:
        within = {
            str(name): Quantity(float(figure["value"]), str(figure.get("unit", "")))
            for name, figure in outcome.get("within", {}).items()
        }
        return ResultRecord(
            name=row["name"],
            made_utc=row["made_utc"],
            duration_s=float(row["duration_s"]),
            command=row["command"],
            inputs_again=dict(request["inputs"]),
            secrets=tuple(map(str, request["secrets"])),
            folder_input=str(request["folder_input"]),
            attachments={str(name): str(content) for name, content in row["attachments"].items()},
            lock=parse_lock(json.dumps(row["lock"]), f"the lock in {where}"),
            lock_row=row["lock"],
            recipe_files={key: dict(files) for key, files in row["recipe_files"].items()},
            journal=tuple(row["journal"]),
            inputs={str(group): dict(values) for group, values in row["inputs"].items()},
            settings=row["settings"],
            machine=row["machine"],
            exact=dict(outcome.get("exact", {})),
            within=within,
            files={str(name): str(sha256) for name, sha256 in row["files"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecord(f"{where} is no record ({type(error).__name__}: {error})", hint=hint) from None


def _is_printable(value: Any) -> bool:
    """Whether no text of a value of JSON holds control characters, which a terminal would obey."""
    if isinstance(value, Mapping):
        return all(map(_is_printable, (*value.keys(), *value.values())))
    if isinstance(value, list):
        return all(map(_is_printable, value))
    return not isinstance(value, str) or value.isprintable()


def is_inside(name: str) -> bool:
    """Whether a file's name in a record is that of a file in its folder or below."""
    parts = PurePosixPath(name).parts
    return bool(parts) and name.isprintable() and not name.startswith("/") and ".." not in parts


def portable_value(value: Any, places: Iterable[tuple[str, str]]) -> Any:
    """A value of JSON whose texts name the places of one machine as ``<...>``."""
    known = [place for place in places if place[0] not in ("", "/")]
    if isinstance(value, str):
        return portable(value, known)
    if isinstance(value, Mapping):
        return {str(name): portable_value(item, known) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [portable_value(item, known) for item in value]
    return value


def here(value: Any, places: Mapping[str, str], where: str) -> Any:
    """A value of a record with the places of this machine put in; raises BadRecord for one that it does not have.

    ``places`` maps ``<home>`` and the like to a path.
    """
    if isinstance(value, Mapping):
        return {name: here(item, places, where) for name, item in value.items()}
    if isinstance(value, list):
        return [here(item, places, where) for item in value]
    if not isinstance(value, str):
        return value
    for name, path in places.items():
        value = value.replace(name, path)
    if "<cache>" in value:
        raise BadRecord(
            f"{where} was made with a file of another cache: {value}",
            hint="give the recipe a file outside the cache, or the tags that make it, and make the result anew",
        )
    return value
