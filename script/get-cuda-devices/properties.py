"""The 18 properties of a CUDA device: their names, how they are read, printed, and handed on in env and state.

Names and units are those that the CM tutorial of 2023 prints: memory in bytes, the clock in MHz with six decimals.
"""

import re
from collections.abc import Mapping, Sequence

DEVICE_ID = "GPU Device ID"
NAME = "GPU Name"
CAPABILITY = "GPU compute capability"
DRIVER_VERSION = "CUDA driver version"
RUNTIME_VERSION = "CUDA runtime version"
MEMORY = "Global memory"
CLOCK = "Max clock rate"
NAMES = (
    DEVICE_ID,
    NAME,
    CAPABILITY,
    DRIVER_VERSION,
    RUNTIME_VERSION,
    MEMORY,
    CLOCK,
    "Total amount of shared memory per block",
    "Total number of registers available per block",
    "Warp size",
    "Maximum number of threads per multiprocessor",
    "Maximum number of threads per block",
    "Max dimension size of a thread block X",
    "Max dimension size of a thread block Y",
    "Max dimension size of a thread block Z",
    "Max dimension size of a grid size X",
    "Max dimension size of a grid size Y",
    "Max dimension size of a grid size Z",
)
NOT_KNOWN = "not known"
FIRST_FIT_CAPABILITY = (7, 5)
"""Turing, the oldest GPU that the NVIDIA MLPerf Inference v0.7 README names."""

Device = dict[str, str]


def parse(text: str) -> tuple[Device, ...]:
    """The devices in the output of query.cu; other lines are left out. Raises ValueError for an incomplete device."""
    devices: list[Device] = []
    for line in text.splitlines():
        name, mark, value = line.partition(":")
        if not mark or name.strip() not in NAMES:
            continue
        if name.strip() == DEVICE_ID:
            devices.append({})
        if devices:
            devices[-1][name.strip()] = value.strip()
    for device in devices:
        missing = [name for name in NAMES if name not in device]
        if missing:
            raise ValueError(f"device {device[DEVICE_ID]} has no line {missing[0]!r}")
    return tuple(devices)


def devices_text(devices: Sequence[Mapping[str, str]]) -> str:
    """All devices as the tutorial prints them, an empty line after each."""
    return "".join("".join(f"{name}: {device[name]}\n" for name in NAMES) + "\n" for device in devices)


def env_of(device: Mapping[str, str]) -> dict[str, str]:
    """The keys CM_CUDA_DEVICE_PROP_<NAME> of one device; what is not known is left out."""
    return {
        "CM_CUDA_DEVICE_PROP_" + name.upper().replace(" ", "_"): value
        for name, value in device.items()
        if value != NOT_KNOWN
    }


def warnings(devices: Sequence[Mapping[str, str]], min_memory_gb: float) -> list[str]:
    """What is too little for the benchmarks of the tutorial: memory, compute capability."""
    lines = []
    for device in devices:
        label = f"device {device[DEVICE_ID]} ({device[NAME]})"
        memory = device[MEMORY]
        if memory.isdigit() and int(memory) < min_memory_gb * 1e9:
            lines.append(f"{label} has {int(memory) / 1e9:.1f} GB of memory, less than {min_memory_gb:g} GB")
        capability = tuple(int(part) for part in re.findall(r"\d+", device[CAPABILITY]))
        if capability and capability < FIRST_FIT_CAPABILITY:
            lines.append(
                f"{label} has compute capability {device[CAPABILITY]}, older than 7.5 (Turing), which NVIDIA's MLPerf "
                "code requires"
            )
    return lines
