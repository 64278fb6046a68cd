"""Asks NVIDIA's driver about the GPUs of a run through NVML, with the package nvidia-ml-py (module `pynvml`).

NVML shows all GPUs of the machine, in the order of the PCI bus; CUDA shows a process those of CUDA_VISIBLE_DEVICES, in
an order of its own, or one MIG slice. So the devices of a run are those that CUDA's driver library names by UUID, and
NVML is asked about these UUIDs alone. Where the package or a driver is missing, there are no GPUs here: a note on
stderr says which, and nothing raises, because a run does not depend on it. Tried with stand-ins for the package and
for both libraries; not run on hardware.
"""

import ctypes
import importlib
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.watch.machine import GpuFacts, read_text

IS_POWER_CAPPED = 0x4
IS_SLOWED_BY_HEAT = 0x8 | 0x20 | 0x40 | 0x80
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h, read 2026-11-28): SwPowerCap; HwSlowdown,
SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown."""
_WORD = 64
"""Processors in one number of nvmlDeviceGetCpuAffinity: bits of a C `unsigned long` on Linux."""
_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE_GPU = 1, 2, 0
"""nvmlClockType_t NVML_CLOCK_SM and NVML_CLOCK_MEM, nvmlTemperatureSensors_t NVML_TEMPERATURE_GPU (nvml.h)."""
_COMPUTE_CAPABILITY = (75, 76)
"""CUdevice_attribute CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR (cuda.h, read 2026-11-28)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """One GPU at one moment; None: the driver does not tell, as it does of a MIG slice for most.

    utilization_percent: part of the last period in which a kernel ran. reasons: bits, why the clocks are not at their
    highest (IS_POWER_CAPPED, IS_SLOWED_BY_HEAT). other_processes: programs beside the run that have the GPU open for
    computing; None where NVML does not show this run either, as in a container.
    """

    utilization_percent: int | None = None
    used_bytes: int | None = None
    power_w: float | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    reasons: int | None = None
    other_processes: int | None = None

    @property
    def row(self) -> tuple[int | float | None, ...]:
        return (
            self.utilization_percent,
            self.used_bytes,
            self.power_w,
            self.sm_mhz,
            self.memory_mhz,
            self.temperature_c,
            self.reasons,
            self.other_processes,
        )


GPU_COLUMNS = ("percent", "bytes", "w", "sm_mhz", "memory_mhz", "c", "reasons", "other_processes")


def _note(text: str) -> None:
    sys.stderr.write(f"harness: the load of the GPUs is not recorded: {text}\n")
    sys.stderr.flush()


def cuda_driver() -> Any:
    """Return CUDA's driver library; raises OSError where the machine has none."""
    return ctypes.CDLL("libcuda.so.1")


def cuda_uuids(ordinals: Sequence[int]) -> tuple[str, ...]:
    """Return the UUIDs of CUDA devices as this process numbers them, without the prefix GPU- or MIG-.

    Of a MIG slice it is the slice's own: cuDeviceGetUuid_v2, "its MIG UUID which uniquely identifies the subscribed MIG
    compute instance" (CUDA driver API, read 2026-11-28). Raises OSError where CUDA cannot tell.
    """
    driver, found = cuda_driver(), []
    for device in _cuda_devices(driver, ordinals):
        raw = (ctypes.c_ubyte * 16)()
        _call(driver, "cuDeviceGetUuid_v2", raw, device)
        found.append(str(uuid.UUID(bytes=bytes(raw))))
    return tuple(found)


def compute_capability(ordinal: int) -> str:
    """Return that of a CUDA device as "9.0"; raises OSError where CUDA cannot tell."""
    driver = cuda_driver()
    (device,), numbers = _cuda_devices(driver, [ordinal]), []
    for attribute in _COMPUTE_CAPABILITY:
        value = (ctypes.c_int * 1)()
        _call(driver, "cuDeviceGetAttribute", value, attribute, device)
        numbers.append(value[0])
    return ".".join(map(str, numbers))


def _cuda_devices(driver: Any, ordinals: Sequence[int]) -> list[int]:
    _call(driver, "cuInit", 0)
    devices = []
    for ordinal in ordinals:
        device = (ctypes.c_int * 1)()
        _call(driver, "cuDeviceGet", device, ordinal)
        devices.append(device[0])
    return devices


def _call(driver: Any, name: str, *arguments: object) -> None:
    if status := getattr(driver, name)(*arguments):
        raise OSError(f"{name} of CUDA's driver failed with code {status}")


