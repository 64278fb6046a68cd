"""Starts processes, and is the only module that does: their output is shown live and kept; they end with the engine.

A program that the kernel ends for lack of memory dies by SIGKILL and prints nothing. ``oom_kill`` in ``/proc/vmstat``
counts such ends on the machine, the same word in ``memory.events`` those of a control group, which is what a container
has (https://docs.kernel.org/admin-guide/cgroup-v2.html, read November 2026).
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from ..disk.files import PRIVATE_MODE, STANDARD_OUTPUT, naming
from ..disk.locks import first_environment, held_descriptors
from ..rules.errors import ScriptFailed
from ..rules.secrets import learn
from .console import StreamMask, as_called, held_back

TAIL_LINES = 15
TAIL_BYTES = 8192
LINGER_S = 0.5
"""How long the output of a process that has ended is still read while something it started holds it open."""
GRACE_S = 3.0
MARKS_VARIABLE = "CROWDPERF_STARTED_BY"
"""In the environment of each child: a mark of the call that started it, after those of its ancestors."""

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""Control groups of version 1 write "no limit" as a number near 2^63."""


class MemoryFacts(NamedTuple):
    """What is known of the memory after a program was killed.

    ``is_exhausted`` is whether the kernel killed something for lack of memory while it ran; None where it does not
    count. ``lines`` say it for people, with limits and sizes.
    """

    is_exhausted: bool | None = None
    lines: tuple[str, ...] = ()


class Ended(NamedTuple):
    """How a command ended: exit status, the last lines of standard output and of standard error.

    ``memory`` is filled for a command that SIGKILL ended.
    """

    status: int
    output: tuple[str, ...]
    errors: tuple[str, ...]
    memory: MemoryFacts = MemoryFacts()


def run_process(
    command: Sequence[str],
    folder: Path,
    *,
    extra_env: Mapping[str, str],
    log_path: Path | None,
    is_silent: bool = False,
) -> Ended:
    """Runs a command with its output, without secrets, shown live and kept in the log; how it ended.

    ``is_silent``: what it writes to standard output is not shown; its errors are.
    Standard input is the user's only when that is a terminal. On Ctrl-C or an error here all that it started ends.
    """
    interactive = sys.stdin is not None and sys.stdin.isatty()
    learn(extra_env)
    mark = f";{os.getpid()}-{time.monotonic_ns()};"
    marks = os.environ.get(MARKS_VARIABLE, "") + mark
    memory = MemoryWatch()
    process: subprocess.Popen[bytes] | None = None
    try:
        with held_back():  # else a child that was just started could be lost
            env = {**os.environ, **extra_env, "PWD": str(folder), MARKS_VARIABLE: marks}
            process = _start(command, folder, env, is_shared=interactive)
        with contextlib.ExitStack() as stack:
            opener = partial(os.open, mode=PRIVATE_MODE)
            log = stack.enter_context(open(log_path, "ab", opener=opener)) if log_path else None
            tails = _pump(process, log, is_silent=is_silent)
        status = process.wait()
        if status:  # what it left running must not write into the entry that the next run makes
            end_group(process, mark, is_group=not interactive)
        facts = memory.facts() if is_kill(status) else MemoryFacts()
        return Ended(status, last_lines(tails[0]), last_lines(tails[1]), facts)
    except BaseException:
        if process is not None:
            end_group(process, mark, is_group=not interactive)
        raise


def _start(command: Sequence[str], folder: Path, env: Mapping[str, str], *, is_shared: bool) -> subprocess.Popen[bytes]:
    """The started process, in the user's group and on the user's terminal when ``is_shared``.

    Raises ScriptFailed when there is no such program.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=None if is_shared else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not is_shared,
            pass_fds=held_descriptors() if os.name == "posix" else (),
        )
    except FileNotFoundError as error:
        if error.filename != command[0]:
            raise
        failure = ScriptFailed(
            f"the program {command[0]} was not found, PATH is {env.get('PATH', 'not set')!r}",
            hint=f"install {command[0]}, or add its folder to PATH",
        )
        raise failure from None


def answer_of(command: Sequence[str]) -> str:
    """The standard output of a quick tool; empty when the tool fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def hand_over(command: Sequence[str], folder: Path, *, extra_env: Mapping[str, str]) -> int:
    """Runs a command with the user's terminal until it ends; its exit status."""
    return subprocess.run(command, cwd=folder, env={**os.environ, **extra_env, "PWD": str(folder)}).returncode


