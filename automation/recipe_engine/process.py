"""Starts processes: output shown live and kept, the whole group ended when the engine is. The one module that does."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from .files import held_descriptors

TAIL_LINES = 15
MASK = "***"


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
            tail = _pump(process, log, [value.encode() for value in extra_env.values()])
        return process.wait(), tail
    except BaseException:
        end_group(process, is_group=not interactive)
        raise


def _pump(process: subprocess.Popen[bytes], log: IO[bytes] | None, secrets: Sequence[bytes]) -> list[str]:
    """Copies the child's output to ours and to the log until it ends; the last lines of both streams together."""
    sys.stdout.flush()
    tail = b""
    with selectors.DefaultSelector() as selector:
        for stream, target in ((process.stdout, 1), (process.stderr, 2)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, target)
        while selector.get_map():
            for key, _ in selector.select():
                block = os.read(key.fd, 65536)
                if not block:
                    selector.unregister(key.fileobj)
                    continue
                for secret in secrets:
                    block = block.replace(secret, MASK.encode())
                with contextlib.suppress(BrokenPipeError):
                    _write_all(key.data, block)
                if log:
                    log.write(block)
                    log.flush()
                tail = (tail + block)[-8192:]
    return tail.decode(errors="replace").replace("\r", "\n").splitlines()[-TAIL_LINES:]


def _write_all(descriptor: int, block: bytes) -> None:
    while block:
        block = block[os.write(descriptor, block) :]


def end_group(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    """Ends a child and, when it leads a group, everything it started: asks first, then kills."""
    for number, grace_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if is_group:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            return


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
