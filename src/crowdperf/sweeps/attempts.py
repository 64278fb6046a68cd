"""Attempts at a point: who may make one, whether one is alive, and what one has published.

It trusts no clock but the file system's: a heartbeat is compared with a file that is touched beside it. Like all that
runs on a node, this needs only the standard library, and of it only modules that are imported quickly: no dataclasses,
tempfile or argparse.
"""

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_object, write_json

HEARTBEAT_S = 15.0
STALE_AFTER = 3
"""Heartbeats that may be missing before an attempt on another machine counts as lost."""
MARKER = "CM_SWEEP_POINT"
"""Variable of everything that a point starts; finds what a killed attempt has left behind."""

_SEARCHED_BYTES, _LONGEST_ERROR = 1 << 16, 300


def utc_now() -> str:
    """The time of this machine, for people only: nothing is decided by it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def random_word() -> str:
    """A name that no other process of any machine makes."""
    return os.urandom(6).hex()


def write_state(path: Path, content: Mapping[str, Any], *, is_durable: bool = True) -> None:
    """Writes a file about an attempt, or about jobs, whole; it lasts unless it is said not to matter."""
    write_json(path, content, is_durable=is_durable, indent=1, end="")


# Processes: which attempt is alive, and what a dead one has left behind.


def identity(pid: int) -> dict[str, Any]:
    """What tells a process from all others, on all machines, at all times."""
    return {
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "pid": pid,
        "start_ticks": _start_ticks(pid),
    }


def _start_ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_running(attempt: Path) -> bool:
    """Whether an attempt has not ended: by its process where that can be seen from here, else by its heartbeat."""
    state = read_object(attempt / "state.json") or {}
    if state.get("state", "running") != "running":
        return False
    known = state.get("process") or {}
    here = identity(os.getpid())
    if known and (known["boot"], known["pid_namespace"]) == (here["boot"], here["pid_namespace"]):
        return bool(_start_ticks(known["pid"]) == known["start_ticks"])
    return heartbeat_age_s(attempt) < STALE_AFTER * float(state.get("heartbeat_s", HEARTBEAT_S))


def heartbeat_age_s(attempt: Path) -> float:
    """Seconds since an attempt gave a sign of life, by the file system's clock."""
    with contextlib.suppress(OSError), open(attempt / "heartbeat", "rb") as file:
        beat = os.fstat(file.fileno()).st_mtime  # opening asks an NFS server, which a mere stat need not
        return _now(attempt.parent) - beat
    return _now(attempt.parent) - attempt.stat().st_mtime


def _now(folder: Path) -> float:
    probe = folder / f".probe-{random_word()}"
    try:
        with open(probe, "xb") as file:
            now = os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()  # somebody looks who may not write
    probe.unlink()
    return now


def end_leftovers(point: Path) -> int:
    """Kills what attempts of this point have left running on this machine, wherever it hid; gives how many."""
    marker = f"{MARKER}={point.resolve()}".encode()
    killed = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if marker in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed += 1
    return killed


def last_error(out: Path) -> str:
    """The first line of the last error that CM printed into a file; empty where it printed none."""
    with open(out, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _SEARCHED_BYTES))
        text = file.read().decode("utf-8", "replace")
    return text.rpartition("\nCM error: ")[2].split("\n", 1)[0][:_LONGEST_ERROR] if "\nCM error: " in text else ""


# What was published.


def digests(results: Path, beat: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
    """Name, SHA-256 and bytes of each regular file below a folder, by name. Calls `beat` every 64 MiB."""
    found = []
    for folder, _, names in os.walk(results):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink() and path.is_file():
                with open(path, "rb") as file:
                    digest = hashlib.sha256()
                    while block := file.read(1 << 26):
                        digest.update(block)
                        beat()
                name = path.relative_to(results).as_posix()
                found.append({"name": name, "sha256": digest.hexdigest(), "bytes": path.stat().st_size})
    return sorted(found, key=lambda one: str(one["name"]))


def damage(point: Path, done: Mapping[str, Any], *, is_thorough: bool = True) -> str:
    """What of a published result is not as it was published; empty if nothing. Not thorough: sizes only."""
    try:
        return _damage(point, done, is_thorough)
    except (TypeError, KeyError):
        return "done.json does not list the files of a result"


def _damage(point: Path, done: Mapping[str, Any], is_thorough: bool) -> str:
    for known in done.get("files", ()):
        path = point / "results" / known["name"]
        if path.is_symlink() or not path.is_file() or path.stat().st_size != known["bytes"]:
            return f"results/{known['name']} is missing or has another size"
    if is_thorough:
        now = {one["name"]: one["sha256"] for one in digests(point / "results")}
        for known in done.get("files", ()):
            if now.get(known["name"]) != known["sha256"]:
                return f"results/{known['name']} was changed"
    return ""


def make_room(point: Path, attempt: Path) -> str:
    """Moves results that cannot be continued out of the way, into the attempt they came from; says what was done."""
    results, done_file = point / "results", point / "done.json"
    if (done := read_object(done_file)) is not None or done_file.exists():
        if done is not None and not (wrong := damage(point, done)):
            return ""
        done_file.rename(attempt / "damaged-done.json")
        if results.is_dir():
            results.rename(attempt / "damaged-results")
        return wrong if done is not None else "done.json cannot be read"
    earlier = sorted(path for path in attempt.parent.iterdir() if path.name.isdigit() and path != attempt)
    invalid = [path for path in earlier if (read_object(path / "state.json") or {}).get("state") == "invalid"]
    if invalid and results.is_dir() and not (invalid[-1] / "results").exists():
        results.rename(invalid[-1] / "results")
        return f"the invalid results of attempt {invalid[-1].name} are in its folder"
    return ""


def claim(point: Path, job: Mapping[str, str], wait_s: float) -> Path | None:
    """Makes the folder of a new attempt, which only one process can; None where another attempt is under way.

    An attempt of the same job is the one before a requeue: its heartbeat is waited for to grow stale.
    """
    attempts = point / "attempts"
    attempts.mkdir(exist_ok=True)
    until = time.monotonic() + wait_s
    while True:
        known = sorted(path for path in attempts.iterdir() if path.name.isdigit())
        running = [path for path in known if is_running(path)]
        if not running:
            new = attempts / f"{int(known[-1].name) + 1 if known else 1:03d}"
            with contextlib.suppress(FileExistsError):
                new.mkdir()
                return new
            continue
        before = (read_object(running[-1] / "state.json") or {}).get("job") or {}
        if not job or before.get("SLURM_JOB_ID") != job.get("SLURM_JOB_ID") or time.monotonic() > until:
            return None
        time.sleep(min(1.0, wait_s / 10))
