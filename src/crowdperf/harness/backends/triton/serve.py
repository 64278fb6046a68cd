"""Serves a model repository to anybody on this machine until it is told to stop.

    python3 -m crowdperf.harness.backends.triton.serve --server=server.json --repository=repository --seconds=60

Ctrl-C, SIGTERM and the end of --seconds stop the server with exit code 0; a server that ends by itself gives 1. Without
--http_port and --grpc_port free ports are taken.
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.backends.triton.server import (
    Start,
    TritonServer,
    deadline_s,
    read_server_files,
    reason,
    slowdown_now,
    start_server,
)
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.supervised_server import HOST
from crowdperf.harness.watch.owner import end_with_owner

COUNT = re.compile(r"\bcount: (\d+)")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; a wrong one ends the process with its name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=Path)
    parser.add_argument("--repository", required=True, type=Path)
    parser.add_argument("--log", default=Path("triton-server.log"), type=Path)
    parser.add_argument("--seconds", default=0.0, type=float)
    parser.add_argument("--http_port", default=0, type=int)
    parser.add_argument("--grpc_port", default=0, type=int)
    return parser.parse_args(words)


def told(server: TritonServer, repository: Path) -> str:
    """Return what a user needs to ask the server."""
    models = ", ".join(sorted(path.parent.name for path in repository.glob("*/config.pbtxt")))
    http = f"http://{HOST}:{server.http_port}"
    return "\n".join(
        (
            f"tritonserver {server.files.version} ({server.files.served_by}) serves {models}",
            f"  HTTP: {http}    try: curl {http}/v2/models/{models.split(', ')[0]}/config",
            f"  gRPC: {HOST}:{server.grpc_port}",
            f"  log:  {server.log}",
        )
    )


def load_deadline_s(repository: Path) -> float:
    """Return how long the models of a repository may take to load."""
    processes = size_bytes = 0
    for config in repository.glob("*/config.pbtxt"):
        found = COUNT.search(config.read_text(encoding="utf-8"))
        processes += int(found[1]) if found else 1
        size_bytes += sum(path.stat().st_size for path in config.parent.glob("*/*") if path.is_file())
    return deadline_s(processes, size_bytes)


def serve(asked: argparse.Namespace) -> None:
    """Serve until a signal comes or the time is over; raises HarnessError when the server ends by itself."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda found, frame: stopped.set())
    end_with_owner(os.environ)
    ports = (asked.http_port, asked.grpc_port) if asked.http_port and asked.grpc_port else None
    files, log = read_server_files(asked.server), asked.log.absolute()
    limit_s = load_deadline_s(asked.repository) * slowdown_now()
    server = start_server(Start(files=files, repository=asked.repository, log=log, deadline_s=limit_s, ports=ports))
    try:
        print(told(server, asked.repository), flush=True)
        waited_s = 0.0
        while server.is_alive and not stopped.wait(0.25):
            waited_s += 0.25
            if asked.seconds and waited_s >= asked.seconds:
                break
        if not server.is_alive:
            raise HarnessError(f"tritonserver exited: {reason(server.log_text())}", f"its log: {log}")
    finally:
        server.stop()
    log.unlink(missing_ok=True)
    print("tritonserver has ended", flush=True)


if __name__ == "__main__":
    try:
        serve(parse(sys.argv[1:]))
    except HarnessError as error:
        sys.exit(f"serve-mlperf-model: {error.with_hint}")
