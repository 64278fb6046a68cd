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
from typing import IO

from .files import held_descriptors

TAIL_LINES = 15
MASK = b"***"
MASKED_BYTES = 6
"""Shorter values are no secrets but words such as ``yes``, and would be found everywhere."""
LINGER_S = 0.5
"""How long the output of a process that has ended is still read while something it started holds it open."""
GRACE_S = 3.0


def run_process(
    command: Sequence[str], folder: Path, *, extra_env: Mapping[str, str], log_path: Path | None
) -> tuple[int, list[str]]:
    """Runs a command with its output shown live and kept in the log; exit status and the last lines.

    Standard input is the user's only when that is a terminal. On Ctrl-C or an error here the whole process group ends.
    """
    interactive = sys.stdin is not None and sys.stdin.isatty()
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
    try:
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(log_path.open("ab")) if log_path else None
            tail = _pump(process, log, [os.fsencode(value) for value in extra_env.values()])
        return process.wait(), tail
    except BaseException:
        end_group(process, is_group=not interactive)
        raise


def _pump(process: subprocess.Popen[bytes], log: IO[bytes] | None, secrets: Sequence[bytes]) -> list[str]:
    """Copies the child's output to ours and to the log until it ends; the last lines of both streams together.

    What the child left running in the background may hold the output open; that is not waited for.
    """
    sys.stdout.flush()
    tail = b""
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
                tail = (tail + block)[-8192:]
            if process.poll() is not None:
                ended_s = ended_s or time.monotonic()
                if not ready or time.monotonic() > ended_s + LINGER_S:
                    break
    return tail.decode(errors="replace").replace("\r", "\n").splitlines()[-TAIL_LINES:]


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
    """Ends a child and, when it leads a group, everything it started: asks first, then kills."""
    try:
        _signal(process, signal.SIGTERM, is_group=is_group)
        _wait(process, is_group=is_group)
    finally:  # also when the user presses Ctrl-C once more
        _signal(process, signal.SIGKILL, is_group=is_group)
        _wait(process, is_group=is_group)


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


def exit_text(status: int) -> str:
    """A process's end in words: ``failed with exit code 3`` or ``was killed by SIGKILL``."""
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(number).name} (status {status})"
    return f"failed with exit code {status}"


def is_kill(status: int) -> bool:
    """Whether a process was ended by SIGKILL, which is what the kernel does when memory runs out."""
    return status in (-signal.SIGKILL, 128 + signal.SIGKILL)
