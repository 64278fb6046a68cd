"""Asks NVIDIA's driver about its GPUs through NVML, with nothing but ctypes; no library of its own to install.

Functions and structures: NVML API reference (nvml.h, unchanged since driver 390). A machine without the driver has no
GPUs here; nothing raises.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from harness.watch.machine import GpuFacts

_LIBRARY = "libnvidia-ml.so.1"
_SUCCESS = 0
_NAME_SIZE = 96


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """One GPU at one moment: part of the last period in which a kernel ran, memory in use, power (None: not told)."""

    utilization_percent: int | None
    used_bytes: int | None
    power_w: float | None


class Nvml:
    """An opened NVML; `gpus` is empty where there is no driver. Close it when done."""

    def __init__(self, library_name: str = _LIBRARY) -> None:
        self.gpus: tuple[GpuFacts, ...] = ()
        self._handles: list[ctypes.c_void_p] = []
        self._library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL(library_name)
            if library.nvmlInit_v2() != _SUCCESS:
                return
        except (OSError, AttributeError):
            return
        self._library = library
        self._find()

    def _find(self) -> None:
        library, found = self._library, ctypes.c_uint()
        if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(found)) != _SUCCESS:
            return
        gpus = []
        for index in range(found.value):
            handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(_NAME_SIZE)
            if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != _SUCCESS:
                continue
            library.nvmlDeviceGetName(handle, name, ctypes.c_uint(_NAME_SIZE))
            memory = self._memory(handle)
            self._handles.append(handle)
            total = 0 if memory is None else int(memory.total)
            gpus.append(GpuFacts(index=index, name=name.value.decode(errors="replace"), memory_bytes=total))
        self.gpus = tuple(gpus)

    def _memory(self, handle: ctypes.c_void_p) -> _Memory | None:
        memory = _Memory()
        if self._library is None or self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) != _SUCCESS:
            return None
        return memory

    def loads(self) -> tuple[GpuLoad, ...]:
        """Return the load of each of `gpus` now; a GPU that does not tell (MIG) gives None."""
        library = self._library
        if library is None:
            return ()
        loads = []
        for handle in self._handles:
            rates, power_mw = _Utilization(), ctypes.c_uint()
            has_rates = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)) == _SUCCESS
            has_power = library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power_mw)) == _SUCCESS
            memory = self._memory(handle)
            loads.append(
                GpuLoad(
                    utilization_percent=int(rates.gpu) if has_rates else None,
                    used_bytes=None if memory is None else int(memory.used),
                    power_w=power_mw.value / 1000.0 if has_power else None,
                )
            )
        return tuple(loads)

    def close(self) -> None:
        """Let go of the driver."""
        if self._library is not None:
            self._library.nvmlShutdown()
            self._library = None
