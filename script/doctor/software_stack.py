"""Compatibility on a machine: driver, fabric manager, CUDA, cuDNN, TensorRT, torch."""

import re
from collections.abc import Iterator

from crowdperf.machine import compatibility, neuron
from crowdperf.machine.findings import Finding
from crowdperf.machine.system import System
from crowdperf.machine.toolkits import Toolkit, release_of
from crowdperf.rules.names import counted

from . import advice

OLDEST_CAPABILITY = "7.5"
"""Turing: what the v0.7 harness and TensorRT 10 want at least (NVIDIA, TensorRT 10 support matrix)."""


def findings(system: System, torch_cuda: str) -> tuple[Finding, ...]:
    """All findings about what fits; ``torch_cuda`` is the CUDA release that torch is made for, or empty."""
    return (
        *_driver(system),
        *_mig(system),
        *_fabric_manager(system),
        *_toolkits(system),
        *_libraries(system),
        *_torch(system, torch_cuda),
    )


def _driver(system: System) -> Iterator[Finding]:
    driver, count = system.driver, len(system.present_gpus)
    if any(device.kind == "amd" for device in system.present):
        yield Finding("AMD GPU", "note", "is on the bus, but no backend of this repository uses it")
    if system.host.is_wsl:
        yield Finding("driver", "note", "in WSL the driver of Windows is used: install none in Linux")
    if system.jetson_model:
        text = f"part of Jetson Linux {system.l4t_release}, and CUDA, cuDNN, TensorRT of its JetPack"
        yield Finding("driver", "ok", text)
    elif driver.is_working:
        yield from _shown_gpus(system)
    elif system.host.container and count:
        loaded = f", its driver is {driver.module_version}" if driver.module_version else ""
        found = f"the host has {counted(count, 'NVIDIA GPU')}{loaded}, but this container was started without them"
        yield Finding("driver", "problem", found, "a container with the GPUs", (advice.PASS_GPUS,))
    elif driver.trouble:
        fixes = (advice.LOAD_MODULE, advice.DRIVER)
        wanted = "the driver's module loaded (it may have to be built for this kernel)"
        yield Finding("driver", "problem", f"nvidia-smi fails: {driver.trouble}", wanted, fixes)
    elif count:
        found = f"{counted(count, 'NVIDIA GPU')} on the bus, no driver"
        yield Finding("driver", "problem", found, "a driver", (advice.DRIVER,))
    elif any(device.kind == "neuron" for device in system.present) or system.neuron_devices:
        yield from _neuron(system)
    else:
        yield Finding("driver", "note", "no NVIDIA GPU and no driver: only backends of the CPU run here")


def _shown_gpus(system: System) -> Iterator[Finding]:
    shown, present = system.driver.gpus, len(system.present_gpus)
    if present > len(shown):
        found = f"the driver shows {len(shown)} of the {present} GPUs on the bus"
        yield Finding(
            "GPUs", "note" if system.host.container else "problem", found, f"{present} GPUs", (advice.DRIVER,)
        )
    old = sorted({gpu.name for gpu in shown if gpu.compute_capability and float(gpu.compute_capability) < 7.5})
    if old:
        found = f"{', '.join(old)} is older than compute capability {OLDEST_CAPABILITY}"
        yield Finding("GPUs", "note", found, f"{OLDEST_CAPABILITY} or newer for the NVIDIA harness")


def _neuron(system: System) -> Iterator[Finding]:
    chips = sum(device.kind == "neuron" for device in system.present)
    if system.neuron_devices < chips:
        found = f"{chips} chips on the bus, {system.neuron_devices} as /dev/neuron*"
        yield Finding("Neuron", "problem", found, "the driver aws-neuronx-dkms", (advice.NEURON_DRIVER,))
    else:
        found = f"{counted(system.neuron_devices, 'Neuron device')}, {counted(system.neuron_cores, 'NeuronCore')}"
        yield Finding("Neuron", "ok", found)
    if any(neuron.SDK_OF_CHIP.get(device.name) == "torch_neuron" for device in system.present):
        yield Finding("torch-neuron", "note", neuron.ARCHIVED, "Inf2, for a library that AWS supports")


def _mig(system: System) -> Iterator[Finding]:
    on = sorted({gpu.number for gpu in system.driver.gpus if gpu.is_mig})
    without = [number for number in on if number not in {part.gpu_index for part in system.driver.slices}]
    if without:
        found = f"MIG is on without slices on GPU {', '.join(map(str, without))}: programs see no device there"
        yield Finding("MIG", "problem", found, "slices", (advice.MIG,))
    elif on:
        found = f"{counted(len(system.driver.slices), 'slice')}. A program uses one of them"
        yield Finding("MIG", "ok", found, "CUDA_VISIBLE_DEVICES=<UUID of a slice, see nvidia-smi -L>")


