"""The files of a cache entry: their names, and what stands in them.

``EntryPaths`` owns the names; the functions turn ``_cm.json`` and ``entry.json`` into types and back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.cachemodel import CacheEntry, CacheKey, EntryRecord, FileRecord, RecipeId
from ..rules.env import without_secrets
from ..rules.errors import StoreError
from .files import read_json, remove_tree, sha256_of

CACHE_AUTOMATION_UID = "541d6f712a6b464e"
FORMAT = 1
SCRATCH_NAMES = (
    "tmp-run.sh",
    "tmp-state.json",
    "tmp-run-state.json",
    "tmp-run-env.out",
    "tmp-ver.out",
    "tmp-env.sh",
    "tmp-env-all.sh",
)
"""What CM's engine and this one leave in a working folder beside the files of the recipe."""


RESUMABLE_SUFFIX = ".part"

Stamp = tuple[int, int]
"""Time (ns) and inode of an ``_cm.json``: each new one has another inode, even within one tick of the clock."""
POSITIVE = (1 << 63) - 1
"""What an index keeps of a number at most; some file systems have longer inodes."""


class EntryPaths(NamedTuple):
    """Every file name of an entry."""

    folder: Path

    @property
    def meta(self) -> Path:
        """CM's artifact file."""
        return self.folder / "_cm.json"

    @property
    def state(self) -> Path:
        """What the recipe gave to its caller."""
        return self.folder / "cm-cached-state.json"

    @property
    def details(self) -> Path:
        """Declared files, request and tool versions."""
        return self.folder / "entry.json"

    @property
    def log(self) -> Path:
        """Output of the recipe's scripts."""
        return self.folder / "log.txt"

    @property
    def used(self) -> Path:
        """Empty; its time is when the entry was reused last."""
        return self.folder / "used"

    @property
    def pinned(self) -> Path:
        """There when ``cm pin cache`` protects the entry from ``cm gc cache``."""
        return self.folder / "pinned"

    @property
    def of_the_engine(self) -> tuple[Path, ...]:
        """The files that the engine itself writes, scratch files included."""
        scratch = [self.folder / name for name in SCRATCH_NAMES]
        return (self.meta, self.state, self.details, self.log, self.used, self.pinned, *scratch)


def record_row(record: EntryRecord) -> dict[str, Any]:
    """An EntryRecord as JSON."""
    return {
        "fingerprint": record.fingerprint,
        "recipe_digest": record.recipe_digest,
        "recipe_stamp": record.recipe_stamp,
        "explicit": list(record.explicit),
        "variations": list(record.variations),
        "extra_tags": list(record.extra_tags),
        "inputs": dict(record.inputs),
        "created_utc": record.created_utc,
    }


def key_row(key: CacheKey) -> dict[str, Any]:
    """The resolved request that an entry answers, as JSON."""
    return {
        "cache_tags": list(key.required_tags),
        "excluded_tags": list(key.excluded_tags),
        "explicit": list(key.explicit),
        "variations": list(key.variations),
        "extra_tags": list(key.extra_tags),
        "derived_tags": list(key.derived_tags),
        "inputs": dict(key.inputs),
        "version": key.version.exact,
        "version_min": key.version.minimum,
        "version_max": key.version.maximum,
    }


def meta_row(entry: CacheEntry) -> dict[str, Any]:
    """The ``_cm.json`` of an entry; ``parse_entry`` reads it back."""
    meta: dict[str, Any] = {
        "alias": "",
        "uid": entry.uid,
        "automation_alias": "cache",
        "automation_uid": CACHE_AUTOMATION_UID,
        "tags": list(entry.tags),
        "associated_script_artifact": entry.recipe.text,
        "associated_script_artifact_uid": entry.recipe.uid,
    }
    if entry.version:
        meta["version"] = entry.version
    if entry.dependent_path:
        meta["dependent_cached_path"] = entry.dependent_path
    if entry.expires_s is not None:
        meta["cache_expiration"] = entry.expires_s
    if entry.record:
        meta["crowdperf"] = {"format": FORMAT, **record_row(entry.record)}
    return meta


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def parse_entry(meta: Any, path: Path) -> CacheEntry | None:
    """The entry that a ``_cm.json`` describes, or None when it describes none."""
    if not isinstance(meta, dict) or meta.get("automation_uid") != CACHE_AUTOMATION_UID:
        return None
    try:
        return _parse_entry(meta, path)
    except (TypeError, ValueError):  # edited by hand
        return None


