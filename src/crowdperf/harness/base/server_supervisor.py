"""Keeps one server: starts it, ends it, and leaves nothing behind. A process of its own, standard library only.

    python3 server_supervisor.py '{"command": [...], "environment": {...}, "log": "server.log", "shm_prefix": "x_",
                                   "grace_s": 5}'

It ends the server when its own standard input ends (the process that started it closed the pipe, or is gone: also after
`kill -9`), or on SIGTERM; it ends by itself when the server does, with the server's code. It then kills what is left of
the server's process group (the processes of its models), and removes the shared memory in /dev/shm whose name begins
with `shm_prefix`. A Ctrl-C in the terminal does not reach it: it is started in a session of its own. When the
keeper itself is killed, the kernel ends the server with SIGTERM (PR_SET_PDEATHSIG), on which it cleans up.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SHARED_MEMORY = Path("/dev/shm")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""prctl(2), <linux/prctl.h>."""
_GROUP_END_S = 5.0


def remove_regions(prefix: str, folder: Path = SHARED_MEMORY) -> None:
    """Remove the shared memory whose name begins with `prefix`; an empty prefix removes nothing."""
    if not prefix:
        return
    for path in sorted(folder.glob("*")):
        if path.name.startswith(prefix):
            path.unlink(missing_ok=True)


def _ends_with_parent() -> Callable[[], None]:
    """Return what the new process calls before the server's program is loaded into it."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    """End the server: SIGTERM, then after `grace_s` SIGKILL."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(grace_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _end_group(group: int) -> None:
    """Kill what is left of the server's process group, and wait for it to be gone; orphans of it are children here."""
    end_s = time.monotonic() + _GROUP_END_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < end_s:
            os.killpg(group, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.02)


def keep(order: Mapping[str, Any]) -> int:
    """Start the server and stay until it has ended; return its code."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda found, frame: told.append(found))
    signal.signal(signal.SIGCHLD, lambda found, frame: None)
    with Path(order["log"]).open("ab") as log:
        child = subprocess.Popen(
            order["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=order["environment"], start_new_session=True, preexec_fn=_ends_with_parent(),
        )  # fmt: skip
    try:
        while child.poll() is None and not told:
            ready = select.select([sys.stdin.fileno(), wake], [], [])[0]
            if wake in ready:
                os.read(wake, 64)
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 64):
                break
    finally:
        _end(child, order["grace_s"])
        _end_group(child.pid)
        remove_regions(order["shm_prefix"])
    return child.returncode


if __name__ == "__main__":
    code = keep(json.loads(sys.argv[1]))
    sys.exit(code if code >= 0 else 128 - code)
