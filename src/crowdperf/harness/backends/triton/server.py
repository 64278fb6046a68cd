"""Starts a tritonserver on this machine and ends it: own free ports on 127.0.0.1, own deadline, own name.

The server is kept (crowdperf/harness/base/supervised_server.py), so that none is left over. Standard library only:
the process that starts a server needs neither Triton nor its client. Where the server's files are stands in the
server.json that the recipe get-triton-server writes:

    {"format": 1, "version": "2.51.0", "program": ".../tritonserver", "backends": ".../backends",
     "environment": {"LD_LIBRARY_PATH": "...", "PYTHONPATH": "..."}, "served_by": "python-based onnxruntime",
     "versions": {"onnxruntime": "1.32.0", "numpy": "1.26.4", "python": "3.11.7"}}
"""

import http.client
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdperf.harness.base import server_supervisor
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.supervised_server import HOST, KeptServer, ask, free_ports, plain_environment

FORMAT = 1
_EXIT_TIMEOUT_S = 3
_PORT_TRIES = 3
_TAKEN = "already in use"
"""What Triton 2.51.0 says in its log of a port that another program has."""
_NO_GPU = "CudaDriverHelper"
"""Triton logs an error that names it on every machine without a GPU."""
_MAKE_AGAIN = "reinstall it: cm run script --tags=get,triton,server --renew"


COUNT_LIMIT_S, COUNT_STEP_S = 1.0, 0.002
"""How long a server may take to count a request that it has answered, and how long to wait between two looks. Server
2.51.0 was 3.1 ms late at most, in 10 of 3,000 requests to a model of its Python backend (2026-11-27)."""

START_S, START_PER_PROCESS_S, LOADED_BYTES_PER_S = 20.0, 1.0, 50e6
LARGEST_SLOWDOWN = 4.0


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
    deadline_s: float = START_S
    ports: tuple[int, int] | None = None


def deadline_s(processes: int, size_bytes: int, process_s: float = START_PER_PROCESS_S) -> float:
    """Return how long a server may take to load a model: a base, for each process, and for the bytes that each reads.

    A start took 2 to 9 s on a machine with 2 busy cores (Triton 2.51.0, 2026-11): this is two to ten times as long.
    """
    return START_S + processes * (process_s + size_bytes / LOADED_BYTES_PER_S)


def slowdown(load: float, cores: int) -> float:
    """Return how many times longer a start may take on a machine with this load average: 1 to LARGEST_SLOWDOWN."""
    return min(LARGEST_SLOWDOWN, max(1.0, load / cores))


def slowdown_now() -> float:
    """Return `slowdown` of this machine, by its load average of the last minute."""
    return slowdown(os.getloadavg()[0], os.cpu_count() or 1)


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
        raise HarnessError(f"{files.program} (recorded in {path}) is missing", _MAKE_AGAIN)
    return files


def shell_word(folder: Path, link: Path) -> Path:
    """Return `folder`, or `link` to it where a shell would not take its name as one word.

    Triton's Python backend gives the path to a model's process without quotes: with a blank in it that process ends
    with "stol" (seen with the server of get-triton-server, 2026-11-23).
    """
    if re.fullmatch(r"[\w./+,:@%=-]+", str(folder), re.ASCII):
        return folder
    link.symlink_to(folder.resolve(), target_is_directory=True)
    return link


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
    return "; ".join(chosen[:4])[:1200] or "it printed no output"


class TritonServer(KeptServer):
    """A server that is ready. `name` is its own, so that another program on the port is noticed."""

    def __init__(self, start: Start, name: str, ports: Sequence[int]) -> None:
        self.files, self.name = start.files, name
        self.http_port, self.grpc_port = ports
        prefix = f"{name}_"
        beside = server_supervisor.SHARED_MEMORY  # where the keeper removes what begins with the prefix
        backends = shell_word(start.files.backends, beside / f"{prefix}backends")
        repository = shell_word(start.repository, beside / f"{prefix}repository")
        start = replace(start, repository=repository, files=replace(start.files, backends=backends))
        environment = {**plain_environment(), **start.files.environment}
        super().__init__(arguments(start, ports, name, prefix), environment, start.log, prefix)

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
            raise HarnessError(message, "rerun: it then uses other ports")
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
            message = f"tritonserver did not load its models within {deadline_s:g} s, and was stopped: {told}"
            raise HarnessError(message, f"its log: {self.log}")
        raise HarnessError(f"tritonserver exited before it was ready: {told}", f"its log: {self.log}")

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
        told = "" if self.is_alive else f", the server has ended: {reason(self.log_text())}"
        raise HarnessError(f"tritonserver did not return its statistics: {problem}{told}", f"its log: {self.log}")


def count_of(statistics: Mapping[str, Any], name: str) -> int:
    """Return a count of Triton's statistics; HTTP leaves out a number that is 0."""
    return int(statistics.get(name, 0))


def counted_statistics(read: Callable[[], Mapping[str, Any]], inferences: int) -> Mapping[str, Any]:
    """Return the statistics that `read` gives once they hold `inferences` or more; the last ones after COUNT_LIMIT_S.

    Triton's Python backend adds a request to its statistics after it has answered it.
    """
    end_s = time.monotonic() + COUNT_LIMIT_S
    while count_of(found := read(), "inference_count") < inferences and time.monotonic() < end_s:
        time.sleep(COUNT_STEP_S)
    return found


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
