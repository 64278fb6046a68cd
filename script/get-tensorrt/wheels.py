"""TensorRT out of PyPI's wheels in a virtual environment: what pip gave."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine.nvidia_libraries import archive
from crowdperf.machine.nvidia_libraries.kinds import TENSORRT
from crowdperf.machine.nvidia_libraries.request import Request
from crowdperf.machine.probe import Machine

CHECK = str(Path(__file__).with_name("check_build.py"))
CHECK_TIMEOUT_S = 300.0
"""The first import reads libraries of up to 3 GB from disk."""
RTX_HINT = (
    'cm run script "get tensorrt _rtx"  (TensorRT-RTX from PyPI, 95 MB: another product with the same API, '
    "builds engines without a GPU, for GeForce and RTX GPUs)"
)


class WheelError(Exception):
    """The wheels give no TensorRT. The text says why and what to try."""


class Wheel(NamedTuple):
    """A TensorRT in a virtual environment. ``engine_bytes`` is 0 where none could be built; ``trouble`` says why."""

    module: str
    version: str
    library: str
    engine_bytes: int
    trouble: str


def look(env: Mapping[str, Any], machine: Machine, asked: Request) -> Wheel:
    """What pip installed, after importing it in a process of its own and trying to build a small engine.

    Raises WheelError when it cannot be imported or is not as asked.
    """
    module, python = str(env["CM_TENSORRT_PIP_PACKAGE"]), str(env["CM_PYTHON_BIN_WITH_PATH"])
    done = machine.run((python, "-I", CHECK, module), timeout_s=CHECK_TIMEOUT_S)
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.code}"]
        raise WheelError(f"{python} crashes when it imports {module} ({said[0]}).\n  hint: {RTX_HINT}") from None
    wheel = Wheel(module, answer["version"], answer["library"], answer["engine_bytes"], answer["error"])
    if not wheel.version:
        raise WheelError(_not_there(wheel, python))
    if not asked.admits(wheel.version):
        raise WheelError(
            f"{python} has {module} {wheel.version}, required: {asked.limits_text}.\n"
            "  hint: leave the version out, or another environment: --adr.python.name=NAME"
        )
    return wheel


def story(wheel: Wheel) -> str:
    """One line that tells what was tried, and what it needs a GPU for."""
    if wheel.engine_bytes:
        return (
            f"{wheel.module} {wheel.version} built a small engine of {wheel.engine_bytes} bytes, but did not run it, "
            "which requires an NVIDIA GPU"
        )
    reason = "" if wheel.module == "tensorrt_rtx" else ", its builder needs an NVIDIA GPU"
    return f"{wheel.module} {wheel.version} imports, but built no engine here ({wheel.trouble}){reason}"


def _not_there(wheel: Wheel, python: str) -> str:
    if wheel.module == "tensorrt_rtx":
        hint = 'is there a wheel for this Python and machine? cm run script "get python3" --version=3.11'
        return f"{python} cannot import tensorrt_rtx: {wheel.trouble} (see pip's words above).\n  hint: {hint}"
    return (
        f"{python} cannot import tensorrt: {wheel.trouble}.\n"
        "PyPI's packages tensorrt* of version 9 and newer are stubs: they fetch the libraries from NVIDIA's own "
        "package index, which pip must be able to reach (see its words above).\n"
        f"  hint: {archive.command(TENSORRT)}  (from {TENSORRT.page})\n"
        f"  hint: {RTX_HINT}"
    )