class _Output:
    """One stream of a child on its way to ours (``target``; None: to none) and to the log; ``tail``: its last bytes."""

    def __init__(self, target: int | None, log: IO[bytes] | None) -> None:
        self.tail = b""
        self._target = target
        self._log = log
        self._mask = StreamMask()

    def take(self, block: bytes) -> None:
        """Passes on what the child wrote; the empty block ends the stream."""
        self._write(self._mask.feed(block))

    def settle(self) -> None:
        """Passes on the end of a question, which has no line break."""
        self._write(self._mask.settle())

    def _write(self, block: bytes) -> None:
        if self._target is not None:
            rest = as_called(block.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            with contextlib.suppress(BrokenPipeError), naming(STANDARD_OUTPUT):
                while rest:
                    rest = rest[os.write(self._target, rest) :]
        if self._log and block:
            with naming(self._log.name, len(block)):
                self._log.write(block)
                self._log.flush()
        self.tail = (self.tail + block)[-TAIL_BYTES:]


def _pump(process: subprocess.Popen[bytes], log: IO[bytes] | None, *, is_silent: bool) -> tuple[bytes, bytes]:
    """Copies the child's output to ours and to the log until it ends; the last bytes of its output and of its errors.

    What the child left running in the background may hold the output open; that is not waited for.
    """
    sys.stdout.flush()
    outputs = {1: _Output(None if is_silent else 1, log), 2: _Output(2, log)}
    ended_s = 0.0
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for stream, target in ((process.stdout, 1), (process.stderr, 2)):
            assert stream is not None
            stack.enter_context(stream)
            selector.register(stream, selectors.EVENT_READ, outputs[target])
        while selector.get_map():
            ready = selector.select(LINGER_S)
            for key, _ in ready:
                block = os.read(key.fd, 65536)
                if not block:
                    selector.unregister(key.fileobj)
                key.data.take(block)
            if process.poll() is not None:
                ended_s = ended_s or time.monotonic()
                if not ready or time.monotonic() > ended_s + LINGER_S:
                    break
            elif not ready:
                for key in selector.get_map().values():
                    key.data.settle()
        for key in selector.get_map().values():  # held open in the background
            key.data.take(b"")
    return outputs[1].tail, outputs[2].tail


def last_lines(tail: bytes) -> tuple[str, ...]:
    """The last lines with something in them; of a progress bar, which writes a line many times over, its last state."""
    lines = tail.decode(errors="replace").split("\n")
    shown = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)
    return tuple([line for line in shown if line][-TAIL_LINES:])


def end_group(process: subprocess.Popen[bytes], mark: str, *, is_group: bool) -> None:
    """Ends a child and everything it started: asks first, then kills.

    What left its group (setsid) is found by ``mark`` on Linux. A child that shares our group (it may read from the
    terminal) is ended with its descendants, one by one.
    """
    family = {*(() if is_group else descendants(process.pid)), *_marked(process, mark)}
    try:
        _end(process, family, signal.SIGTERM, is_group=is_group)
    finally:  # also when the user presses Ctrl-C once more
        _end(process, family, signal.SIGKILL, is_group=is_group)


Birth = tuple[int, str]
"""A process id and the time it started, by which it is known from a later process with the same id."""


def descendants(pid: int) -> tuple[Birth, ...]:
    """The processes that ``pid`` started, and theirs; none where there is no /proc."""
    children: dict[int, list[Birth]] = {}
    for child, fields in _processes():
        children.setdefault(int(fields[1]), []).append((child, fields[19]))
    found: list[Birth] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), ())
        found += below
        waiting += [child for child, _ in below]
    return tuple(found)


def _marked(process: subprocess.Popen[bytes], mark: str) -> Iterator[Birth]:
    """The processes outside the group of ``process`` that were started with ``mark`` in their environment."""
    for pid, fields in _processes():
        if process.pid not in (pid, int(fields[2])) and mark.encode() in first_environment(str(pid)):
            yield pid, fields[19]


