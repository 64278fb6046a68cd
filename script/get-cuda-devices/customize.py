"""Hooks of the recipe get-cuda-devices: ask the CUDA devices for 18 properties each and print them.

`query.py` compiles and runs query.cu, `by_driver.py` asks nvidia-smi instead, `properties.py` holds the names and what
leaves the recipe, `advice.py` explains errors.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import re
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from crowdperf.call.answers import runs_to_its_end
from crowdperf.call.values import text_of
from crowdperf.machine import nvidia, selection, toolkits
from crowdperf.machine.probe import Machine

from . import advice, by_driver, properties, query

ON_RECORDED = "no program can be compiled or run on a recorded machine. Its nvidia-smi is read"
VISIBLE = re.compile(r"([0-9A-Za-z][0-9A-Za-z-]*(,[0-9A-Za-z][0-9A-Za-z-]*)*)?")


class DevicesError(Exception):
    """There are no properties to give. The text says why and what to try."""


class Request(NamedTuple):
    """What is asked: devices (empty: all), the memory below which to warn in GB, the nvcc to use (empty: none)."""

    visible: str
    min_memory_gb: float
    nvcc: str


plan = runs_to_its_end


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints the properties of each device and sets the recipe's keys; CM's answer."""
    env = i["env"]
    try:
        machine, asked = selection.of_call(i), _asked(env, i["values"])
        if asked.nvcc:
            devices = _by_toolkit(machine, asked)
        else:
            is_wanted = env.get("CM_CUDA_DEVICES_SOURCE") == "nvml"
            why = "as asked" if is_wanted else "there is no nvcc to compile with"
            if env.get("CM_RECORDED_MACHINE"):
                why = ON_RECORDED
            print(f"get-cuda-devices: asking nvidia-smi (NVML): {why}", file=sys.stderr)
            devices = _by_driver(machine, asked)
    except (DevicesError, selection.MachineError, query.CompileError) as error:
        return {"return": 1, "error": str(error)}
    print(properties.devices_text(devices), end="", flush=True)
    for line in properties.warnings(devices, asked.min_memory_gb):
        print(f"get-cuda-devices: WARNING: {line}", file=sys.stderr)
    env.update(properties.env_of(devices[0]))
    env["CM_CUDA_DEVICES_TOLD_BY"] = "nvcc" if asked.nvcc else "nvml"
    env["CM_CUDA_NUM_DEVICES"] = str(len(devices))
    i["state"]["cm_cuda_num_devices"] = len(devices)
    i["state"]["cm_cuda_device_prop"] = dict(devices[0])
    i["state"]["cm_cuda_devices_prop"] = {number: dict(device) for number, device in enumerate(devices)}
    return {"return": 0}


def _asked(env: dict[str, Any], values: Mapping[str, Any]) -> Request:
    visible = (values["visible_devices"] or "").replace(" ", "")
    if not VISIBLE.fullmatch(visible):
        raise DevicesError(
            f"--visible_devices={visible!r} must be numbers or UUIDs with commas.\n  hint: --visible_devices=0,2"
        )
    nvcc = text_of(env, "CM_NVCC_BIN_WITH_PATH") if env.get("CM_CUDA_DEVICES_SOURCE", "nvcc") == "nvcc" else ""
    return Request("" if visible == "all" else visible, values["min_memory_gb"], nvcc)


def _by_toolkit(machine: Machine, asked: Request) -> tuple[properties.Device, ...]:
    """Compiles the query and runs it. Raises DevicesError and query.CompileError."""
    print(f"NVCC path: {asked.nvcc}\n\nChecking compiler version ...\n", flush=True)
    print(f"{query.compiler_version(machine, asked.nvcc)}\n\nCompiling program ...\n", flush=True)
    visible = query.Visible(asked.visible)
    with tempfile.TemporaryDirectory(prefix="cm-cuda-devices-") as folder:
        program = query.build(machine, asked.nvcc, folder)
        print("Running program ...\n", flush=True)
        done = query.run(machine, program, visible)
    if fault := advice.fault_in(done.stdout):
        shown = asked.visible or machine.environment.get("CUDA_VISIBLE_DEVICES", "")
        raise DevicesError(advice.explain(fault, nvidia.look(machine).trouble, shown))
    try:
        devices = properties.parse(done.stdout)
    except ValueError as error:
        raise DevicesError(f"the query was cut short: {error} (exit code {done.code})\n  hint: nvidia-smi") from error
    if done.code != 0 or not devices:
        said = done.stderr.strip() or "it named no device"
        raise DevicesError(f"the query ended with exit code {done.code}: {said}\n  hint: nvidia-smi -L")
    if visible.count > len(devices):
        raise DevicesError(
            f"--visible_devices={asked.visible} names {visible.count} devices, CUDA shows {len(devices)} of them: it "
            "stops at the first that does not exist.\n  hint: nvidia-smi -L"
        )
    return devices


def _by_driver(machine: Machine, asked: Request) -> tuple[properties.Device, ...]:
    """Asks the driver's nvidia-smi. Raises DevicesError."""
    driver = nvidia.look(machine)
    if not driver.is_working:
        said = driver.trouble or "nvidia-smi is not installed"
        kernel = f", the kernel module is {driver.module_version}" if driver.module_version else ""
        raise DevicesError(f"no NVIDIA driver answers: {said}{kernel}\n  hint: {advice.DRIVER_COMMANDS}")
    try:
        devices = by_driver.devices(machine, driver, asked.visible)
    except ValueError as error:
        raise DevicesError(f"--visible_devices={asked.visible}: {error}\n  hint: nvidia-smi -L") from error
    for gpu in by_driver.chosen_gpus(driver, asked.visible):
        if gpu.is_mig:
            print(
                f"get-cuda-devices: WARNING: device {gpu.number} ({gpu.name}) is in MIG mode: these are the properties "
                "of the whole GPU. A program sees one slice of it (nvidia-smi -L)",
                file=sys.stderr,
            )
    print(f"get-cuda-devices: {by_driver.SOURCES}", file=sys.stderr)
    return _with_runtime(machine, devices) if machine.is_recorded else devices


def _with_runtime(machine: Machine, devices: tuple[properties.Device, ...]) -> tuple[properties.Device, ...]:
    """The devices with the runtime version of the newest toolkit of a recorded machine, which is said."""
    found = toolkits.cuda_toolkits(machine)
    if not found:
        return devices
    print(f"get-cuda-devices: CUDA runtime version: that of the recorded toolkit in {found[0].home}", file=sys.stderr)
    return tuple({**device, properties.RUNTIME_VERSION: found[0].release} for device in devices)
