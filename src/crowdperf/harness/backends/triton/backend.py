"""The triton backend: a tritonserver of this machine answers, started for the run and ended with it.

Each instance of the harness is a caller with a connection of its own; the processes that compute are the server's. The
requests of the test are counted here and by Triton, and a run in which the two differ fails. This process needs
tritonclient alone; the server and its Python live in an environment of their own (get-triton-server).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.backends.triton import repository
from crowdperf.harness.backends.triton.client import CALLERS, Caller, Target
from crowdperf.harness.backends.triton.server import (
    START_PER_PROCESS_S,
    Start,
    TritonServer,
    count_of,
    counted_statistics,
    deadline_s,
    read_server_files,
    slowdown_now,
    start_server,
)
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Infer, NetworkSpec, Tensors
from crowdperf.logs.run_log import Json
from crowdperf.rules.server_settings import Serving

FOLDER, LOG_FILE = "triton", "server.log"
"""In the folder of the run: what the server was given, and what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that is ready with one network, and how many callers it will have."""

    server: TritonServer
    target: Target
    serving: Serving
    instances: int

    @property
    def network(self) -> NetworkSpec:
        """The tensors that the server takes and gives."""
        return self.target.network


class TritonBackend:
    """A server that is ready, and its callers."""

    def __init__(self, served: Served) -> None:
        self._server, self._target, self._serving = served.server, served.target, served.serving
        self._callers: list[Caller] = []
        self._sent = [[0, 0, 0] for _ in range(served.instances)]  # of each instance: requests, samples, ns
        self._before: Mapping[str, Any] = {}

    def instance(self, number: int) -> Infer:
        """Return the call; Python's global lock is free while it waits for the answer."""
        caller, sent = CALLERS[self._serving.transport](self._target), self._sent[number]
        self._callers.append(caller)
        ask, first, clock = caller.ask, self._target.network.inputs[0].name, time.perf_counter_ns

        def infer(inputs: Tensors) -> Tensors:
            start = clock()
            answers = ask(inputs)
            sent[2] += clock() - start
            sent[1] += len(inputs[first])
            sent[0] += 1
            return answers

        return infer

    def versions(self) -> Mapping[str, str]:
        files = self._server.files
        return {"tritonserver": files.version, **{f"server {name}": value for name, value in files.versions.items()}}

    def start_count(self) -> None:
        """Begin to count: what was asked so far was the warm-up. Raises HarnessError where Triton never counts that."""
        warm_up = sum(sent[1] for sent in self._sent)
        self._before = counted_statistics(self._statistics, warm_up)
        if (inferred := count_of(self._before, "inference_count")) < warm_up:
            raise HarnessError(
                f"Triton counts {inferred:,} inferences, but the harness sent {warm_up} samples to warm it up",
                "another server answered, or responses are fabricated: rerun",
            )
        for sent in self._sent:
            sent[:] = [0, 0, 0]

    def _statistics(self) -> Mapping[str, Any]:
        return self._server.statistics(self._target.model)

    def served(self, samples: int) -> Mapping[str, Json]:
        """Return Triton's figures since `start_count`, with `samples` as LoadGen got them.

        Raises HarnessError where Triton did not compute what was answered.
        """
        requests, sent, waited_ns = (sum(one[place] for one in self._sent) for place in range(3))
        after = counted_statistics(self._statistics, count_of(self._before, "inference_count") + sent)
        inferred, executed = (
            count_of(after, name) - count_of(self._before, name) for name in ("inference_count", "execution_count")
        )
        if not inferred == sent == samples:
            raise HarnessError(
                f"LoadGen got {samples:,} samples, the harness sent {sent}, and Triton counts {inferred:,} inferences",
                "another client used this server, or responses are fabricated: rerun",
            )

        def mean_us(name: str) -> float:
            spent = duration_ns(after, name) - duration_ns(self._before, name)
            return round(spent / max(1, requests) / 1000.0, 1)

        request_us = round(waited_ns / max(1, requests) / 1000.0, 1)
        return {
            "served_by": self._server.files.served_by,
            "server_version": self._server.files.version,
            "container": None,
            "processes": self._serving.instance_count,
            "samples": samples,
            "inference_count": inferred,
            "warm_up_inference_count": count_of(self._before, "inference_count"),
            "execution_count": executed,
            "request_count": requests,
            "average_batch": round(inferred / max(1, executed), 3),
            "request_us": request_us,
            "queue_us": mean_us("queue"),
            "compute_us": round(sum(mean_us(f"compute_{part}") for part in ("input", "infer", "output")), 1),
            "hop_us": round(request_us - mean_us("success"), 1),
        }

    def close(self) -> None:
        for caller in self._callers:
            caller.close()
        self._callers.clear()
        self._server.stop()


def duration_ns(statistics: Mapping[str, Any], name: str) -> int:
    """Return the nanoseconds that all requests together spent in a stage ("queue", "compute_infer", "success")."""
    return int(statistics.get("inference_stats", {}).get(name, {}).get("ns", 0))


def _require_transport(network: NetworkSpec, serving: Serving) -> None:
    if serving.transport != "shm":
        return
    open_sizes = [spec.name for spec in (*network.inputs, *network.outputs) if not spec.is_fixed]
    if open_sizes:
        raise HarnessError(
            f"--transport=shm needs tensors of one size. The size of {', '.join(open_sizes)} varies between requests",
            "--transport=grpc or http",
        )


def require_server(request: BackendRequest) -> tuple[Serving, Path]:
    """Return how to serve, and the network's file. The runner refuses a run without one of them."""
    assert request.serving is not None
    return request.serving, request.file


def start_served(
    request: BackendRequest,
    network: NetworkSpec,
    text: str,
    write: Callable[[Path, Path], None],
    process_s: float = START_PER_PROCESS_S,
) -> Served:
    """Start a server with one network, whose config.pbtxt is `text`, and wait until it is ready.

    write: writes the repository into a folder; its second argument is the server's folder of backends. process_s: how
    long each process may take beside what it reads. Raises HarnessError with the server's own reason.
    """
    serving, path = require_server(request)
    _require_transport(network, serving)
    files, model = read_server_files(serving.server), request.architecture
    repository.require_valid(text, model)
    assert request.folder is not None
    folder = request.folder.absolute() / FOLDER
    write(folder / "repository", files.backends)
    limit_s = deadline_s(serving.instance_count, path.stat().st_size, process_s) * slowdown_now()
    start = Start(files=files, repository=folder / "repository", log=folder / LOG_FILE, deadline_s=limit_s)
    target = Target(server=start_server(start), model=model, network=network, largest_batch=request.largest_batch)
    return Served(server=target.server, target=target, serving=serving, instances=request.instances)


def open_backend(request: BackendRequest) -> TritonBackend:
    """Start a server with the network and return the backend; raises HarnessError with the server's own reason."""
    serving, path = require_server(request)
    network = repository.require_servable(request.architecture, [request.network])
    if serving.is_batched_by_server:
        repository.require_fixed_sizes(request.architecture, network)
    settings = repository.ModelSettings(served=serving, threads=request.threads)
    text = repository.config_text(request.architecture, path.name, network, settings)

    def write(folder: Path, backends: Path) -> None:
        repository.write_linked(folder, request.architecture, path, text)

    return TritonBackend(start_served(request, network, text, write))
