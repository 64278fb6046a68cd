"""The NVIDIA Container Toolkit of a machine, and the ways in which its container engines can give GPUs to a container.

Ways, and what each needs (NVIDIA Container Toolkit documentation, docker and podman manuals, Apptainer user guide):

    nvidia-docker  the old wrapper; NVIDIA's v0.7 Makefile takes it where /usr/bin/nvidia-docker is there
    gpus           docker run --gpus all          Docker 19.03 and newer, with the toolkit
    runtime        docker run --runtime=nvidia    the runtime in the daemon's configuration
    cdi            --device nvidia.com/gpu=all    a CDI specification; Podman, and Docker 25 and newer
    nv             apptainer run --nv             the driver alone, no toolkit
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crowdperf.machine import versions
from crowdperf.machine.probe import Machine

WRAPPER = "/usr/bin/nvidia-docker"
CDI_SPECS = ("/etc/cdi/*.yaml", "/etc/cdi/*.json", "/var/run/cdi/*.yaml", "/var/run/cdi/*.json")
CDI_KIND = re.compile(r"kind\"?\s*:\s*\"?nvidia\.com/gpu")
FIRST_DOCKER_WITH_GPUS = "19.03"
FIRST_DOCKER_WITH_CDI = "25.0"
WAYS: Mapping[str, tuple[str, str, str]] = {
    "nvidia-docker": ("docker", "nvidia-docker", ""),
    "gpus": ("docker", "docker", "--gpus all"),
    "runtime": ("docker", "docker", "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"),
    "cdi": ("", "", "--device nvidia.com/gpu=all"),
    "nv": ("apptainer", "apptainer", "--nv"),
}
"""Each way: the engine it belongs to (empty: docker or podman), the program to call, and its arguments."""


class Toolkit(NamedTuple):
    """What is installed. Texts are empty where nothing is there; ``cdi_specs`` are files that offer ``nvidia.com/gpu``.

    ``library`` is the version of libnvidia-container, which has had the toolkit's own number since 1.6.
    """

    path: str
    version: str
    library: str
    has_wrapper: bool
    cdi_specs: tuple[str, ...]

    @property
    def is_there(self) -> bool:
        """Whether any part of the toolkit is installed."""
        return bool(self.version or self.library)


class Way(NamedTuple):
    """A way to give GPUs to containers: its name (empty: none), what to call, the arguments, and why this one."""

    name: str
    program: str
    arguments: str
    reason: str


def look(machine: Machine) -> Toolkit:
    """The toolkit of a machine."""
    version = _after("version", machine.run(("nvidia-ctk", "--version")).stdout)
    told = machine.run(("nvidia-container-cli", "--version")).stdout
    specs = (path for pattern in CDI_SPECS for path in machine.glob(pattern))
    return Toolkit(
        path=machine.which("nvidia-ctk") or machine.which("nvidia-container-cli"),
        version=version,
        library=_after("lib-version:", told) or _after("version:", told) or version,
        has_wrapper=machine.is_file(WRAPPER),
        cdi_specs=tuple(path for path in specs if CDI_KIND.search(machine.read_text(path))),
    )


def choose_way(toolkit: Toolkit, engines: Sequence[Mapping[str, Any]]) -> Way:
    """The way for the first engine that works (else the first that is there), in the order that NVIDIA's Makefile has.

    ``engines`` as the state ``container_engines`` of get-docker has them.
    """
    for engine in sorted(engines, key=lambda one: not one["is_usable"]):
        if engine["name"] == "apptainer":
            return _way("nv", "Apptainer uses the driver of the host", engine)
        if engine["name"] == "podman" and toolkit.cdi_specs:
            return _way("cdi", f"Podman, with {toolkit.cdi_specs[0]}", engine)
        if engine["name"] == "docker" and toolkit.is_there:
            return _docker_way(toolkit, engine)
    return Way("", "", "", "")


def _docker_way(toolkit: Toolkit, engine: Mapping[str, Any]) -> Way:
    version = str(engine["version"])
    if toolkit.has_wrapper:
        return _way("nvidia-docker", f"{WRAPPER} is there", engine)
    if versions.is_within(version, FIRST_DOCKER_WITH_GPUS):
        return _way("gpus", f"Docker {version} has --gpus", engine)
    return _way("runtime", f"Docker {version} is older than {FIRST_DOCKER_WITH_GPUS}, which brought --gpus", engine)


def asked_way(name: str, toolkit: Toolkit, engines: Sequence[Mapping[str, Any]]) -> Way | str:
    """The way that the caller asks for, or why it cannot be had."""
    wanted = WAYS[name][0]
    fitting = [one for one in engines if one["name"] == wanted or (not wanted and one["name"] != "apptainer")]
    if not fitting:
        there = ", ".join(str(one["name"]) for one in engines) or "none"
        return f"--way={name} needs {wanted or 'docker or podman'}, found: {there}"
    engine = fitting[0]
    if name == "nvidia-docker" and not toolkit.has_wrapper:
        return f"--way={name} needs {WRAPPER}, which is not installed"
    if name == "gpus" and not versions.is_within(str(engine["version"]), FIRST_DOCKER_WITH_GPUS):
        return f"--way={name} needs Docker {FIRST_DOCKER_WITH_GPUS}, found {engine['version']}"
    if name == "cdi" and not toolkit.cdi_specs:
        return f"--way={name} needs a CDI specification, but none offers nvidia.com/gpu in {', '.join(CDI_SPECS)}"
    if (
        name == "cdi"
        and engine["name"] == "docker"
        and not versions.is_within(str(engine["version"]), FIRST_DOCKER_WITH_CDI)
    ):
        return f"--way={name} needs Docker {FIRST_DOCKER_WITH_CDI}, found {engine['version']}"
    return _way(name, "asked for", engine)


def _way(name: str, reason: str, engine: Mapping[str, Any]) -> Way:
    _, program, arguments = WAYS[name]
    return Way(name, program if name == "nvidia-docker" else str(engine["program"]), arguments, reason)


def _after(word: str, text: str) -> str:
    found = re.search(rf"\b{re.escape(word)}\s*(\d+(?:\.\d+)+)", text)
    return found[1] if found else ""
