"""The files of a cache entry: their names, what they hold, whether they are still as recorded, and who uses it.

``_cm.json`` has CM's keys and ours. The results are in ``cm-cached-state.json``; ``entry.json`` records their SHA-256,
and of each declared file the size, the time and the SHA-256. Each file is parsed here and nowhere else.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..rules.env import with_texts
from ..rules.errors import StoreError
from ..rules.frozen import Frozen
from ..rules.model import CacheEntry, CacheKey, EntryDetails, EntryRecord, FileRecord, Outcome, RecipeId
from ..rules.secrets import stored, without_secrets
from .files import (
    lock_new_file,
    make_folder,
    parse_json,
    read_json,
    read_regular,
    remove_tree,
    sha256_of,
    try_lock,
    write_rows,
)

CACHE_AUTOMATION_UID = "541d6f712a6b464e"
FORMAT = 1
RECORD_TEXTS = ("fingerprint", "recipe_digest", "recipe_stamp", "created_utc", "asked_version")
RECORD_LISTS = ("explicit", "variations", "extra_tags", "replaces")
"""The fields of an EntryRecord but for its inputs."""
SCRIPT_NAMES = ("tmp-run.sh", "tmp-state.json", "tmp-run-state.json", "tmp-run-env.out", "tmp-ver.out")
"""What running a native script leaves in its working folder; ``running/shell.py`` says what each is for."""
ENV_FILE, ALL_ENV_FILE = "tmp-env.sh", "tmp-env-all.sh"
SCRATCH_NAMES = (*SCRIPT_NAMES, ENV_FILE, ALL_ENV_FILE)
"""What CM's engine and this one leave in a working folder in addition to the files of the recipe."""
OWN_NAMES = frozenset([*SCRATCH_NAMES, "_cm.json", "_cm.yaml", "cm-cached-state.json", "entry.json", "log.txt", "used"])
"""Names with a meaning in a working folder or a cache entry: no downloaded or unpacked file may have one."""


RESUMABLE_SUFFIX = ".part"

Stamp = tuple[int, int]
"""Time (ns) and inode of an ``_cm.json``: each new one has another inode, even within one tick of the clock."""


class EntryPaths(Frozen):
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
    alias, _, uid = str(meta.get("associated_script_artifact", "")).partition(",")
    ours = meta.get("crowdperf")
    ours = ours if isinstance(ours, dict) and ours.get("format") == FORMAT else {}
    try:
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
    except (TypeError, ValueError):  # edited by a user
        return None


def _parse_record(row: Mapping[str, Any]) -> EntryRecord:
    fields: dict[str, Any] = {name: str(row.get(name, "")) for name in RECORD_TEXTS}
    fields |= {name: tuple(map(str, row.get(name, ()))) for name in RECORD_LISTS}
    return EntryRecord(**fields, inputs=dict(row.get("inputs", {})))


