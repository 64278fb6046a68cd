"""Hooks of get-vllm-server: refuse a GPU build that this machine's driver cannot run, and hand on the Python of the
environment that run.sh filled."""

from pathlib import Path
from typing import Any

from crowdperf.machine import nvidia, probe

PYTHON_KEY = "CM_VLLM_SERVER_PYTHON"
CUDA_MAJOR = 13
"""What requirements-cuda.txt is made for: vllm 0.33.0 requires torch 2.14.0 (PyPI, 2026-11-28)."""


def unfit(machine: probe.Machine) -> str:
    """Why a machine cannot run the GPU build; empty where it can, or where the driver does not tell."""
    if why := nvidia.missing_gpu(machine):
        return why
    cuda = nvidia.look(machine).cuda_version
    is_old = cuda.partition(".")[0].isdigit() and int(cuda.partition(".")[0]) < CUDA_MAJOR
    return f"vLLM's GPU build is made for CUDA {CUDA_MAJOR}, but the driver runs CUDA up to {cuda}" if is_old else ""


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: refuses before anything is installed."""
    if i["env"].get("CM_VLLM_SERVER_DEVICE") == "cuda" and (why := unfit(probe.Machine())):
        return {"return": 1, "error": f"{why}\nhint: --device=cpu, or start a server and use --backend=endpoint"}
    return {"return": 0}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the environment it has; what it sets is known only then."""
    return preprocess(i)


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the interpreter that starts the server, and the server's version."""
    env = i["env"]
    version = Path("version.txt").read_text(encoding="utf-8").split()[-1]
    env[PYTHON_KEY] = env["CM_GET_DEPENDENT_CACHED_PATH"] = str(env["CM_PYTHON_BIN_WITH_PATH"])
    env["CM_VLLM_SERVER_VERSION"] = version
    return {"return": 0, "version": version, "files": ["version.txt"]}
