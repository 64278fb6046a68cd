"""Which backends a machine can run now, and one command for each thing that one lacks."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from crowdperf.machine import compatibility
from crowdperf.machine.findings import Command, Finding
from crowdperf.machine.system import System

from . import advice, software_stack
from .surroundings import Surroundings


class Facts(NamedTuple):
    """What backends are judged by; ``onnxruntime_cuda`` and ``torch_cuda``: CUDA that the packages are made for.

    ``has_benchmark_python``: the packages are those of the benchmarks' environment, into which runs install what lacks.
    """

    system: System
    around: Surroundings
    onnxruntime_cuda: str
    torch_cuda: str
    has_benchmark_python: bool = False


class Lack(NamedTuple):
    """One thing that is missing, and the command that gets it (None: nothing can)."""

    text: str
    command: Command | None


def findings(facts: Facts) -> tuple[Finding, ...]:
    """One finding for each backend: ready, or what it lacks in the order to get it."""
    return tuple(_finding(name, judge(facts), _still_to_install(name, facts)) for name, judge in BACKENDS.items())


def ready(facts: Facts) -> tuple[str, ...]:
    """The names of the backends that can run now."""
    return tuple(name for name, judge in BACKENDS.items() if not judge(facts))


def _still_to_install(name: str, facts: Facts) -> str:
    """The package of a backend that the first run installs; empty when it is there, or runs do not install it."""
    package = PACKAGES.get(name, "")
    is_there = package in facts.system.packages or (name == "tensorrt" and facts.system.tensorrt)
    if is_there or not package or not facts.has_benchmark_python:
        return ""
    cuda = facts.system.driver.cuda_version
    last = compatibility.last_release(package, cuda) if name.endswith("(cuda)") else ""
    return f"{package} up to {last}, since the driver runs CUDA up to {cuda}" if last else package


def _finding(name: str, lacks: list[Lack], to_install: str) -> Finding:
    if not lacks:
        return Finding(name, "ok", f"ready, the first run installs {to_install}" if to_install else "ready")
    never = [lack.text for lack in lacks if lack.command is None]
    if never:
        return Finding(name, "note", f"not on this machine: it has no {never[0]}")
    commands = tuple(dict.fromkeys(lack.command for lack in lacks if lack.command is not None))
    return Finding(name, "note", "lacks " + "; ".join(lack.text for lack in lacks), "", commands)


def _gpu(facts: Facts) -> list[Lack]:
    """What is missing for any program of CUDA: GPU, driver."""
    system = facts.system
    if system.jetson_model:
        return []
    if system.driver.is_working:
        is_parted = system.nvswitches and not system.host.container and system.fabric_manager != system.driver.version
        return [Lack("a fabric manager of the driver's version", advice.FABRIC_MANAGER)] if is_parted else []
    if not system.present_gpus:
        return [Lack("NVIDIA GPU", None)]
    if system.host.container:
        return [Lack("the GPUs of the host", advice.PASS_GPUS)]
    command = advice.LOAD_MODULE if system.driver.trouble else advice.DRIVER
    return [Lack("a working driver", command)]


def _package(facts: Facts, name: str) -> list[Lack]:
    """A package that is missing where runs do not install it."""
    if name in facts.system.packages or facts.has_benchmark_python:
        return []
    return [Lack(f"the package {name}", advice.package(name, facts.system.python))]


def _onnxruntime_cpu(facts: Facts) -> list[Lack]:
    return [] if "onnxruntime-gpu" in facts.system.packages else _package(facts, "onnxruntime")


def _onnxruntime_cuda(facts: Facts) -> list[Lack]:
    system, version = facts.system, facts.system.packages.get("onnxruntime-gpu", "")
    lacks = _gpu(facts)
    if not version:
        return [*lacks, *_package(facts, "onnxruntime-gpu")]
    major, cudnn_major = facts.onnxruntime_cuda, software_stack.cudnn_major_of_onnxruntime(version)
    if not any(kit.version.split(".")[0] == major for kit in system.cuda):
        lacks.append(Lack(f"CUDA {major} (onnxruntime-gpu {version} is made for it)", advice.cuda(major)))
    if not any(one.version.split(".")[0] == cudnn_major for one in system.cudnn):
        lacks.append(Lack(f"cuDNN {cudnn_major}", advice.CUDNN))
    return lacks


def _torch_cpu(facts: Facts) -> list[Lack]:
    return _package(facts, "torch")


def _torch_cuda(facts: Facts) -> list[Lack]:
    system, driver = facts.system, facts.system.driver.version
    lacks = [*_gpu(facts), *_torch_cpu(facts)]
    if "torch" in system.packages and not facts.torch_cuda and not facts.has_benchmark_python:
        lacks.append(Lack("a torch that is made for CUDA", advice.package("torch", system.python)))
    if facts.torch_cuda and driver:
        release = ".".join(facts.torch_cuda.split(".")[:2])
        is_windows = system.host.is_wsl
        if compatibility.driver_verdict(release, driver, is_windows=is_windows) == "too-old":
            minimum = compatibility.minimum_driver(release, is_windows=is_windows)
            lacks.append(
                Lack(f"driver {minimum} for the CUDA {facts.torch_cuda} of torch", advice.driver_at_least(minimum))
            )
    return lacks


def _tensorrt(facts: Facts) -> list[Lack]:
    system, lacks = facts.system, _gpu(facts)
    if "tensorrt" in system.packages or facts.has_benchmark_python:  # its wheels bring the CUDA libraries
        return lacks
    if not system.tensorrt:
        return [*lacks, Lack("TensorRT", advice.TENSORRT)]
    majors = compatibility.cuda_majors_of("TensorRT", system.tensorrt[0].version)
    if majors and not any(kit.version.split(".")[0] in majors for kit in system.cuda):
        lacks.append(
            Lack(f"CUDA {' or '.join(majors)} for TensorRT {system.tensorrt[0].version}", advice.cuda(majors[-1]))
        )
    return lacks


def _triton(facts: Facts) -> list[Lack]:
    """The server has an environment of its own, which its recipe makes; a run calls that recipe."""
    if facts.has_benchmark_python or "nvidia-pytriton" in facts.system.packages:
        return []
    return [Lack("the server, which get,triton,server installs", advice.TRITON)]


def _neuron(facts: Facts) -> list[Lack]:
    system = facts.system
    chips = sum(device.kind == "neuron" for device in system.present)
    if not chips and not system.neuron_devices:
        return [Lack("AWS Neuron device", None)]
    if system.neuron_devices < chips:
        return [Lack("the driver aws-neuronx-dkms", advice.NEURON_DRIVER)]
    if {"torch-neuron", "torch-neuronx"} & system.packages.keys():
        return []
    return [Lack("a server with AWS's torch-neuron or torch-neuronx", advice.TRITON_NEURON)]


def _containers(facts: Facts) -> list[Lack]:
    around = facts.around
    if around.working_engine:
        return []
    if any(engine.is_denied_docker for engine in around.engines):
        return [Lack("the permission to use docker", advice.PERMISSIONS)]
    text = "a running daemon of docker" if around.engines else "docker, podman or apptainer"
    return [Lack(text, advice.DOCKER)]


def _containers_gpu(facts: Facts) -> list[Lack]:
    lacks = [*_gpu(facts), *_containers(facts)]
    if not facts.around.has_container_toolkit:
        lacks.append(Lack("NVIDIA's container toolkit", advice.CONTAINER_TOOLKIT))
    return lacks


BACKENDS: Mapping[str, Callable[[Facts], list[Lack]]] = {
    "onnxruntime (cpu)": _onnxruntime_cpu,
    "onnxruntime (cuda)": _onnxruntime_cuda,
    "torch (cpu)": _torch_cpu,
    "torch (cuda)": _torch_cuda,
    "tensorrt": _tensorrt,
    "triton (python backend)": _triton,
    "neuron (triton)": _neuron,
    "containers": _containers,
    "containers (gpu)": _containers_gpu,
}
PACKAGES = {
    "onnxruntime (cpu)": "onnxruntime",
    "onnxruntime (cuda)": "onnxruntime-gpu",
    "torch (cpu)": "torch",
    "torch (cuda)": "torch",
    "tensorrt": "tensorrt",
    "triton (python backend)": "nvidia-pytriton",
}
"""The package of each backend that benchmarks run with; a run installs it into their environment."""
