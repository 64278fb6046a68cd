"""The files of a cache entry: their names and their content.

``EntryPaths`` owns the names; the functions turn ``_cm.json`` and ``entry.json`` into types and back.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.cachemodel import CacheEntry, CacheKey, EntryRecord, RecipeId
from .files import remove_tree, write_text
from .os_errors import CACHE_MARK, explained

CACHE_AUTOMATION_UID = "541d6f712a6b464e"
FORMAT = 1
RECORD_TEXTS = ("fingerprint", "recipe_digest", "recipe_stamp", "created_utc", "asked_version")
RECORD_LISTS = ("explicit", "variations", "extra_tags", "replaces")
"""The fields of an EntryRecord but for its inputs."""
SCRATCH_NAMES = (
    "tmp-run.sh",
    "tmp-state.json",
    "tmp-run-state.json",
    "tmp-run-env.out",
    "tmp-ver.out",
    "tmp-env.sh",
    "tmp-env-all.sh",
)
"""What CM's engine and this one leave in a working folder in addition to the files of the recipe."""
OWN_NAMES = frozenset([*SCRATCH_NAMES, "_cm.json", "_cm.yaml", "cm-cached-state.json", "entry.json", "log.txt", "used"])
"""Names with a meaning in a working folder or a cache entry: no downloaded or unpacked file may have one."""


RESUMABLE_SUFFIX = ".part"

Stamp = tuple[int, int]
"""Time (ns) and inode of an ``_cm.json``: each new one has another inode, even within one tick of the clock."""


README = """# Cache of CM recipes

Each folder is one result of a recipe: a detected tool, a virtual environment, a data set, a model.
`cm show cache` lists them; `cm rm cache --tags=... -f` removes some. Nothing here is precious:
what is missing is made again by the recipe that needs it. Do not edit entries by hand.
"""
CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of CM recipes.\n"


def prepare_cache(root: Path) -> None:
    """Makes the folder of a cache with the files that say what it is; raises StoreError when that cannot be."""
    with explained():
        root.mkdir(parents=True, exist_ok=True)
    for name, text in (("README.md", README), (CACHE_MARK, CACHEDIR_TAG)):
        if not (root / name).exists():
            with contextlib.suppress(OSError):  # a full or read-only disk
                write_text(root / name, text)


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
        meta["crowdperf"] = {"format": FORMAT, **entry.record._asdict(), "retired": entry.retired}
    elif entry.retired:
        meta["crowdperf"] = {"format": FORMAT, "retired": entry.retired}
    return meta


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def parse_entry(meta: Any, path: Path) -> CacheEntry | None:
    """The entry that a ``_cm.json`` describes, or None when it describes none."""
    if not isinstance(meta, dict) or meta.get("automation_uid") != CACHE_AUTOMATION_UID:
        return None
    try:
        return _parse_entry(meta, path)
    except (TypeError, ValueError):  # edited by a user
        return None


def _parse_entry(meta: Mapping[str, Any], path: Path) -> CacheEntry:
    alias, _, uid = str(meta.get("associated_script_artifact", "")).partition(",")
    ours = meta.get("crowdperf")
    ours = ours if isinstance(ours, dict) and ours.get("format") == FORMAT else {}
    return CacheEntry(
        uid=str(meta.get("uid") or path.name),
        path=path,
        tags=tuple(str(tag) for tag in meta.get("tags", ())),
        version=str(meta.get("version", "") or ""),
        recipe=RecipeId(alias, str(meta.get("associated_script_artifact_uid", "") or uid)),
        dependent_path=str(meta.get("dependent_cached_path", "") or ""),
        expires_s=_seconds(meta.get("cache_expiration")),
        record=_parse_record(ours) if "fingerprint" in ours else None,
        retired=str(ours.get("retired", "")),
    )


def _parse_record(row: Mapping[str, Any]) -> EntryRecord:
    fields: dict[str, Any] = {name: str(row.get(name, "")) for name in RECORD_TEXTS}
    fields |= {name: tuple(row.get(name, ())) for name in RECORD_LISTS}
    return EntryRecord(**fields, inputs=dict(row.get("inputs", {})))


def parse_state(value: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The new_env and new_state of a ``cm-cached-state.json``; None when it holds anything else."""
    if not isinstance(value, dict):
        return None
    new_env, new_state = (value.get(key) or {} for key in ("new_env", "new_state"))
    return (new_env, new_state) if isinstance(new_env, dict) and isinstance(new_state, dict) else None


def stamp_of(path: Path) -> Stamp:
    """What changes whenever the file is written again; raises OSError when it is gone."""
    status = os.stat(path)
    return (status.st_mtime_ns, status.st_ino)


_ENTRY_NAME = re.compile(r"/([0-9a-f]{16})(?=/|$)")
_FLAG = re.compile(r"[-\w]*=?")
"""What may come before a path: ``-I``, ``--prefix=`` and the like."""


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


def empty_folder(folder: Path) -> None:
    """Removes what an interrupted attempt left, except partial downloads and the entry's ``_cm.json``: killed at any
    moment, the folder is still an entry, which the next attempt finds.
    """
    meta = EntryPaths(folder).meta
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.suffix != RESUMABLE_SUFFIX and path != meta:
            path.unlink(missing_ok=True)
