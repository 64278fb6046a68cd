"""The command lines of an engine, as lists of words: build, start, run inside, stop, remove. Nothing is run here.

Sources: the reference pages of docker, podman-run(1), Apptainer's user guide, NVIDIA's container toolkit and CDI pages
(2025), and the Makefile of NVIDIA's MLPerf v0.7 results for the choice between nvidia-docker and ``--gpus``.
"""

from typing import NamedTuple

from .request import WORK, Request

KEEP_ALIVE = ("/bin/sh", "-c", 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done')  # words: ok P23
"""Holds a container without a shell that waits for input; ends at once when it is told to stop."""
STOP_AFTER_S = 10
IMAGE = "mlperf-inference"
"""Name of the images and containers, as NVIDIA's MLPerf v0.7 tree has it."""


class Mount(NamedTuple):
    """A folder of the host, and where it is in the container. ``is_made``: made on the host when it is missing."""

    source: str
    target: str
    is_made: bool = False
    is_read_only: bool = False


class Gpus(NamedTuple):
    """Which GPUs the container gets. ``devices``: none when empty, else all, or as NVIDIA_VISIBLE_DEVICES has them.

    ``has_nvidia_docker``: /usr/bin/nvidia-docker is there.
    """

    devices: tuple[str, ...]
    has_nvidia_docker: bool = False


class Container(NamedTuple):
    """All that the command lines are made of. ``engine`` is its kind, ``program`` what to call.

    ``variables`` are (name, value); ``passed`` are names whose values the engine takes from its own environment;
    ``neuron`` has the Neuron devices of the host, all of which it gets.
    """

    engine: str
    program: str
    image: str
    name: str
    mounts: tuple[Mount, ...]
    variables: tuple[tuple[str, str], ...]
    passed: tuple[str, ...]
    gpus: Gpus
    shm_size: str
    is_unconfined: bool
    keeps_user: bool
    more: tuple[str, ...]
    neuron: tuple[str, ...] = ()


def mounts(request: Request, work: str, cache: str, host_cache: str, home: str) -> tuple[Mount, ...]:
    """What a request mounts: the workspace at /work, scratch and both caches at their own paths, the home at /mnt/...

    Links in the workspace and the scratch space lead into these caches: with the same paths on both sides they hold on
    both. The host's cache is for reading, because its entries are made for the host's Python and libraries.
    """
    found = [Mount(work, WORK)] if work else []
    if request.places.scratch:
        found.append(Mount(request.places.scratch, request.places.scratch))
    if host_cache and cache and host_cache != cache:
        found.append(Mount(host_cache, host_cache, is_made=True, is_read_only=True))
    if cache:
        found.append(Mount(cache, cache, is_made=True))
    if request.places.has_home and home:
        found.append(Mount(home, f"/mnt{home}"))
    return tuple(found)


def tags(tag: str) -> tuple[str, str]:
    """The names of both images: tools and sources, and the same with the caller's account."""
    return f"{IMAGE}:{tag}-latest", f"{IMAGE}:{tag}"


def build(container: Container, request: Request, tag: str, file: str, context: str) -> tuple[tuple[str, ...], ...]:
    """The lines that make the images out of a file and a folder."""
    if container.engine == "apptainer":
        return ((container.program, "build", "--force", *request.options.build_arguments, container.image, file),)
    # a file as source is of no use: where a variable has the secret's name, buildah 1.28 looks for it there
    secret = [f"--secret=id={name},env={name}" for name in request.secrets]
    lines = []
    for stage, name in zip(("build", "user"), tags(tag), strict=True):
        given = secret if stage == "user" else []
        words = ("build", f"--file={file}", f"--target={stage}", f"--tag={name}")
        lines.append((container.program, *words, *given, *request.options.build_arguments, context))
    return tuple(lines)


def start(container: Container) -> tuple[str, ...]:
    """The line that starts a container that waits for commands."""
    if container.engine == "apptainer":
        return (container.program, "instance", "start", *_options(container), container.image, container.name)
    words = ("run", "--detach", "--tty", f"--name={container.name}")
    return (_runner(container), *words, *_options(container), container.image, *KEEP_ALIVE)


def attach(container: Container) -> tuple[str, ...]:
    """The line that starts a shell in a new container, for a terminal."""
    if container.engine == "apptainer":
        return (container.program, "shell", *_options(container), container.image)
    words = ("run", "--rm", "--interactive", "--tty", f"--name={container.name}")
    return (_runner(container), *words, *_options(container), container.image, "/bin/sh")


def execute(container: Container, words: tuple[str, ...]) -> tuple[str, ...]:
    """The line that runs words in a container that was started."""
    if container.engine == "apptainer":
        return (container.program, "exec", f"--pwd={WORK}", f"instance://{container.name}", *words)
    return (container.program, "exec", f"--workdir={WORK}", container.name, *words)


def end(container: Container) -> tuple[tuple[str, ...], ...]:
    """The lines that stop and remove it, however it stands."""
    if container.engine == "apptainer":
        return ((container.program, "instance", "stop", container.name),)
    stop = (container.program, "stop", "-t", str(STOP_AFTER_S), container.name)  # its long form has had two names
    return (stop, (container.program, "rm", "--force", container.name))


def environment(container: Container, outer: dict[str, str]) -> dict[str, str]:
    """What has to be in the environment of the engine's program, beside what is there."""
    if container.engine != "apptainer":
        return {"DOCKER_BUILDKIT": "1"} if container.engine == "docker" else {}
    prefix = "SINGULARITYENV_" if container.program == "singularity" else "APPTAINERENV_"
    given = {**dict(container.variables), **{name: outer.get(name, "") for name in container.passed}}
    return {prefix + name: value for name, value in given.items()}  # its --env splits values at commas


def _runner(container: Container) -> str:
    is_wrapped = container.engine == "docker" and container.gpus.devices and container.gpus.has_nvidia_docker
    return "nvidia-docker" if is_wrapped else container.program


def _options(container: Container) -> tuple[str, ...]:
    if container.engine == "apptainer":
        binds = (f"--bind={one.source}:{one.target}{':ro' * one.is_read_only}" for one in container.mounts)
        gpu = ("--nv",) if container.gpus.devices else ()
        return ("--writable-tmpfs", *gpu, *binds, *container.more)
    words = [*_gpus(container)]
    words += _neuron(container)
    for one in container.mounts:
        read_only = ",readonly" if one.is_read_only else ""
        words.append(f"--mount=type=bind,source={one.source},target={one.target}{read_only}")
    words += [f"--env={name}={value}" for name, value in container.variables]
    words += [f"--env={name}" for name in container.passed]
    words.append(f"--workdir={WORK}")
    if container.keeps_user:
        words.append("--userns=keep-id")
    if container.shm_size:
        words.append(f"--shm-size={container.shm_size}")
    if container.is_unconfined:
        words += ["--security-opt=apparmor=unconfined", "--security-opt=seccomp=unconfined"]
    return (*words, *container.more)


def _neuron(container: Container) -> tuple[str, ...]:
    """Devices, locked memory and udev, as inferentia/README.md of triton-inference-server/python_backend (17cf5b3f) has
    them for Inf1. Not run on hardware."""
    if not container.neuron:
        return ()
    udev = "--mount=type=bind,source=/lib/udev,target=/mylib/udev,readonly"
    return (*(f"--device={name}" for name in container.neuron), "--ulimit=memlock=-1", udev)


def _gpus(container: Container) -> tuple[str, ...]:
    devices = container.gpus.devices
    if not devices or (container.engine == "docker" and container.gpus.has_nvidia_docker):
        return ()  # nvidia-docker goes by NVIDIA_VISIBLE_DEVICES
    if container.engine == "podman":
        return tuple(f"--device=nvidia.com/gpu={device}" for device in devices)
    if devices == ("all",):
        return ("--gpus=all",)
    return (f'--gpus="device={",".join(devices)}"',)  # the quotes are for docker's own parser of commas


def visible(gpus: Gpus, engine: str) -> tuple[tuple[str, str], ...]:
    """The variables that filter GPUs inside the container."""
    chosen = ",".join(gpus.devices)
    if not chosen:
        return (("NVIDIA_VISIBLE_DEVICES", "void"),)
    shown = (("NVIDIA_VISIBLE_DEVICES", chosen),)
    if engine == "apptainer" and chosen != "all":  # --nv shows every device; CUDA goes by this one
        return (*shown, ("CUDA_VISIBLE_DEVICES", chosen))
    return shown
