"""``cm record script``: what a recipe calls when it has made a result, so that the result can be made again.

    access({"action": "record", "automation": "script", "folder": FOLDER, "name": "digits/Offline/accuracy",
            "request": {"tags": "run,mlperf,inference", ...}, "folder_input": "results_dir",
            "outcome": {"exact": {"accuracy": 86.8}, "within": {"samples_per_second": {"value": 8.1, "unit": "1/s"}}},
            "inputs": {...}, "settings": {...}, "machine": {...}, "files": ["result.json"], "attachments": {...}})

The lock is made of a plan of ``request``, which by now finds all it needs in the cache. The events of the run would not
do: they show neither what lies below entries that it reused nor what its recipe does after this call, and a machine
without these entries needs both. See resultrecord.py for the parts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..disk.files import sha256_of, write_text
from ..disk.repos import recipe_files
from ..documents.lockfile import Lockfile, lockfile_json
from ..documents.resultrecord import RECORD_FILE, portable_value, sealed
from ..rules.errors import RequestError
from ..rules.rerun import flat, given_line
from ..rules.secrets import hidden, hidden_texts, holds_secret, without_secret_flags
from ..running.journal import iso, rows_until_now
from ..running.locked import places
from .adapter import Home
from .lock_action import LockingEngine
from .record_request import recording_recipe
from .run import new_engine, parse_request

KEPT_ROWS = 300
"""Of a longer journal the last rows: the steps that led to the result."""
KEPT_EVENTS = ("run", "done", "fail", "again")
DROPPED_KEYS = ("path", "entry_path", "log")
"""What only says where something is on this machine."""


def record_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm record script``: writes ``record.json`` into the folder of a result. Raises RequestError."""
    started_s = time.time()
    folder = Path(os.path.abspath(str(i.get("folder") or "")))
    request, name = i.get("request"), str(i.get("name") or "")
    if not i.get("folder") or not folder.is_dir():
        raise RequestError(f"--folder={i.get('folder')} is not the folder of a result")
    if not isinstance(request, Mapping) or not name:
        raise RequestError("a record needs the name of the result and the request that makes it again")
    engine = LockingEngine(new_engine(home, None))
    folder_input = str(i.get("folder_input") or "")
    recording_recipe(request, folder_input, engine.source)
    lock = engine.lockfile(parse_request({**request, folder_input: str(folder)}))
    rows = rows_until_now()
    refuse_changed_recipes(lock, rows)
    known = [(str(folder), "<result>"), *places(engine.store)]
    given = {part: _mapping(i, part) for part in ("attachments", "inputs", "settings", "machine", "outcome")}
    content = {
        "name": name,
        "made_utc": iso(started_s),
        "duration_s": float(i.get("duration_s") or 0.0),
        "command": portable_value(given_line(request).text, known),
        "request": {
            "inputs": portable_value(without_secret_flags(request), known),
            "secrets": sorted(key for key, value in flat(request) if holds_secret(key, value)),
            "folder_input": folder_input,
        },
        "attachments": hidden_texts(given["attachments"]),
        "lock": lockfile_json(lock),
        "recipe_files": {key: recipe_files(recipe.path) for key, recipe in sorted(engine.recipes.items())},
        "journal": hidden_texts(portable_value(journal_rows(rows), known)),
        **{part: hidden(portable_value(given[part], known)) for part in ("inputs", "settings", "machine")},
        "outcome": hidden_texts(portable_value(given["outcome"], known)),
        "files": {file: sha256_of(folder / file) for file in i.get("files") or () if (folder / file).is_file()},
    }
    lines = [f"  {json.dumps(part)}: {json.dumps(value, sort_keys=True)}" for part, value in sealed(content).items()]
    write_text(folder / RECORD_FILE, "{\n" + ",\n".join(lines) + "\n}\n")  # a line for each part: small and legible
    return {"return": 0, "record": str(folder / RECORD_FILE)}


def _mapping(i: Mapping[str, Any], part: str) -> dict[str, Any]:
    value = i.get(part) or {}
    if not isinstance(value, Mapping):
        raise RequestError(f"the {part} of a record must be given by name, found {value!r}")
    return dict(value)


def refuse_changed_recipes(lock: Lockfile, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises RequestError when a recipe was edited after it ran: the lock would not be of what ran."""
    ran = {row["recipe"]: row["digest"] for row in rows if row.get("digest") and row.get("recipe")}
    changed = sorted(key.partition(",")[0] for key, digest in ran.items() if lock.recipes.get(key, digest) != digest)
    if changed:
        raise RequestError(
            f"recipes were edited during the run: {', '.join(changed)}",
            hint="the result cannot be made again from what is there now; run it again",
        )


def journal_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a journal that show what ran and what was reused, without paths of the machine."""
    kept = [row for row in rows if row.get("event") in KEPT_EVENTS]
    return [{key: value for key, value in row.items() if key not in DROPPED_KEYS} for row in kept[-KEPT_ROWS:]]
