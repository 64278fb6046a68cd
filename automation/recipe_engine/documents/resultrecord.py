"""The record of a result: what is needed to make the result again, and what came out, in one file in its folder.

    record.json   {"format": 1, "name": "digits/Offline/accuracy", "made_utc": "...", "duration_s": 12.5,
                   "command": "cm run script --tags=...",       the request as a line, for people
                   "request": {"inputs": {...}, "secrets": [...], "folder_input": "results_dir"},
                   "attachments": {"user_conf": "text"},        files that inputs name, as "<record>/user_conf"
                   "lock": {...},                               as ``cm lock script`` writes it
                   "recipe_files": {"alias,uid": {"customize.py": "<sha256>"}},
                   "journal": [...],                            what happened, without paths of the machine
                   "inputs": {"model": {...}, "conf": {...}},   further inputs by group, as the recipe names them
                   "settings": {"batch_size": {"value": 4, "origin": "warm-up estimate"}},
                   "machine": {...},
                   "outcome": {"exact": {...}, "within": {"samples_per_second": {"value": 8.1, "unit": "1/s"}}},
                   "files": {"result.json": "<sha256>"},        the result itself
                   "seals": {"lock": "<sha256>", ...}}          one for each part: an edited one is named

The recipe says what the result is called, what makes it again and what counts as its outcome; the engine adds the rest.
Paths of one machine are written as ``<home>``, ``<cache>`` and ``<result>``. Secrets are named, never kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..rules.errors import RequestError
from .lockfile import Lockfile, lockfile_of, portable

FORMAT = 1
RECORD_FILE = "record.json"
ATTACHED = "<record>/"
"""How an input begins whose file is in the record itself."""
SEALS = "seals"


class BadRecord(RequestError):
    """A record that cannot be used: missing parts, another format, or edited."""


class Quantity(NamedTuple):
    """A figure that may differ within a tolerance."""

    value: float
    unit: str = ""


class RecordedRequest(NamedTuple):
    """What makes the result again: the inputs, the names of those that were secret, and the input for its folder."""

    inputs: Mapping[str, Any]
    secrets: tuple[str, ...]
    folder_input: str


class Outcome(NamedTuple):
    """What came out: figures that must be equal, and those that may differ within a tolerance."""

    exact: Mapping[str, Any]
    within: Mapping[str, Quantity]


class ResultRecord(NamedTuple):
    """A record that was read and whose seals hold; see the module's docstring for the parts."""

    name: str
    made_utc: str
    duration_s: float
    command: str
    request: RecordedRequest
    attachments: Mapping[str, str]
    lock: Lockfile
    recipe_files: Mapping[str, Mapping[str, str]]
    journal: tuple[Mapping[str, Any], ...]
    inputs: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    outcome: Outcome
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
    """The record in a file; raises BadRecord that names the parts which are missing, damaged or edited."""
    hint = "the result cannot be made again from it; run it again, which writes a new record"
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{where} is not a valid record: {error}", hint=hint) from None
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        found = row.get("format") if isinstance(row, dict) else type(row).__name__
        raise BadRecord(f"{where} is not a record of format {FORMAT}: found {found}", hint=hint)
    missing = [name for name in PARTS if name not in row]
    if missing:
        raise BadRecord(f"{where}: its {', '.join(missing)} is missing", hint=hint)
    seals = row.get(SEALS)
    edited = [name for name in PARTS if not isinstance(seals, dict) or seals.get(name) != digest_of(row[name])]
    if edited:
        raise BadRecord(f"{where} was edited after it was written: {', '.join(edited)}", hint=hint)
    parts, wrong = {}, []
    for name, (kind, read) in PARTS.items():
        try:
            if not isinstance(row[name], kind) or (name in SHOWN and not _is_printable(row[name])):
                raise ValueError
            parts[name] = read(row[name])
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            wrong.append(name)
    if wrong:
        raise BadRecord(f"{where}: {', '.join(wrong)} is not what a record of format {FORMAT} holds", hint=hint)
    return ResultRecord(**parts)


def _is_printable(value: Any) -> bool:
    """Whether no text in a JSON value holds control characters, which a terminal would obey."""
    if isinstance(value, Mapping):
        return all(map(_is_printable, (*value.keys(), *value.values())))
    if isinstance(value, list):
        return all(map(_is_printable, value))
    return not isinstance(value, str) or value.isprintable()


def _request(row: Mapping[str, Any]) -> RecordedRequest:
    return RecordedRequest(dict(row["inputs"]), tuple(map(str, row["secrets"])), str(row["folder_input"]))


def _outcome(row: Mapping[str, Any]) -> Outcome:
    figures = dict(row.get("within", {}))
    within = {name: Quantity(float(one["value"]), str(one.get("unit", ""))) for name, one in figures.items()}
    return Outcome(dict(row.get("exact", {})), within)


def _by_name(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: dict(values) for name, values in row.items()}


def _texts_of_files(row: Mapping[str, Any]) -> dict[str, str]:
    """Texts by the names of files, which must be in the folder of the record or below."""
    for name in row:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or not name.isprintable():
            raise ValueError
    return {name: str(text) for name, text in row.items()}


PARTS: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    "name": (str, str),
    "made_utc": (str, str),
    "duration_s": (object, float),
    "command": (str, str),
    "request": (dict, _request),
    "attachments": (dict, _texts_of_files),
    "lock": (dict, lockfile_of),
    "recipe_files": (dict, _by_name),
    "journal": (list, tuple),
    "inputs": (dict, _by_name),
    "settings": (dict, dict),
    "machine": (dict, dict),
    "outcome": (dict, _outcome),
    "files": (dict, _texts_of_files),
}
"""The parts of a record: what each must be, and what reads it."""
SHOWN = ("name", "request", "lock")
"""Parts whose texts reach a terminal before anything else is known of the record."""


def portable_value(value: Any, places: Sequence[tuple[str, str]]) -> Any:
    """A JSON value whose texts name the paths of one machine as ``<...>``."""
    return _mapped(value, lambda text: portable(text, places))


def here(value: Any, places: Mapping[str, str], where: str) -> Any:
    """A value of a record with the paths of this machine put in; ``places`` maps ``<home>`` and the like to a path.

    Raises BadRecord for a file of the cache of another machine.
    """

    def on_text(text: str) -> str:
        for name, path in places.items():
            text = text.replace(name, path)
        if "<cache>" in text:
            raise BadRecord(
                f"{where} was made with a file of another cache: {text}",
                hint="give the recipe a file outside the cache, or the tags that make it, and make the result again",
            )
        return text

    return _mapped(value, on_text)


def _mapped(value: Any, on_text: Callable[[str], str]) -> Any:
    """A JSON value with ``on_text`` applied to its texts."""
    if isinstance(value, str):
        return on_text(value)
    if isinstance(value, Mapping):
        return {str(name): _mapped(item, on_text) for name, item in value.items()}
    return [_mapped(item, on_text) for item in value] if isinstance(value, list | tuple) else value