def is_own_process(pid: int, own: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process is the process `own` or one that it started."""
    for _ in range(64):
        if pid == own:
            return True
        words = read_text(proc / str(pid) / "stat").rpartition(")")[2].split()
        if len(words) < 2 or not words[1].isdigit() or int(words[1]) <= 1:
            return False
        pid = int(words[1])
    return False


def near_gpus(ordinals: Sequence[int], instances: int) -> tuple[tuple[int, ...], ...]:
    """Return the processors near the GPU of each instance (instance n uses GPU n modulo their number), of those that
    this process may use; empty where nothing is known, or where all of them are near all GPUs."""
    nvml = Nvml(ordinals, tell=lambda reason: None)
    usable = set(available_cores())
    near = [tuple(sorted(usable.intersection(processors))) for processors in nvml.near_processors()]
    nvml.close()
    if len(near) < len(ordinals) or all(len(one) in (0, len(usable)) for one in near):
        return ()
    return tuple(near[number % len(near)] for number in range(instances))


@dataclass(frozen=True, slots=True)
class _Device:
    """A handle of NVML, that of the GPU which holds it (itself but for a MIG slice), and what is known of it."""

    handle: Any
    whole: Any
    facts: GpuFacts


class Nvml:
    """An opened NVML that looks at the CUDA devices `ordinals` only; `gpus` is empty where it cannot. Close it when
    done. tell: where the reason of that goes."""

    def __init__(self, ordinals: Sequence[int], tell: Callable[[str], None] = _note) -> None:
        self._devices: tuple[_Device, ...] = ()
        self._library: Any = None
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            tell("the package nvidia-ml-py is missing. Run pip install nvidia-ml-py in this environment")
            return
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            tell(str(error))
            return
        self._library = library
        try:
            uuids = cuda_uuids(ordinals)
        except (OSError, AttributeError) as error:
            tell(f"CUDA does not report which of the machine's GPUs this run uses: {error}")
            return
        self._devices = tuple(device for one in uuids if (device := self._device(one)) is not None)
        if len(self._devices) < len(uuids):
            tell(f"NVML shows {len(self._devices)} of the {len(uuids)} CUDA devices of this run")

    @property
    def gpus(self) -> tuple[GpuFacts, ...]:
        """What is known of the GPUs of the run, in its own order."""
        return tuple(device.facts for device in self._devices)

    def _value(self, name: str, *arguments: object) -> Any:
        """Return what NVML answers; None where it cannot, or where the package has no such function."""
        function: Callable[..., Any] | None = getattr(self._library, name, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except self._library.NVMLError:
            return None

    def _device(self, found: str) -> _Device | None:
        whole = self._value("nvmlDeviceGetHandleByUUID", f"GPU-{found}")
        if whole is not None:
            return _Device(whole, whole, self._facts(whole, whole))
        part = self._value("nvmlDeviceGetHandleByUUID", f"MIG-{found}")
        whole = None if part is None else self._value("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part)
        return None if whole is None else _Device(part, whole, self._facts(part, whole))

    def _facts(self, handle: Any, whole: Any) -> GpuFacts:
        index, memory = self._value("nvmlDeviceGetIndex", whole), self._value("nvmlDeviceGetMemoryInfo", handle)
        name, memory_bytes = self._name(whole), 0 if memory is None else int(memory.total)
        if handle is whole:
            return GpuFacts(index=int(index or 0), name=name, memory_bytes=memory_bytes)
        profile = self._name(handle).partition(" MIG ")[2] or self._slices(handle)
        return GpuFacts(
            index=int(index or 0),
            name=f"{name} MIG {profile}",
            memory_bytes=memory_bytes,
            mig_profile=profile,
            mig_parent=name,
        )

    def _slices(self, handle: Any) -> str:
        """The size of a MIG slice whose name does not tell the profile: `1g`, and `1c.2g` for a part of an instance."""
        sizes = self._value("nvmlDeviceGetAttributes", handle)
        if sizes is None:
            return "slice"
        whole, part = int(sizes.gpuInstanceSliceCount), int(sizes.computeInstanceSliceCount)
        return f"{whole}g" if part in (0, whole) else f"{part}c.{whole}g"

    def _name(self, handle: Any) -> str:
        name = self._value("nvmlDeviceGetName", handle)
        return name.decode(errors="replace") if isinstance(name, bytes) else str(name or "")

    def loads(self) -> tuple[GpuLoad, ...]:
        """Return the load of each of `gpus` now, with None for what the driver does not report (as with MIG)."""
        return () if self._library is None else tuple(self._load(device.handle) for device in self._devices)

    def _load(self, handle: Any) -> GpuLoad:
        rates, memory = (self._value(f"nvmlDeviceGet{name}", handle) for name in ("UtilizationRates", "MemoryInfo"))
        power_mw = self._value("nvmlDeviceGetPowerUsage", handle)
        reasons = self._value("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:  # its name before driver 535
            reasons = self._value("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return GpuLoad(
            utilization_percent=None if rates is None else int(rates.gpu),
            used_bytes=None if memory is None else int(memory.used),
            power_w=None if power_mw is None else power_mw / 1000.0,
            sm_mhz=self._value("nvmlDeviceGetClockInfo", handle, _CLOCK_SM),
            memory_mhz=self._value("nvmlDeviceGetClockInfo", handle, _CLOCK_MEMORY),
            temperature_c=self._value("nvmlDeviceGetTemperature", handle, _TEMPERATURE_GPU),
            reasons=reasons,
            other_processes=self._others(handle),
        )

    def _others(self, handle: Any) -> int | None:
        shown = self._value("nvmlDeviceGetComputeRunningProcesses", handle)
        if shown is None:
            return None
        are_own = [is_own_process(int(one.pid), os.getpid()) for one in shown]
        return are_own.count(False) if any(are_own) else None

    def energies_j(self) -> tuple[float | None, ...]:
        """Return the energy that each of `gpus` has used since the driver was loaded, in joules; None of a MIG slice,
        and where the driver has no such counter (before Volta)."""
        read = (self._value("nvmlDeviceGetTotalEnergyConsumption", device.handle) for device in self._devices)
        return tuple(None if energy_mj is None else energy_mj / 1000.0 for energy_mj in read)

    def near_processors(self) -> tuple[tuple[int, ...], ...]:
        """Return the processors of the NUMA node of each of `gpus`; none of one where the driver does not tell."""
        words = (max(os.cpu_count() or 1, available_cores()[-1] + 1) + _WORD - 1) // _WORD
        near = []
        for device in self._devices:
            masks = self._value("nvmlDeviceGetCpuAffinity", device.whole, words) or ()
            bits = [(place, int(mask)) for place, mask in enumerate(masks)]
            near.append(tuple(place * _WORD + bit for place, mask in bits for bit in range(_WORD) if mask >> bit & 1))
        return tuple(near)

    def close(self) -> None:
        if self._library is not None:
            self._value("nvmlShutdown")
            self._library = None
