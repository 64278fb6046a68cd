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

from ..rules.cachemodel import CacheEntry, CacheKey, FileRecord, Outcome
from ..rules.errors import StoreError
from ..rules.secrets import stored, without_secrets
from .entryfile import FORMAT, EntryPaths, key_row
from .files import read_json, read_regular, sha256_of, write_json


def write_content(entry: CacheEntry, key: CacheKey, outcome: Outcome, dependencies: Sequence[str]) -> None:
    """Writes what ``outcome`` gives and what of it is checked at each reuse; ``dependencies`` are uids of entries."""
    paths = EntryPaths(entry.path)
    records = [
        record_file(path, entry.path) for path in sorted(output_files(entry.path, outcome.files, outcome.new_env))
    ]
    state = {
        "new_env": without_secrets(outcome.new_env),
        "new_state": without_secrets(outcome.new_state),
        "deps": [dependency_row(dependency) for dependency in outcome.dependencies],
        "version": outcome.version,
    }
    write_json(paths.state, state)
    details = {
        "format": FORMAT,
        "files": [file_row(record) for record in records],
        "state_sha256": sha256_of(paths.state),
        "dependencies": list(dependencies),
        "recipe_digest": entry.record.recipe_digest if entry.record else "",
        **stored(outcome.details),
        "request": {**outcome.details.get("request", {}), **key_row(key)},
    }
    write_json(paths.details, details)


def file_row(record: FileRecord) -> dict[str, Any]:
    """A FileRecord as JSON."""
    return {
        "path": record.path,
        "size_bytes": record.size_bytes,
        "mtime_ns": record.mtime_ns,
        "sha256": record.sha256,
    }


def record_file(path: Path, folder: Path) -> FileRecord:
    """What is noted of a declared file; its path is relative to the entry when it lies inside."""
    status = path.stat()
    name = os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)
    return FileRecord(name, status.st_size, status.st_mtime_ns, sha256_of(path))


def declared_files(entry: CacheEntry) -> list[FileRecord] | None:
    """The files that an entry declared; None when the file that lists them cannot be read."""
    return recorded_files(read_json(EntryPaths(entry.path).details))


def recorded_files(details: Any) -> list[FileRecord] | None:
    """The declared files in the content of ``entry.json``; None when it does not list them."""
    rows = details.get("files") if isinstance(details, dict) else None
    if not isinstance(rows, list):
        return None
    try:
        return [FileRecord(row["path"], row["size_bytes"], row["mtime_ns"], row["sha256"]) for row in rows]
    except (KeyError, TypeError):
        return None


def state_problem(entry: CacheEntry, details: Any) -> str:
    """What is wrong with the file of results, in words; empty when nothing is.

    Its SHA-256 is part of ``details``, the content of ``entry.json``; entries made by CM have none.
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
    expected = details.get("state_sha256") if isinstance(details, dict) else None
    if not isinstance(expected, str):
        return f"its file {EntryPaths(entry.path).details} is gone or damaged"
    return "" if _sha256(content) == expected else f"its file {path} was edited (the SHA-256 differs)"


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


def dependency_row(dependency: Mapping[str, Any]) -> dict[str, Any]:
    """A dependency entry without the secrets that overrides may have put there."""
    return without_secrets(dependency)


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
    details = read_json(EntryPaths(entry.path).details)
    asked = details.get("request") if isinstance(details, dict) else None
    now = key_row(key)
    bounds = ("version", "version_min", "version_max")
    keeps_version = all((asked or {}).get(name, "") in ("", now[name]) for name in bounds)
    return keeps_version and dict(entry.record.inputs) == dict(key.inputs)