def _processes() -> Iterator[tuple[int, list[str]]]:
    for pid in map(int, filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ())):
        if fields := _stat_fields(pid):
            yield pid, fields


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on (proc(5): parent second, start time twentieth)."""
    return _kernel_text(PROC / str(pid) / "stat").rpartition(")")[2].split()


def _is_running(known: Birth) -> bool:
    fields = _stat_fields(known[0])
    return bool(fields) and fields[19] == known[1] and fields[0] != "Z"


def _end(process: subprocess.Popen[bytes], family: Collection[Birth], number: int, *, is_group: bool) -> None:
    """Sends a signal to a child (and its group) and to ``family``, and waits ``GRACE_S`` at most until all ended."""
    _signal(process, number, is_group=is_group)
    for pid, _ in filter(_is_running, family):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    end_s = time.monotonic() + GRACE_S
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    while time.monotonic() < end_s and (
        any(map(_is_running, family)) or (is_group and _signal(process, 0, is_group=True))
    ):
        time.sleep(0.02)


def _signal(process: subprocess.Popen[bytes], number: int, *, is_group: bool) -> bool:
    """Sends a signal; whether there was a process to get it."""
    try:
        if is_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


EXIT_MEANINGS = {126: "a program was found but could not be started", 127: "a program was not found"}
"""What shells mean by these exit codes (POSIX, section 2.8.2)."""


def exit_text(status: int) -> str:
    """A process's end in words: ``failed with exit code 3`` or ``was killed by SIGKILL``."""
    name = signal_name(status)
    if name:
        return f"was killed by {name} (status {status})"
    meaning = f" ({EXIT_MEANINGS[status]})" if status in EXIT_MEANINGS else ""
    return f"failed with exit code {status}{meaning}"


def signal_name(status: int) -> str:
    """The signal that ended a process, by its own status or as a shell reports it (128 + number); empty if none."""
    number = -status if status < 0 else status - 128 if status > 128 else 0
    try:
        return signal.Signals(number).name if number else ""
    except ValueError:
        return ""


def is_kill(status: int) -> bool:
    """Whether a process was ended by SIGKILL, which is what the kernel does when memory runs out."""
    return status in (-signal.SIGKILL, 128 + signal.SIGKILL)


# --- memory ---


class MemoryWatch:
    """Made before a program starts; ``facts`` says afterwards what happened to the memory in between."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        self._proc = proc
        self._cgroups = cgroups
        self._groups = group_folders(_kernel_text(proc / "self" / "cgroup"), cgroups)
        self._kills = self._kill_counts()

    def facts(self) -> MemoryFacts:
        """What is known now."""
        from ..rules.amounts import size_text  # here, because only failures need it

        after = self._kill_counts()
        is_exhausted = any(count > self._kills.get(file, 0) for file, count in after.items()) if after else None
        events = {
            None: (),
            True: (
                "memory: the kernel killed a process because memory ran out while it ran (its oom_kill counter grew)",
            ),
            False: ("memory: the kernel killed no process for memory while it ran (oom_kill)",),
        }
        machine = figures(_kernel_text(self._proc / "meminfo"))
        sizes = {
            "limit of this control group": self._limit_bytes(),
            "in this machine": machine.get("MemTotal"),
            "free now, after it ended": machine.get("MemAvailable"),
            "maximum used by one program of this run": largest_child_bytes() or None,
        }
        known = [f"{size_text(size_bytes)} {words}" for words, size_bytes in sizes.items() if size_bytes is not None]
        return MemoryFacts(is_exhausted, (*events[is_exhausted], *(["memory: " + ", ".join(known)] if known else ())))

    def _kill_counts(self) -> dict[Path, int]:
        files = (self._proc / "vmstat", *(folder / "memory.events" for folder in self._groups))
        counts = {file: figures(_kernel_text(file)).get("oom_kill") for file in files}
        return {file: count for file, count in counts.items() if count is not None}

    def _limit_bytes(self) -> int | None:
        """The smallest limit of the control groups of this process and of those above them."""
        above = {parent for folder in self._groups for parent in (folder, *folder.parents)}
        groups = [folder for folder in above if folder.is_relative_to(self._cgroups)]
        texts = [
            _kernel_text(folder / name).strip() for folder in groups for name in ("memory.max", "memory.limit_in_bytes")
        ]
        return min((int(text) for text in texts if text.isdigit() and int(text) < UNLIMITED_BYTES), default=None)


def _kernel_text(path: Path) -> str:
    """The text of a file of the kernel; empty when it has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def figures(text: str) -> dict[str, int]:
    """The numbers of lines ``name value`` or ``name: value kB`` by name, sizes in bytes."""
    rows = [line.replace(":", " ", 1).split() for line in text.splitlines()]
    units = {"kB": 1024}
    return {row[0]: int(row[1]) * units.get(row[-1], 1) for row in rows if len(row) > 1 and row[1].isdigit()}


def group_folders(text: str, root: Path) -> list[Path]:
    """The folders with the memory files of the control group that ``/proc/self/cgroup`` names; inside a container they
    are at the ``root``.
    """
    found = [root]
    for line in text.splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            found.append(root / path.lstrip("/"))
        elif "memory" in controllers.split(","):
            found += [root / "memory", root / "memory" / path.lstrip("/")]
    return list(dict.fromkeys(found))


def largest_child_bytes() -> int:
    """The peak memory of the largest program that this process started and saw end; 0 if unknown."""
    try:
        import resource  # here, because only failures ask
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