def _fabric_manager(system: System) -> Iterator[Finding]:
    driver, fabric_manager = system.driver.version, system.fabric_manager
    if system.host.container or not driver:
        return
    if fabric_manager and fabric_manager != driver:
        found = f"driver {driver}, fabric manager {fabric_manager}"
        wanted = f"fabric manager {driver}: both have to be the same version, else it does not start, and CUDA neither"
        yield Finding("fabric manager", "problem", found, wanted, (advice.FABRIC_MANAGER,))
    elif fabric_manager:
        yield Finding("fabric manager", "ok", f"{fabric_manager}, as the driver")
    elif system.nvswitches:
        found = f"none, but {system.nvswitches} NVSwitch chips, which need it"
        yield Finding("fabric manager", "problem", found, f"fabric manager {driver}", (advice.FABRIC_MANAGER,))


def _toolkits(system: System) -> Iterator[Finding]:
    driver, is_windows = system.driver.version, system.host.is_wsl
    verdicts = {kit: compatibility.driver_verdict(kit.release, driver, is_windows=is_windows) for kit in system.cuda}
    running = [kit for kit, verdict in verdicts.items() if verdict in ("runs", "minor")]
    first = next((kit for kit in system.cuda if _is_used(kit)), None)
    for kit, verdict in verdicts.items():
        yield _toolkit(system, kit, verdict, is_problem=not running)
    if first and running and verdicts[first] == "too-old":
        found = f"CUDA {first.version} is first on PATH, which driver {driver} does not run"
        wanted = f"CUDA {running[0].version} first. The recipe get,cuda selects it automatically"
        yield Finding("PATH", "problem", found, wanted, (advice.first_on_path(running[0].home), advice.CUDA))


def _toolkit(system: System, kit: Toolkit, verdict: compatibility.Verdict, *, is_problem: bool) -> Finding:
    driver = system.driver.version
    what, minimum = f"CUDA {kit.version}", compatibility.minimum_driver(kit.release, is_windows=system.host.is_wsl)
    if system.jetson_model:
        return Finding(what, "ok", f"in {kit.home}, of JetPack")
    if not driver:
        wanted = f"driver {minimum} or newer" if minimum else ""
        return Finding(what, "note", f"in {kit.home}: compiles, but no driver is here to run it", wanted)
    if verdict == "too-old":
        found, wanted = f"in {kit.home}: driver {driver} is too old for it", f"driver {minimum} or newer"
        return Finding(what, "problem" if is_problem else "note", found, wanted, (advice.driver_at_least(minimum),))
    if verdict == "minor":
        found = f"in {kit.home}: runs on driver {driver} by minor version compatibility"
        return Finding(what, "ok", found, "no PTX and no features newer than the driver's CUDA")
    if verdict == "runs":
        return Finding(what, "ok", f"in {kit.home}: driver {driver} runs it")
    return Finding(what, "note", f"in {kit.home}: not in our table ({compatibility.SOURCE})")


def _is_used(kit: Toolkit) -> bool:
    """Whether a build that asks PATH gets this toolkit."""
    return kit.path_rank == 1


def _libraries(system: System) -> Iterator[Finding]:
    majors_here = sorted({kit.version.split(".")[0] for kit in system.cuda})
    libraries = [("cuDNN", one) for one in system.cudnn] + [("TensorRT", one) for one in system.tensorrt]
    for name, library in libraries:
        what, place = f"{name} {library.version}", library.lib or library.include
        made_for = compatibility.cuda_majors_of(name, library.version)
        fitting = [kit.version for kit in system.cuda if kit.version.split(".")[0] in made_for]
        if not made_for:
            yield Finding(what, "note", f"in {place}: not in our table of {name}")
        elif fitting:
            yield Finding(
                what, "ok", f"in {place}: built for CUDA {' or '.join(made_for)}, compatible with {', '.join(fitting)}"
            )
        else:
            here = f"here is CUDA {', '.join(majors_here)}" if majors_here else "no CUDA toolkit is here"
            fix = advice.CUDNN if name == "cuDNN" else advice.TENSORRT
            yield Finding(
                what,
                "problem" if majors_here else "note",
                f"in {place}: made for CUDA {' or '.join(made_for)}, {here}",
                f"{name} and CUDA of one major version",
                (fix,),
            )


def _torch(system: System, torch_cuda: str) -> Iterator[Finding]:
    version, driver = system.packages.get("torch", ""), system.driver.version
    if not version or not torch_cuda or not driver:
        return
    release = release_of(torch_cuda)
    if compatibility.driver_verdict(release, driver, is_windows=system.host.is_wsl) == "too-old":
        minimum = compatibility.minimum_driver(release, is_windows=system.host.is_wsl)
        found = f"is made for CUDA {torch_cuda}, which driver {driver} does not run"
        yield Finding(f"torch {version}", "problem", found, f"driver {minimum}", (advice.driver_at_least(minimum),))
    else:
        yield Finding(f"torch {version}", "ok", f"brings CUDA {torch_cuda}, which driver {driver} runs")


def cudnn_major_of_onnxruntime(version: str) -> str:
    """The cuDNN major version that onnxruntime-gpu wants: 9 from 1.19 on, 8 before (onnxruntime.ai, 2025-07)."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return "" if not found else "9" if (int(found[1]), int(found[2])) >= (1, 19) else "8"
