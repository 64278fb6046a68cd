"""The command that serves a model repository in NVIDIA's container, on a machine with GPUs or Neuron devices. Pure.

Not run on hardware: no container engine, GPU or Neuron device was at hand. GPUs: `--gpus` of NVIDIA's container
toolkit; shared memory and memlock: the options that the start line of NVIDIA's images asks for. Neuron: devices,
memlock and /lib/udev as AWS's container guide for Inf1 has them (awsdocs-neuron.readthedocs-hosted.com, read 2026-11).
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from crowdperf.machine import images, neuron

NAME = "crowdperf-triton"
MODELS = "/models"
HTTP_PORT, GRPC_PORT = 8000, 8001
"""Triton's own ports inside the container."""
STACK_BYTES = 67108864
GPU_IMAGE, GPU_IMAGE_CUDA_MAJOR = "nvcr.io/nvidia/tritonserver:26.07-py3", 13
"""A current image, for GPUs from Turing to Blackwell, and the CUDA that it is based on (13.3.1; NVIDIA's release notes
of 26.07, read 2026-11-28). Its digest was not looked up."""


class PlanError(ValueError):
    """A value that no command can be made of; the text says which and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """What is to be served: the folder with the repository, an image, ports of this machine, size of /dev/shm."""

    repository: str
    image: str
    http_port: int = HTTP_PORT
    grpc_port: int = GRPC_PORT
    shm_size: str = "1g"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """What the machine has: the number of GPUs that a driver answers for, names such as "neuron0" in /dev, and the
    library of AWS for them ("torch_neuron", "torch_neuronx")."""

    gpus: int = 0
    neuron: tuple[str, ...] = ()
    sdk: str = ""


def default_image(usual: str, cuda_version: str) -> str:
    """The image where none is given: `usual`, or the current one where the GPU driver runs its CUDA."""
    major = cuda_version.partition(".")[0]
    return GPU_IMAGE if major.isdigit() and int(major) >= GPU_IMAGE_CUDA_MAJOR else usual


def check(asked: ContainerRequest) -> None:
    """Raises PlanError for a value that docker would take for something else."""
    for name, value, pattern, allowed in (
        ("repository", asked.repository, r"/[^:,\n]*", "a full path without ':' and ','"),
        ("shm_size", asked.shm_size, r"\d+[bkmg]?", "a number with b, k, m or g behind it"),
    ):
        if not re.fullmatch(pattern, value):
            raise PlanError(f"--{name}={value!r}; allowed: {allowed}")


def run_words(asked: ContainerRequest, found: Accelerators) -> tuple[str, ...]:
    """The words of `docker run`. The ports are those of 127.0.0.1: the server asks nobody who he is."""
    devices = [f"--device=/dev/{name}" for name in found.neuron]
    if found.neuron:
        devices.append("--mount=type=bind,source=/lib/udev,target=/mylib/udev,readonly")
    elif found.gpus:
        devices.append("--gpus=all")
    return (
        "docker", "run", "--rm", f"--name={NAME}", *devices,
        f"--shm-size={asked.shm_size}", "--ulimit=memlock=-1", f"--ulimit=stack={STACK_BYTES}",
        f"--publish=127.0.0.1:{asked.http_port}:{HTTP_PORT}", f"--publish=127.0.0.1:{asked.grpc_port}:{GRPC_PORT}",
        f"--mount=type=bind,source={asked.repository},target={MODELS},readonly",
        asked.image, "tritonserver", f"--model-repository={MODELS}", "--disable-auto-complete-config",
    )  # fmt: skip


def notes(asked: ContainerRequest, found: Accelerators) -> tuple[str, ...]:
    """What a reader must know beside the command."""
    lines = []
    if not images.is_pinned(asked.image):
        lines.append(
            "the image is given by its tag, which can be moved. Pin its content with --image_digest= and the `Digest:` "
            f"that this prints: {images.find_digest(asked.image)}"
        )
    if found.neuron:
        lines.append(
            f"NVIDIA's image has no Neuron runtime: give --image of one with AWS's {found.sdk} and Triton in it"
        )
        if found.sdk == "torch_neuron":
            lines.append(neuron.ARCHIVED)
    elif found.gpus:
        lines.append(
            "the repository must be one for GPUs: cm run script --tags=generate,triton,model-repository --device=cuda"
        )
    else:
        lines.append("the machine has no GPU and no Neuron device: the server computes on the CPU")
    lines.append("in the container each instance is a thread of the server, not a process")
    return tuple(lines)


def plan(asked: ContainerRequest, found: Accelerators) -> dict[str, object]:
    """The plan as data; raises PlanError."""
    check(asked)
    words: Sequence[str] = run_words(asked, found)
    return {
        "command": list(words),
        "line": shlex.join(words),
        "stop": f"docker stop {NAME}",
        "notes": list(notes(asked, found)),
    }
