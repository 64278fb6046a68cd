"""Starts processes: output shown live and kept, the whole group ended when the engine is. The one module that does."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from ..disk.files import held_descriptors
from .interrupts import held_back
from .memory import MemoryFacts, MemoryWatch

TAIL_LINES = 15
TAIL_BYTES = 8192
MASK = b"***"
MASKED_BYTES = 6
"""Shorter values are no secrets but words such as ``yes``, and would be found everywhere."""
LINGER_S = 0.5
"""How long the output of a process that has ended is still read while something it started holds it open."""
GRACE_S = 3.0


class Ended(NamedTuple):
    """How a command ended: exit status, the last lines of standard output and of standard error.

    ``memory`` is filled for a command that SIGKILL ended.
    """

    status: int
    output: tuple[str, ...]
    errors: tuple[str, ...]
    memory: MemoryFacts = MemoryFacts()


def run_process(command: Sequence[str], folder: Path, *, extra_env: Mapping[str, str], log_path: Path | None) -> Ended:
    """Runs a command with its output shown live and kept in the log; how it ended.

    Standard input is the user's only when that is a terminal. On Ctrl-C or an error here the whole process group ends.
    """
    interactive = sys.stdin is not None and sys.stdin.isatty()
    memory = MemoryWatch()
    process: subprocess.Popen[bytes] | None = None
    try:
        with held_back():  # else a child that was just started could be lost
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **extra_env, "PWD": str(folder)},
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=not interactive,
                pass_fds=held_descriptors() if os.name == "posix" else (),
            )
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(log_path.open("ab")) if log_path else None
            tails = _pump(process, log, [os.fsencode(value) for value in extra_env.values()])
        status = process.wait()
        if status:  # what it left running must not write into the entry that the next run makes
            end_group(process, is_group=not interactive)
        facts = memory.facts() if is_kill(status) else MemoryFacts()
        return Ended(status, last_lines(tails[0]), last_lines(tails[1]), facts)
    except BaseException:
        if process is not None:
            end_group(process, is_group=not interactive)
        raise


def answer_of(command: Sequence[str]) -> str:
    """What a quick tool says on its standard output; empty when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def hand_over(command: Sequence[str], folder: Path, *, extra_env: Mapping[str, str]) -> int:
    """Runs a command with the user's terminal until it ends; its exit status."""
    return subprocess.run(command, cwd=folder, env={**os.environ, **extra_env, "PWD": str(folder)}).returncode


def _pump(process: subprocess.Popen[bytes], log: IO[bytes] | None, secrets: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Copies the child's output to ours and to the log until it ends; the last bytes of its output and of its errors.

    What the child left running in the background may hold the output open; that is not waited for.
    """
    sys.stdout.flush()
    tails = {1: b"", 2: b""}
    ended_s = 0.0
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for stream, target in ((process.stdout, 1), (process.stderr, 2)):
            assert stream is not None
            stack.enter_context(stream)
            selector.register(stream, selectors.EVENT_READ, (target, Mask(secrets)))
        while selector.get_map():
            ready = selector.select(LINGER_S)
            for key, _ in ready:
                block = os.read(key.fd, 65536)
                if not block:
                    selector.unregister(key.fileobj)
                target, mask = key.data
                block = mask.feed(block)
                with contextlib.suppress(BrokenPipeError):
                    _write_all(target, block)
                if log:
                    log.write(block)
                    log.flush()
                tails[target] = (tails[target] + block)[-TAIL_BYTES:]
            if process.poll() is not None:
                ended_s = ended_s or time.monotonic()
                if not ready or time.monotonic() > ended_s + LINGER_S:
                    break
    return tails[1], tails[2]


def last_lines(tail: bytes) -> tuple[str, ...]:
    """The last lines with something in them; of a progress bar, which writes a line many times over, its last state."""
    lines = tail.decode(errors="replace").split("\n")
    shown = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)
    return tuple([line for line in shown if line][-TAIL_LINES:])


class Mask:
    """Hides secrets in one stream, also where a secret comes in two blocks; lives as long as the stream."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) >= MASKED_BYTES), key=len, reverse=True)
        self._kept = b""

    def feed(self, block: bytes) -> bytes:
        """What may be shown after one more block; the empty block ends the stream."""
        if not self._secrets:
            return block
        text = self._kept + block
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        kept = 0
        if block:
            starts = (size for secret in self._secrets for size in range(1, min(len(secret), len(text) + 1)))
            kept = max((size for size in starts if self._may_go_on(text[-size:])), default=0)
        self._kept = text[len(text) - kept :]
        return text[: len(text) - kept]

    def _may_go_on(self, ending: bytes) -> bool:
        return any(secret.startswith(ending) for secret in self._secrets)


def _write_all(descriptor: int, block: bytes) -> None:
    while block:
        block = block[os.write(descriptor, block) :]


def end_group(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    """Ends a child and everything it started: asks first, then kills.

    A child that shares our group (it may read from the terminal) is ended with its descendants, one by one.
    """
    family = () if is_group else descendants(process.pid)
    try:
        _signal(process, signal.SIGTERM, is_group=is_group)
        _signal_each(family, signal.SIGTERM)
        _wait(process, is_group=is_group)
    finally:  # also when the user presses Ctrl-C once more
        _signal(process, signal.SIGKILL, is_group=is_group)
        _signal_each(family, signal.SIGKILL)
        _wait(process, is_group=is_group)


Birth = tuple[int, str]
"""A process id and the time it started, by which it is known from a later process with the same id."""


def descendants(pid: int) -> tuple[Birth, ...]:
    """The processes that ``pid`` started, and theirs; none where /proc does not tell."""
    children: dict[int, list[Birth]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and (fields := _stat_fields(int(name))):
            children.setdefault(int(fields[1]), []).append((int(name), fields[19]))
    found: list[Birth] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), ())
        found += below
        waiting += [child for child, _ in below]
    return tuple(found)


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on (proc(5): parent second, start time twentieth)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _signal_each(family: Sequence[Birth], number: int) -> None:
    for pid, birth in family:
        fields = _stat_fields(pid)
        if fields and fields[19] == birth:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _signal(process: subprocess.Popen[bytes], number: int, *, is_group: bool) -> bool:
    """Sends a signal; whether there was anybody to get it."""
    try:
        if is_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _wait(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    end_s = time.monotonic() + GRACE_S
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    while is_group and time.monotonic() < end_s and _signal(process, 0, is_group=True):
        time.sleep(0.02)


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
