"""A server of this machine for the time of a run: a child of `server_supervisor.py`, which ends it when this process is
gone, however that came. Standard library only: who starts a server needs nothing of the server's own packages.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.harness.base import server_supervisor

HOST = "127.0.0.1"
_KEEPER = Path(server_supervisor.__file__)
_GRACE_S = 5.0
"""How long a server that was asked to end may take before it is killed."""


def free_ports(count: int) -> list[int]:
    """Return free ports of 127.0.0.1; another program may still take one before it is used."""
    listeners = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def ask(port: int, path: str, timeout_s: float = 5.0) -> tuple[int, Any]:
    """Return status and content (JSON, None for none) of a GET; raises OSError and http.client.HTTPException."""
    import http.client  # with ssl and email, which no run without a server needs

    connection = http.client.HTTPConnection(HOST, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if body else None
    finally:
        connection.close()


def plain_environment() -> dict[str, str]:
    """Return this process's environment without what leads the server's Python to other packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}


class KeptServer:
    """A started server, whose output goes to `log`. shm_prefix: shared memory of such names is removed at its end."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, shm_prefix: str = "") -> None:
        self.log, self.prefix = log, shm_prefix
        order = {
            "command": list(command),
            "environment": dict(environment),
            "log": str(log),
            "shm_prefix": shm_prefix,
            "grace_s": _GRACE_S,
        }
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(_KEEPER), json.dumps(order)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        _running.add(self)

    @property
    def is_alive(self) -> bool:
        return self._keeper.poll() is None

    def log_text(self) -> str:
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """End the server and remove what it left in /dev/shm; may be called twice."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        try:
            self._keeper.wait(3 * _GRACE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        server_supervisor.remove_regions(self.prefix)  # the keeper did, unless it was killed itself
        _running.discard(self)


_running: set[KeptServer] = set()


def stop_all() -> None:
    """End every server of this process that is not stopped yet: a run that failed must not disturb the next one."""
    for server in tuple(_running):
        server.stop()