def parse_state(value: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The new_env and new_state of a ``cm-cached-state.json``; None when it holds anything else."""
    if not isinstance(value, dict):
        return None
    new_env, new_state = (value.get(key) or {} for key in ("new_env", "new_state"))
    return (new_env, new_state) if isinstance(new_env, dict) and isinstance(new_state, dict) else None


def loaded_state(entry: CacheEntry, root: Path, content: bytes | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The new_env and new_state that a finished entry below ``root`` gives; ``content`` is that of its file if it was
    read before. Raises StoreError when the file cannot be read.
    """
    state = read_json(EntryPaths(entry.path).state) if content is None else parse_json(content)
    values = parse_state(relocated(state, root))
    if values is None:
        raise StoreError(
            f"the cache entry {entry.path} has no readable state",
            hint=f"cm rm cache {entry.uid} -f, then rerun",
        )
    return values


def stamp_of(path: Path | str) -> Stamp:
    """What changes whenever the file is written again; raises OSError when it is gone."""
    status = os.stat(path)
    return (status.st_mtime_ns, status.st_ino)


_ENTRY_NAME = r"/([0-9a-f]{16})(?=/|$)"
_FLAG = r"[-\w]*=?"
"""What may come before a path: ``-I``, ``--prefix=`` and the like."""


def relocated(value: Any, root: Path) -> Any:
    """A stored value with the paths of entries that are below ``root`` now and were elsewhere when it was stored.

    Looks at texts that are a path, maybe behind a flag, or paths joined by ``:``, also inside lists and mappings.
    """

    def on_text(text: str) -> str:
        return ":".join(_relocated_path(part, str(root)) for part in text.split(":")) if "/" in text else text

    return with_texts(value, on_text)


def _relocated_path(path: str, root: str) -> str:
    for found in re.finditer(_ENTRY_NAME, path):
        flag, slash, rest = path[: found.start()].partition("/")
        folder = slash + rest
        if folder == root:
            break
        now = os.path.join(root, found[1])
        if re.fullmatch(_FLAG, flag) and os.path.isdir(now) and not os.path.exists(f"{folder}/{found[1]}"):
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
    content = write_rows(paths.state, state)
    details = {
        "format": FORMAT,
        "files": [record_file(path, entry.path)._asdict() for path in files],
        "state_sha256": _sha256(content),
        "dependencies": list(dependencies),
        "recipe_digest": entry.record.recipe_digest if entry.record else "",
        **stored(outcome.details),
        "request": {**outcome.details.get("request", {}), **key_row(key)},
    }
    write_rows(paths.details, details)


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
            files=tuple(
                FileRecord(str(file["path"]), int(file["size_bytes"]), int(file["mtime_ns"]), str(file["sha256"]))
                for file in row["files"]
            ),
            state_sha256=str(row["state_sha256"]),
            dependencies=tuple(str(uid) for uid in row.get("dependencies") or ()),
            request=dict(row.get("request") or {}),
            variations=tuple(dict(variation) for variation in row.get("variations") or ()),
            chain=tuple(str(label) for label in row.get("chain") or ()),
            locked=dict(row.get("locked") or {}),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def checked_state(entry: CacheEntry, details: EntryDetails) -> tuple[bytes, str]:
    """The content of the file of results, and what is wrong with it in words; empty when nothing is.

    Its SHA-256 is part of ``details``; of entries made by CM it is not known.
    """
    path = EntryPaths(entry.path).state
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return b"", f"its file {path} is missing"
    except OSError as error:
        return b"", f"its file {path} cannot be read: {error.strerror}"
    if entry.record is None:
        return content, "" if isinstance(parse_json(content), dict) else f"its file {path} is not a JSON object"
    is_same = _sha256(content) == details.state_sha256
    return content, "" if is_same else f"its file {path} was edited (the SHA-256 differs)"


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
        return f"its file {path} is missing"
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


# --- uses ---


USE_NOTED_EVERY_S = 3600.0
"""Often enough to tell which entries were used least recently, and no cost to the runs between."""
MAX_LOCKS_HELD = 400
"""Locks of one process; with more, the common limit of 1024 open files (``ulimit -n``) would be within reach."""
REMOVAL_S = 10.0
"""An entry that stays locked for so long is being removed; a look at it (``is_in_use``) locks it for microseconds."""
USES_VARIABLE = "CROWDPERF_USES_FILES"
"""Names the uses files of the runs that led to this process, one in a line."""
USES_SUFFIX = ".uses.lock"


class EntriesInUse:
    """The entries of the cache ``root`` that the runs of this process use, until ``close``, or until it ends.

    A process that uses an entry keeps the file ``used`` in it open with a shared lock, which the kernel frees when the
    process ends, however it ends. The time of the file is when the entry was used last, to the hour.

    A recipe's script may call ``cm``, and what that process used is needed as long as the script runs. So each run has
    a file ``.locks/<hex digits>.uses.lock``, locked as long as the run lasts, to which the ``cm`` processes below it
    add the uids of the entries that they use. What a locked file of this kind lists is in use.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / ".locks"
        self._handles: dict[Path, int] = {}
        self._used: list[str] = []
        self._uses_file: Path | None = None
        self._n_read = 0

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends all uses."""
        if self._uses_file:
            os.environ[USES_VARIABLE] = "\n".join(line for line in _uses_files() if line != str(self._uses_file))
            with contextlib.suppress(OSError):
                self._uses_file.unlink()
            self._uses_file = None
        while self._handles:
            os.close(self._handles.popitem()[1])

    def claim(self, entry_folder: Path) -> bool:
        """Marks an entry as in use from now on; False when another process is removing it.

        An entry that cannot be marked (a cache that is read-only) counts as marked.
        """
        used = EntryPaths(entry_folder).used
        try:
            try:
                if time.time() - os.stat(used).st_mtime > USE_NOTED_EVERY_S:
                    with contextlib.suppress(PermissionError):  # an entry of another user can be locked all the same
                        os.utime(used)
            except FileNotFoundError:
                used.touch()
            if used not in self._handles and len(self._handles) < MAX_LOCKS_HELD:
                self._handles[used] = _shared_lock(used)
        except (FileNotFoundError, TimeoutError):
            return False
        except OSError:
            return True
        return True

    def note(self, uid: str) -> None:
        """Records a use, for the entries that are being made here and by the runs that led to this process."""
        self._used.append(uid)
        for line in _uses_files():
            if line != str(self._uses_file) and Path(line).parent == self._folder:
                with contextlib.suppress(OSError), open(line, "ab", buffering=0, opener=_existing) as file:
                    file.write(f"{uid}\n".encode())

    @property
    def used(self) -> list[str]:
        """The uids of the entries used so far, here and by child processes, in the order in which that was noted."""
        if self._uses_file:
            noted = read_regular(self._uses_file).decode().split()
            self._used += noted[self._n_read :]
            self._n_read = len(noted)
        return self._used

    def watch_children(self) -> None:
        """Makes the uses file, once, and names it to the processes started from now on; a read-only cache has none."""
        if self._uses_file:
            return
        path = self._folder / (os.urandom(8).hex() + USES_SUFFIX)
        with contextlib.suppress(OSError):
            make_folder(self._folder)
            self._handles[path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            self._uses_file = path
            os.environ[USES_VARIABLE] = "\n".join([*_uses_files(), str(path)])
            lock_new_file(self._handles[path])


def _existing(name: str, flags: int) -> int:
    return os.open(name, flags & ~os.O_CREAT)


def _shared_lock(used: Path) -> int:
    """The file ``used``, open and locked so that others may do the same but ``unused`` fails.

    Raises FileNotFoundError or TimeoutError when the entry is being removed, OSError where files cannot be locked.
    """
    end_s = time.monotonic() + REMOVAL_S
    handle = os.open(used, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while not try_lock(handle, is_shared=True):
            os.stat(used)
            if time.monotonic() > end_s:
                raise TimeoutError
        os.stat(used)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _uses_files() -> list[str]:
    return [line for line in os.environ.get(USES_VARIABLE, "").split("\n") if line]
