"""Stand-ins for a machine's GPUs: `pynvml`, which shows all of them, and CUDA's driver library, which shows a process
what CUDA_VISIBLE_DEVICES leaves, in CUDA_DEVICE_ORDER. The functions have the names of the real ones."""

from __future__ import annotations

import ctypes
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class Gpu:
    """A GPU or a slice (`parent`) with what NVML would answer; None: "Not Supported". speed: for CUDA's own order."""

    number: int
    name: str | bytes = "NVIDIA H100 80GB HBM3"
    memory_bytes: int = 85 * 10**9
    percent: int | None = 0
    power_mw: int | None = 70_000
    speed: int = 1
    parent: Gpu | None = None
    reasons: int = 0
    pids: list[int] = field(default_factory=lambda: [os.getpid()])
    energy_mj: int = 0
    slices: tuple[int, int] = (1, 1)
    cores: tuple[int, ...] = ()
    compute_capability: tuple[int, int] = (9, 0)

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.number} {self.parent is not None}"))


class FakePynvml:
    """The module pynvml on a machine with `gpus`; old: a package without the names that driver 535 brought."""

    class NVMLError(Exception):
        pass

    def __init__(self, gpus: Sequence[Gpu] = (), *, has_driver: bool = True, old: bool = False) -> None:
        self.gpus, self._has_driver, self._old, self.is_shut = list(gpus), has_driver, old, False

    def nvmlInit(self) -> None:
        if not self._has_driver:
            raise self.NVMLError("NVML Shared Library Not Found")

    def nvmlShutdown(self) -> None:
        self.is_shut = True

    def nvmlDeviceGetCount(self) -> int:
        return sum(gpu.parent is None for gpu in self.gpus)

    def nvmlDeviceGetHandleByUUID(self, name: str) -> Gpu:
        for gpu in self.gpus:
            if name == f"{'GPU' if gpu.parent is None else 'MIG'}-{gpu.uuid}":
                return gpu
        raise self.NVMLError("Not Found")

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Gpu) -> Gpu:
        return self._told(handle.parent)

    def nvmlDeviceGetIndex(self, handle: Gpu) -> int:
        return handle.number

    def nvmlDeviceGetName(self, handle: Gpu) -> str | bytes:
        return handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu) -> SimpleNamespace:
        return SimpleNamespace(total=handle.memory_bytes, used=10**9)

    def nvmlDeviceGetUtilizationRates(self, handle: Gpu) -> SimpleNamespace:
        return SimpleNamespace(gpu=self._told(handle.percent))

    def nvmlDeviceGetPowerUsage(self, handle: Gpu) -> int:
        return self._told(handle.power_mw)

    def nvmlDeviceGetClockInfo(self, handle: Gpu, kind: int) -> int:
        return {1: 1980, 2: 2619}[kind]

    def nvmlDeviceGetTemperature(self, handle: Gpu, sensor: int) -> int:
        return {0: 61}[sensor]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Gpu) -> int:
        return handle.reasons

    def __getattr__(self, name: str) -> Any:
        if name == "nvmlDeviceGetCurrentClocksEventReasons" and not self._old:
            return self.nvmlDeviceGetCurrentClocksThrottleReasons
        raise AttributeError(name)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Gpu) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in handle.pids]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Gpu) -> int:
        if handle.parent is not None:
            raise self.NVMLError("Not Supported")
        handle.energy_mj += 650_000
        return handle.energy_mj

    def nvmlDeviceGetAttributes(self, handle: Gpu) -> SimpleNamespace:
        return SimpleNamespace(gpuInstanceSliceCount=handle.slices[0], computeInstanceSliceCount=handle.slices[1])

    def nvmlDeviceGetCpuAffinity(self, handle: Gpu, words: int) -> list[int]:
        masks = [0] * words
        for core in handle.cores:
            masks[core // 64] |= 1 << core % 64
        return masks

    def _told(self, value: Any) -> Any:
        if value is None:
            raise self.NVMLError("Not Supported")
        return value


class FakeCudaDriver:
    """libcuda.so.1 in a process with this environment, on a machine with these GPUs."""

    def __init__(self, gpus: Sequence[Gpu], environment: Mapping[str, str]) -> None:
        order = sorted((gpu for gpu in gpus if gpu.parent is None), key=lambda gpu: gpu.number)
        if environment.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST") == "FASTEST_FIRST":
            order.sort(key=lambda gpu: -gpu.speed)
        self._seen = order
        if (visible := environment.get("CUDA_VISIBLE_DEVICES")) is not None:
            named = {f"{'GPU' if gpu.parent is None else 'MIG'}-{gpu.uuid}": gpu for gpu in gpus}
            self._seen = [order[int(word)] if word.isdigit() else named[word] for word in visible.split(",")]

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGet(self, device: ctypes.Array[ctypes.c_int], ordinal: int) -> int:
        if ordinal >= len(self._seen):
            return 101  # CUDA_ERROR_INVALID_DEVICE
        device[0] = ordinal
        return 0

    def cuDeviceGetUuid_v2(self, raw: ctypes.Array[ctypes.c_ubyte], device: int) -> int:
        raw[:] = uuid.UUID(self._seen[device].uuid).bytes
        return 0

    def cuDeviceGetAttribute(self, value: ctypes.Array[ctypes.c_int], attribute: int, device: int) -> int:
        value[0] = self._seen[device].compute_capability[attribute - 75]
        return 0
