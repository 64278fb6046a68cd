"""What to do about the errors that the CUDA runtime gives when it is asked for its devices.

Numbers and names: enum cudaError in driver_types.h of CUDA 13.0.
"""

import re
from typing import NamedTuple

DRIVER_COMMANDS = 'cm run script "get nvidia driver"  (shows the installed one, and how to install one)'


class RuntimeFault(NamedTuple):
    """The runtime's error, and both versions as ``12.4`` (``0.0``: there is no driver)."""

    number: int
    name: str
    text: str
    driver: str
    runtime: str


def fault_in(output: str) -> RuntimeFault | None:
    """The error in the output of query.cu; None when it holds none."""
    found = re.search(r"^CUDA error: (\d+) (\w+): (.*)$", output, re.MULTILINE)
    if not found:
        return None
    after = output[found.end() :]
    driver = re.search(r"^CUDA driver version: (\S+)", after, re.MULTILINE)
    runtime = re.search(r"^CUDA runtime version: (\S+)", after, re.MULTILINE)
    return RuntimeFault(int(found[1]), found[2], found[3], driver[1] if driver else "", runtime[1] if runtime else "")


def explain(fault: RuntimeFault, trouble: str, visible: str) -> str:
    """The error for the user: what CUDA said, what it means here, the command to try.

    ``trouble`` is what nvidia-smi says when it fails, ``visible`` the value of CUDA_VISIBLE_DEVICES.
    """
    said = f"CUDA says: {fault.text} ({fault.name}, {fault.number}), driver {fault.driver}, runtime {fault.runtime}"
    return "\n".join((said, *_meaning(fault, trouble, visible)))


def _meaning(fault: RuntimeFault, trouble: str, visible: str) -> tuple[str, ...]:
    if fault.name == "cudaErrorInsufficientDriver" and fault.driver in ("", "0.0"):
        return (
            "  there is no working NVIDIA driver on this machine" + (f" (nvidia-smi: {trouble})" if trouble else ""),
            f"  hint: {DRIVER_COMMANDS}",
            "  hint: in a container, start it with the GPUs: docker run --gpus=all ...",
        )
    if fault.name == "cudaErrorInsufficientDriver":
        return (
            f"  the driver runs CUDA up to {fault.driver}, the toolkit is {fault.runtime}",
            f'  hint: cm run script "get cuda-devices" --adr.cuda.version_max={fault.driver}  (an older toolkit)',
            '  hint: cm run script "get cuda-devices _with-nvml"  (without a toolkit), or install a newer driver',
        )
    if fault.name == "cudaErrorNoDevice":
        shown = f"CUDA_VISIBLE_DEVICES is {visible!r}" if visible else "CUDA_VISIBLE_DEVICES is not set"
        return (f"  the driver works but shows no device to this process. {shown}", "  hint: nvidia-smi -L")
    if fault.name in ("cudaErrorSystemNotReady", "cudaErrorSystemDriverMismatch"):
        return (
            "  driver and fabric manager (NVSwitch systems) must run and have exactly the same version",
            '  hint: cm run script "get nvidia driver _fabricmanager-match"',
        )
    return ("  hint: nvidia-smi and `dmesg | grep -i nvrm` show more",)
