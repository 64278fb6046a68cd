"""Which entries of the cache are in use, by running processes and by other entries, and how unused ones are removed.

A process that uses an entry keeps the file ``used`` in it open with a shared lock, which the kernel frees when the
process ends, however it ends. The time of the file is when the entry was used last, to the hour.

A recipe's script may call ``cm``, and what that process used is needed as long as the script runs. So each run has a
file ``.locks/<hex digits>.uses.lock``, locked as long as the run lasts, to which the ``cm`` processes below it add the
uids of the entries that they use. What a locked file of this kind lists is in use.

A removed folder goes into ``.trash`` first, under a name of its own: it is gone at once, and a kill in the middle
leaves only trash. A process that deletes it holds a lock on it, and others that empty the trash leave it alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Container, Iterator
from pathlib import Path

from ..rules.model import CacheEntry, EntryDetails
from .entries import EntryPaths, details_of
from .files import folder_lock_if_free, make_folder, read_regular, remove_tree, tried_lock, try_lock
from .locks import is_locked

META = "_cm.json"


def trash_of(root: Path) -> Path:
    """Where removed folders of a cache go."""
    return root / ".trash"


def discard(root: Path, path: Path) -> None:
    """Removes a folder below ``root``; it stops being an entry before its first file goes.

    If this process is killed before the end, ``empty_trash`` deletes the rest.
    """
    trash = trash_of(root) / f"{path.name}.{os.urandom(4).hex()}"
    with contextlib.ExitStack() as stack:
        try:
            make_folder(trash.parent)
            if path.is_dir() and not path.is_symlink():
                stack.enter_context(folder_lock_if_free(path))  # goes with the folder to its new name
            os.rename(path, trash)
        except FileNotFoundError:
            return
        except OSError:  # another disk is mounted there, or the trash cannot be made
            with contextlib.suppress(OSError):
                (path / META).unlink()
            trash = path
        remove_tree(trash)


def empty_trash(root: Path) -> list[Path]:
    """Deletes what killed removals left behind; returns what was there and is not being deleted by others."""
    left = []
    for path in trash_in(root):
        with folder_lock_if_free(path) as is_free:
            if is_free:
                remove_tree(path)
                left.append(path)
    return left


def trash_in(root: Path) -> list[Path]:
    """What lies in the trash."""
    try:
        return sorted(trash_of(root) / name for name in os.listdir(trash_of(root)))
    except OSError:
        return []


USE_NOTED_EVERY_S = 3600.0
"""Often enough to tell which entries were used least recently, and no cost to the runs between."""
MOST_HELD = 400
"""Locks of one process; with more, the common limit of 1024 open files (``ulimit -n``) would be within reach."""
REMOVAL_S = 10.0
"""An entry that stays locked for so long is being removed; a look at it (``is_in_use``) locks it for microseconds."""
USES_VARIABLE = "CROWDPERF_USES_FILES"
"""Names the uses files of the runs that led to this process, one in a line."""
USES_SUFFIX = ".uses.lock"


class EntriesInUse:
    """The entries of the cache ``root`` that the runs of this process use, until ``close``, or until it ends."""

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
            if used not in self._handles and len(self._handles) < MOST_HELD:
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
            try_lock(self._handles[path])


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


def _runs_below_which_used(entry_folder: Path) -> list[Path]:
    """The uses files of the runs in progress that started a process that used the entry."""
    folder = entry_folder.parent / ".locks"
    found = []
    with contextlib.suppress(OSError):
        for path in (folder / name for name in os.listdir(folder) if name.endswith(USES_SUFFIX)):
            with contextlib.suppress(OSError):
                if entry_folder.name.encode() in read_regular(path).split() and is_locked(path):
                    found.append(path)
    return found


@contextlib.contextmanager
def unused(entry_folder: Path) -> Iterator[bool]:
    """Whether no process uses the entry; until the block ends, none can begin to."""
    try:
        handle = os.open(EntryPaths(entry_folder).used, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
    except OSError:
        yield not is_in_use(entry_folder)
        return
    with tried_lock(handle) as is_free:  # where files cannot be locked nothing is removed (store.held)
        yield is_free and not _runs_below_which_used(entry_folder)


def is_in_use(entry_folder: Path) -> bool:
    """Whether some process uses the entry right now."""
    try:
        handle = os.open(EntryPaths(entry_folder).used, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    with tried_lock(handle) as is_free:
        return not is_free or bool(_runs_below_which_used(entry_folder))


def users_of(entry_folder: Path) -> list[int]:
    """The processes that use the entry, as far as the system shows which files they have open (Linux)."""
    paths = (EntryPaths(entry_folder).used, *_runs_below_which_used(entry_folder))
    wanted = {os.path.realpath(path) for path in paths}
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{name}/fd") if name.isdigit() else ():
                if os.readlink(f"/proc/{name}/fd/{handle}") in wanted:
                    found.add(int(name))
    return sorted(found)


def last_use_s(entry_folder: Path) -> float | None:
    """When the entry was used last (seconds since 1970), to the hour; None when it never was."""
    try:
        return EntryPaths(entry_folder).used.stat().st_mtime
    except OSError:
        return None


_UID = r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])"


def dependencies(entry: CacheEntry, known: Container[str]) -> tuple[str, ...]:
    """The ``known`` entries that this one needs: those recorded, and those whose folder its results name."""
    try:
        text = read_regular(EntryPaths(entry.path).state).decode("utf-8", "replace")
    except OSError:
        text = ""
    named = re.findall(_UID, f"{text} {entry.dependent_path}")
    details = details_of(entry) or EntryDetails()
    found = sorted({*details.dependencies, *named} - {entry.path.name, entry.uid})
    return tuple(uid for uid in found if uid in known)
