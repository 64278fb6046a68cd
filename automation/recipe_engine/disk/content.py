"""What a finished cache entry holds: its results and its declared files, and whether they are still as recorded.

The results are in ``cm-cached-state.json``; ``entry.json`` records their SHA-256, and of each declared file the size,
the time and the SHA-256.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..rules.cachemodel import CacheEntry, CacheKey, EntryDetails, FileRecord, Outcome
from ..rules.errors import StoreError
from ..rules.secrets import stored, without_secrets
from .entryfile import FORMAT, EntryPaths, key_row
from .files import read_json, read_regular, sha256_of, write_json


def write_content(entry: CacheEntry, key: CacheKey, outcome: Outcome, dependencies: Sequence[str]) -> None:
    """Writes what ``outcome`` gives and what of it is checked at each reuse; ``dependencies`` are uids of entries."""
    paths = EntryPaths(entry.path)
    files = sorted(output_files(entry.path, outcome.files, outcome.new_env))
    state = {
        "new_env": without_secrets(outcome.new_env),
        "new_state": without_secrets(outcome.new_state),
        "deps": [without_secrets(dependency) for dependency in outcome.dependencies],
        "version": outcome.version,
    }
    write_json(paths.state, state)
    details = {
        "format": FORMAT,
        "files": [record_file(path, entry.path)._asdict() for path in files],
        "state_sha256": sha256_of(paths.state),
        "dependencies": list(dependencies),
        "recipe_digest": entry.record.recipe_digest if entry.record else "",
        **stored(outcome.details),
        "request": {**outcome.details.get("request", {}), **key_row(key)},
    }
    write_json(paths.details, details)


def record_file(path: Path, folder: Path) -> FileRecord:
    """What is noted of a declared file; its path is relative to the entry when it lies inside."""
    status = path.stat()
    name = os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)
    return FileRecord(name, status.st_size, status.st_mtime_ns, sha256_of(path))


def details_of(entry: CacheEntry) -> EntryDetails | None:
    """What a finished entry's ``entry.json`` records; None when it is missing or damaged."""
    if entry.record is None:
        return EntryDetails()
    row = read_json(EntryPaths(entry.path).details)
    try:
        return EntryDetails(
            files=tuple(FileRecord(*(file[name] for name in FileRecord._fields)) for file in row["files"]),
            state_sha256=str(row["state_sha256"]),
            dependencies=tuple(str(uid) for uid in row.get("dependencies") or ()),
            request=dict(row.get("request") or {}),
            variations=tuple(dict(variation) for variation in row.get("variations") or ()),
            chain=tuple(str(label) for label in row.get("chain") or ()),
            locked=dict(row.get("locked") or {}),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def state_problem(entry: CacheEntry, details: EntryDetails) -> str:
    """What is wrong with the file of results, in words; empty when nothing is.

    Its SHA-256 is part of ``details``; of entries made by CM it is not known.
    """
    path = EntryPaths(entry.path).state
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return f"its file {path} is gone"
    except OSError as error:
        return f"its file {path} cannot be read: {error.strerror}"
    if entry.record is None:
        return "" if isinstance(read_json(path), dict) else f"its file {path} is not a JSON object"
    return "" if _sha256(content) == details.state_sha256 else f"its file {path} was edited (the SHA-256 differs)"


def _sha256(content: bytes) -> str:
    """The SHA-256 of a short text."""
    return str(_short_hash()(content).hexdigest())


@lru_cache(maxsize=1)
def _short_hash() -> Any:
    """Python's own SHA-256. Loading ``hashlib`` (OpenSSL) would take longer than the rest of a cache hit."""
    try:
        return importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        import hashlib

        return hashlib.sha256


def file_problem(path: Path, declared: FileRecord, *, is_thorough: bool) -> str:
    """What is wrong with a declared file, in words; empty when it is as it was."""
    try:
        status = os.stat(path)
    except OSError:
        return f"its file {path} is gone"
    if status.st_size != declared.size_bytes:
        return f"its file {path} has {status.st_size} bytes instead of {declared.size_bytes}"
    if (is_thorough or status.st_mtime_ns != declared.mtime_ns) and sha256_of(path) != declared.sha256:
        return f"its file {path} was edited (the SHA-256 differs)"
    return ""


def output_files(folder: Path, declared: Iterable[str], new_env: Mapping[str, Any]) -> set[Path]:
    """The declared files of an entry, those in declared folders, and files of the entry that ``new_env`` names.

    Raises StoreError when a declared one does not exist.
    """
    found: set[Path] = set()
    for name in declared:
        path = folder / name
        if path.is_dir():
            own = set(EntryPaths(folder).of_the_engine)
            found.update(item for item in path.rglob("*") if item.is_file() and item not in own)
        elif path.is_file():
            found.add(path)
        else:
            raise StoreError(f"the recipe declared the file '{name}', but {path} does not exist")
    prefix = str(folder) + os.sep
    for value in new_env.values():
        if isinstance(value, str) and value.startswith(prefix) and os.path.isfile(value):
            found.add(Path(value))
    return found


def keeps_identity(entry: CacheEntry, key: CacheKey) -> bool:
    """Whether ``entry``, made again for ``key``, still answers the request that it was made for.

    It would not if that gave an input, or a bound of the version, that ``key`` lacks.
    """
    if entry.record is None or entry.record.fingerprint == key.fingerprint:
        return True
    asked, now = (details_of(entry) or EntryDetails()).request, key_row(key)
    keeps_version = all(asked.get(name, "") in ("", now[name]) for name in ("version", "version_min", "version_max"))
    return keeps_version and dict(entry.record.inputs) == dict(key.inputs)
