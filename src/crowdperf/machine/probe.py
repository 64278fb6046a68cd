"""A machine as recipes see it: files, tools, user, disks. ``Machine()`` is this one, ``recorded(folder)`` another.

A recorded machine is a folder:

    root/...         files as they lie on the machine (links may point to absolute paths: they stay inside root/)
    machine.json     {"note": "...", "environment": {"PATH": "/usr/bin"}, "user": {"name": "u", "uid": 1000,
                      "groups": ["u"]}, "disks": {"/": {"total_bytes": 1, "free_bytes": 1, "kind": "ext4"}},
                      "commands": {"nvidia-smi -L": {"code": 0, "stdout": "...", "stderr": ""}}}

A command that is not recorded is a program that is not there (exit code 127).
"""

import contextlib
import fnmatch
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine import mounts

TOOL_TIMEOUT_S = 20.0
"""Longer than any tool of a healthy machine takes to say its version; nvidia-smi with a broken driver may hang."""
NOT_FOUND = 127
"""Exit code of a shell that did not find a program (POSIX)."""
TIMED_OUT = 124
"""Exit code of coreutils' ``timeout`` for a program that it ended."""


class Ran(NamedTuple):
    """How a tool ended: exit code (127 not there, 124 ended after its time) and what it wrote."""

    code: int
    stdout: str = ""
    stderr: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether there is no such program."""
        return self.code == NOT_FOUND


class User(NamedTuple):
    """The user a recipe runs as, and the groups of this process by name."""

    name: str
    uid: int
    groups: tuple[str, ...]


class Disk(NamedTuple):
    """Space of a mounted file system in bytes; ``kind`` as in /proc/mounts, empty when unknown."""

    total_bytes: int
    free_bytes: int
    kind: str = ""


class Machine:
    """This machine. Nothing here raises for what is missing: texts are empty, lists too, and tools end with 127."""

    is_recorded = False

    def read_text(self, path: str) -> str:
        """The text of a file, empty when it cannot be read."""
        try:
            return self._place(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def is_file(self, path: str) -> bool:
        """Whether there is a file (or a link to one) that this user can reach."""
        return os.path.isfile(self._place(path))  # unlike Path.is_file, no error for a folder that may not be entered

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder (or a link to one) that this user can reach."""
        return os.path.isdir(self._place(path))

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder."""
        try:
            return tuple(sorted(os.listdir(self._place(path))))
        except OSError:
            return ()

    def glob(self, pattern: str) -> tuple[str, ...]:
        """The sorted paths that fit an absolute pattern; ``*`` stands for anything within one name."""
        found = ["/"]
        for part in pattern.strip("/").split("/"):
            found = [
                os.path.join(folder, name)
                for folder in found
                for name in (self.names(folder) if any(sign in part for sign in "*?[") else (part,))
                if fnmatch.fnmatchcase(name, part) and os.path.lexists(self._place(os.path.join(folder, name)))
            ]
        return tuple(sorted(found))

    def real_path(self, path: str) -> str:
        """The path with all links followed."""
        return os.path.realpath(path)

    def owner_uid(self, path: str) -> int | None:
        """The number of the user who owns a file or folder; None when it is not there."""
        try:
            return self._place(path).stat().st_uid
        except OSError:
            return None

    def can_write(self, path: str) -> bool:
        """Whether this process may write there."""
        return os.access(self._place(path), os.W_OK)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of this process."""
        return os.environ

    @property
    def user(self) -> User:
        """Who this process runs as."""
        import grp
        import pwd

        uid = os.getuid()
        groups = []
        for number in sorted({os.getgid(), *os.getgroups()}):
            with contextlib.suppress(KeyError):
                groups.append(grp.getgrgid(number).gr_name)
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = str(uid)
        return User(name, uid, tuple(groups))

    def disk(self, path: str) -> Disk | None:
        """The file system that holds ``path``; None when the path is not there."""
        try:
            usage = shutil.disk_usage(path)
        except OSError:
            return None
        found = mounts.holding(mounts.rows(self.read_text(mounts.MOUNTED)), os.path.realpath(path))
        return Disk(usage.total, usage.free, found.kind if found else "")

    def which(self, name: str) -> str:
        """The program that PATH gives for a name, empty when none."""
        return shutil.which(name) or ""

    def run(self, words: Sequence[str], *, timeout_s: float = TOOL_TIMEOUT_S) -> Ran:
        """Runs a tool in the C locale without input, and waits for it."""
        env = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                list(words),
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except FileNotFoundError:
            return Ran(NOT_FOUND, "", f"{words[0]}: not found")
        except PermissionError as error:
            return Ran(126, "", f"{words[0]}: {error.strerror}")
        except OSError as error:
            return Ran(126, "", f"{words[0]}: {error}")
        except subprocess.TimeoutExpired:
            return Ran(TIMED_OUT, "", f"{words[0]} did not answer within {timeout_s:g} s")
        return Ran(done.returncode, done.stdout, done.stderr)

    def _place(self, path: str) -> Path:
        return Path(path)


class _RecordedMachine(Machine):
    """A machine out of a folder; see the module."""

    is_recorded = True

    def __init__(self, folder: Path) -> None:
        self._root = folder / "root"
        self._facts: dict[str, Any] = json.loads((folder / "machine.json").read_text(encoding="utf-8"))

    def _place(self, path: str) -> Path:
        return Path(str(self._root) + self.real_path(path))

    def real_path(self, path: str) -> str:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        done: list[str] = []
        links = 0
        while parts:
            part = parts.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            place = os.path.join(str(self._root), *done, part)
            if os.path.islink(place) and links < 40:  # as many as Linux follows
                links += 1
                target = os.readlink(place)
                done = [] if target.startswith("/") else done
                parts = [word for word in target.split("/") if word not in ("", ".")] + parts
            else:
                done.append(part)
        return "/" + "/".join(done)

    def owner_uid(self, path: str) -> int | None:
        owners: dict[str, int] = self._facts.get("owners", {})
        return owners.get(path, 0) if os.path.lexists(self._place(path)) else None

    def can_write(self, path: str) -> bool:
        return path in self._facts.get("writable", ()) and os.path.lexists(self._place(path))

    @property
    def environment(self) -> Mapping[str, str]:
        found: dict[str, str] = self._facts.get("environment", {})
        return found

    @property
    def user(self) -> User:
        known = self._facts.get("user", {})
        return User(known.get("name", "user"), known.get("uid", 1000), tuple(known.get("groups", ("user",))))

    def disk(self, path: str) -> Disk | None:
        disks: dict[str, dict[str, Any]] = self._facts.get("disks", {})
        fitting = [place for place in disks if os.path.commonpath([place, path]) == place]
        return Disk(**disks[max(fitting, key=len)]) if fitting else None

    def which(self, name: str) -> str:
        for folder in self.environment.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
            path = os.path.join(folder, name)
            if self.is_file(path):
                return path
        return ""

    def run(self, words: Sequence[str], *, timeout_s: float = TOOL_TIMEOUT_S) -> Ran:
        row = self._facts.get("commands", {}).get(" ".join(words))
        return Ran(row.get("code", 0), row.get("stdout", ""), row.get("stderr", "")) if row else Ran(NOT_FOUND)


def recorded(folder: Path) -> Machine:
    """A recorded machine; raises OSError or ValueError when ``machine.json`` cannot be read."""
    return _RecordedMachine(folder)