def _parse_entry(meta: Mapping[str, Any], path: Path) -> CacheEntry:
    alias, _, uid = str(meta.get("associated_script_artifact", "")).partition(",")
    ours = meta.get("crowdperf")
    record = None
    if isinstance(ours, dict) and ours.get("format") == FORMAT:
        record = EntryRecord(
            fingerprint=str(ours.get("fingerprint", "")),
            recipe_digest=str(ours.get("recipe_digest", "")),
            recipe_stamp=str(ours.get("recipe_stamp", "")),
            explicit=tuple(ours.get("explicit", ())),
            variations=tuple(ours.get("variations", ())),
            extra_tags=tuple(ours.get("extra_tags", ())),
            inputs=dict(ours.get("inputs", {})),
            created_utc=str(ours.get("created_utc", "")),
        )
    return CacheEntry(
        uid=str(meta.get("uid") or path.name),
        path=path,
        tags=tuple(str(tag) for tag in meta.get("tags", ())),
        version=str(meta.get("version", "") or ""),
        recipe=RecipeId(alias, str(meta.get("associated_script_artifact_uid", "") or uid)),
        dependent_path=str(meta.get("dependent_cached_path", "") or ""),
        expires_s=_seconds(meta.get("cache_expiration")),
        record=record,
    )


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
    details = read_json(EntryPaths(entry.path).details)
    rows = details.get("files") if isinstance(details, dict) else None
    if not isinstance(rows, list):
        return None
    try:
        return [FileRecord(row["path"], row["size_bytes"], row["mtime_ns"], row["sha256"]) for row in rows]
    except (KeyError, TypeError):
        return None


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


def stamp_of(path: Path) -> Stamp:
    """What changes whenever the file is written again; raises OSError when it is gone."""
    status = os.stat(path)
    return (status.st_mtime_ns & POSITIVE, status.st_ino & POSITIVE)


_ENTRY_NAME = re.compile(r"/([0-9a-f]{16})(?=/|$)")
_FLAG = re.compile(r"[-\w]*=?")
"""What may stand before a path: ``-I``, ``--prefix=`` and the like."""


def relocated(value: Any, root: Path) -> Any:
    """A stored value with the paths of entries that are below ``root`` now and were elsewhere when it was stored.

    Looks at texts that are a path, maybe behind a flag, or paths joined by ``:``, also inside lists and mappings.
    """
    if isinstance(value, str):
        return ":".join(_relocated_path(part, str(root)) for part in value.split(":")) if "/" in value else value
    if isinstance(value, list):
        return [relocated(item, root) for item in value]
    if isinstance(value, Mapping):
        return {key: relocated(item, root) for key, item in value.items()}
    return value


def _relocated_path(path: str, root: str) -> str:
    for found in _ENTRY_NAME.finditer(path):
        flag, slash, rest = path[: found.start()].partition("/")
        folder = slash + rest
        if folder == root:
            break
        now = os.path.join(root, found[1])
        if _FLAG.fullmatch(flag) and os.path.isdir(now) and not os.path.exists(f"{folder}/{found[1]}"):
            return flag + now + path[found.end() :]
    return path


def dependency_row(dependency: Mapping[str, Any]) -> dict[str, Any]:
    """A dependency entry without the secrets that overrides may have put there."""
    return {
        key: without_secrets(value) if isinstance(value, Mapping) else value
        for key, value in without_secrets(dependency).items()
    }


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


def empty_folder(folder: Path) -> None:
    """Removes what a broken-off attempt left, except half-loaded files, the mark that protects the entry, and its
    ``_cm.json``: killed at any moment, the folder is still an entry, which the next attempt finds.
    """
    kept = (EntryPaths(folder).meta, EntryPaths(folder).pinned)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.suffix != RESUMABLE_SUFFIX and path not in kept:
            path.unlink(missing_ok=True)
