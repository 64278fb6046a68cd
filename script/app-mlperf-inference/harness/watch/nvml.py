"""Asks NVIDIA's driver about its GPUs through NVML, with the package nvidia-ml-py (module `pynvml`).

Where the package or the driver is missing, there are no GPUs here: a note on stderr says which, and nothing raises,
because a run does not depend on it. Tried with the package and a library that stands in for the driver; not run on
hardware.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.watch.machine import GpuFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """One GPU at one moment: part of the last period in which a kernel ran, memory in use, power (None: unknown)."""

    utilization_percent: int | None
    used_bytes: int | None
    power_w: float | None


def _note(text: str) -> None:
    sys.stderr.write(f"harness: the load of the GPUs is not recorded: {text}\n")
    sys.stderr.flush()


class Nvml:
    """An opened NVML; `gpus` is empty without package or driver. Close it when done."""

    def __init__(self) -> None:
        self.gpus: tuple[GpuFacts, ...] = ()
        self._handles: list[Any] = []
        self._library: Any = None
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            _note("the package nvidia-ml-py is missing; pip install nvidia-ml-py into this environment")
            return
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            _note(str(error))
            return
        self._library = library
        self._find()

    def _find(self) -> None:
        library, gpus = self._library, []
        for index in range(self._value(library.nvmlDeviceGetCount) or 0):
            handle = self._value(library.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                continue
            name, memory = self._value(library.nvmlDeviceGetName, handle), self._memory(handle)
            text = name.decode(errors="replace") if isinstance(name, bytes) else str(name or "")
            self._handles.append(handle)
            gpus.append(GpuFacts(index=index, name=text, memory_bytes=0 if memory is None else int(memory.total)))
        self.gpus = tuple(gpus)

    def _value(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what NVML answers; None where it cannot."""
        try:
            return function(*arguments)
        except self._library.NVMLError:
            return None

    def _memory(self, handle: Any) -> Any:
        return self._value(self._library.nvmlDeviceGetMemoryInfo, handle)

    def loads(self) -> tuple[GpuLoad, ...]:
        """Return the load of each of `gpus` now, with None for what the driver does not report (as with MIG)."""
        library, loads = self._library, []
        for handle in self._handles:
            rates = self._value(library.nvmlDeviceGetUtilizationRates, handle)
            power_mw = self._value(library.nvmlDeviceGetPowerUsage, handle)
            memory = self._memory(handle)
            loads.append(
                GpuLoad(
                    utilization_percent=None if rates is None else int(rates.gpu),
                    used_bytes=None if memory is None else int(memory.used),
                    power_w=None if power_mw is None else power_mw / 1000.0,
                )
            )
        return tuple(loads)

    def close(self) -> None:
        """Let go of the driver."""
        if self._library is not None:
            self._value(self._library.nvmlShutdown)
            self._library = None
            self._handles.clear()
