"""Starts a tritonserver on this machine and ends it: own free ports on 127.0.0.1, own deadline, own name.

The server is a child of `keeper.py`, which ends it when this process is gone, however that came. Standard library only:
the process that starts a server needs neither Triton nor its client. Where the server's files are stands in the
server.json that the recipe get-triton-server writes:

    {"format": 1, "version": "2.51.0", "program": ".../tritonserver", "backends": ".../backends",
     "environment": {"LD_LIBRARY_PATH": "...", "PYTHONPATH": "..."}, "served_by": "python-based onnxruntime",
     "versions": {"onnxruntime": "1.32.0", "numpy": "1.26.4", "python": "3.11.7"}}
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends.triton import keeper
from harness.errors import HarnessError

FORMAT = 1
HOST = "127.0.0.1"
_KEEPER = Path(keeper.__file__)
_GRACE_S = 5.0
"""How long a server that was asked to end may take before it is killed."""
_EXIT_TIMEOUT_S = 3
_PORT_TRIES = 3
_TAKEN = "already in use"
"""What Triton 2.51.0 says in its log of a port that another program has."""
_NO_GPU = "CudaDriverHelper"
"""Triton logs an error that names it on every machine without a GPU."""
_MAKE_AGAIN = "make it again: cm run script --tags=get,triton,server --renew"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """An installed server, as server.json describes it; `environment` is what its process needs beside this one's."""

    version: str
    program: Path
    backends: Path
    environment: Mapping[str, str]
    served_by: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to start. deadline_s: until when its models must be ready. ports: of HTTP and gRPC; None: free ones."""

    files: ServerFiles
    repository: Path
    log: Path
    deadline_s: float = 20.0
    ports: tuple[int, int] | None = None


def read_server_files(path: Path) -> ServerFiles:
    """Return what the server.json at `path` says; raises HarnessError when it cannot be used."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}; known: {FORMAT}")
        files = ServerFiles(
            version=str(content["version"]),
            program=Path(content["program"]),
            backends=Path(content["backends"]),
            environment={str(name): str(value) for name, value in content["environment"].items()},
            served_by=str(content["served_by"]),
            versions={str(name): str(value) for name, value in content["versions"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"the Triton server described in {path} cannot be used: {error!r}", _MAKE_AGAIN) from error
    if not files.program.is_file():
        raise HarnessError(f"{files.program}, named in {path}, is gone", _MAKE_AGAIN)
    return files


def free_ports(count: int) -> list[int]:
    """Return free ports of 127.0.0.1; another program may still take one before it is used."""
    listeners = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def ask(port: int, path: str, timeout_s: float = 5.0) -> tuple[int, Any]:
    """Return status and content (JSON, None for none) of a GET; raises OSError and http.client.HTTPException."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if body else None
    finally:
        connection.close()


def arguments(start: Start, ports: Sequence[int], name: str, prefix: str) -> list[str]:
    """Return the command of the server: HTTP and gRPC on `ports`, no metrics, nothing completed from the model."""
    return [
        str(start.files.program),
        f"--id={name}",
        f"--model-repository={start.repository}",
        f"--backend-directory={start.files.backends}",
        "--model-control-mode=none",
        "--disable-auto-complete-config",
        f"--http-address={HOST}",
        f"--http-port={ports[0]}",
        f"--grpc-address={HOST}",
        f"--grpc-port={ports[1]}",
        "--allow-metrics=false",
        f"--exit-timeout-secs={_EXIT_TIMEOUT_S}",
        f"--backend-config=python,shm-region-prefix-name={prefix}",
    ]


def reason(log_text: str) -> str:
    """Return why a server ended or is not ready: the errors in its log, else its last lines."""
    lines = [line.strip() for line in log_text.splitlines() if line.strip()]
    said = [line.partition("] ")[2] for line in lines if line.startswith("E")]
    errors = [text for text in said if text and _NO_GPU not in text]
    models = [line.partition("UNAVAILABLE: ")[2].rstrip("| ") for line in lines if "UNAVAILABLE: " in line]
    chosen = list(dict.fromkeys(models or errors or lines[-5:]))
    return "; ".join(chosen[:4])[:1200] or "it printed nothing"


class TritonServer:
    """A server that is ready. `name` is its own, so that another program on the port is noticed."""

    def __init__(self, start: Start, name: str, ports: Sequence[int]) -> None:
        self.files, self.log, self.name = start.files, start.log, name
        self.http_port, self.grpc_port = ports
        self.prefix = f"{name}_"
        command = arguments(start, ports, name, self.prefix)
        order = {
            "command": command,
            "environment": {**_plain_environment(), **start.files.environment},
            "log": str(start.log),
            "shm_prefix": self.prefix,
            "grace_s": _GRACE_S,
        }
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(_KEEPER), json.dumps(order)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self._keeper.poll() is None

    def is_ready(self) -> bool:
        """Whether the models can be asked; raises HarnessError when another server answers on the port."""
        try:
            status, _ = ask(self.http_port, "/v2/health/ready")
            if status != 200:
                return False
            _, content = ask(self.http_port, "/v2")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        found = content.get("name") if isinstance(content, dict) else content
        if found != self.name:
            message = f"port {self.http_port} is answered by {found!r}, not by the server that was started here"
            raise HarnessError(message, "run it again: other ports are taken then")
        return True

    def wait_ready(self, deadline_s: float) -> None:
        """Wait until the models are loaded; raises HarnessError with the server's reason, or at the deadline."""
        end_s = time.monotonic() + deadline_s
        while self.is_alive and time.monotonic() < end_s:
            if self.is_ready():
                return
            time.sleep(0.05)
        told = reason(self.log_text())
        if self.is_alive:
            message = f"tritonserver did not load its models within {deadline_s:g} s, and was ended: {told}"
            raise HarnessError(message, f"its log: {self.log}")
        raise HarnessError(f"tritonserver ended before it was ready: {told}", f"its log: {self.log}")

    def log_text(self) -> str:
        """Return what the server has printed."""
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def statistics(self, model: str) -> Mapping[str, Any]:
        """Return Triton's own figures of a model (its statistics extension); raises HarnessError."""
        try:
            status, content = ask(self.http_port, f"/v2/models/{model}/versions/1/stats", timeout_s=10.0)
            if status == 200 and isinstance(content, dict):
                found: Mapping[str, Any] = content["model_stats"][0]
                return found
            problem: object = f"status {status}"
        except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
            problem = error
        told = "" if self.is_alive else f"; the server has ended: {reason(self.log_text())}"
        raise HarnessError(f"tritonserver did not give its statistics: {problem}{told}", f"its log: {self.log}")

    def stop(self) -> None:
        """End the server and remove what it left in /dev/shm; may be called twice."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        try:
            self._keeper.wait(3 * _GRACE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        keeper.remove_regions(self.prefix)  # the keeper did, unless it was killed itself

    def exit_code(self) -> int | None:
        """Return the server's exit code once it has ended."""
        return self._keeper.poll()


def _plain_environment() -> dict[str, str]:
    """Return this process's environment without what leads the server's Python to other packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}


def start_server(start: Start) -> TritonServer:
    """Return a ready server; raises HarnessError with the server's reason. A taken port is tried again elsewhere."""
    tries = 1 if start.ports else _PORT_TRIES
    for attempt in range(1, tries + 1):
        start.log.unlink(missing_ok=True)
        name = f"crowdperf_triton_{os.getpid()}_{secrets.token_hex(4)}"
        server = TritonServer(start, name, start.ports or free_ports(2))
        try:
            server.wait_ready(start.deadline_s)
            return server
        except BaseException:
            is_port_taken = not server.is_alive and _TAKEN in server.log_text()
            if attempt == tries or not is_port_taken:
                server.stop()
                raise
    raise AssertionError("the last try returns or raises")
