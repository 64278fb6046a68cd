"""Findings about the NVIDIA Container Toolkit, and the commands that install or configure it, by package tool.

Source: NVIDIA's installation guide of the toolkit (NVIDIA/cloud-native-docs, container-toolkit/install-guide.md, 2025);
Arch has a package of its own. The commands are shown, never run; they were not run by this project.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crowdperf.machine import findings, host, nvidia, packages, versions
from crowdperf.machine.findings import Command, Finding, as_root
from crowdperf.machine.probe import Machine

from .toolkit import Toolkit

REPOSITORY = "https://nvidia.github.io/libnvidia-container"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
GUIDE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
ENGINE = "engine"
MAKE_CDI = Command(("nvidia-ctk", "cdi", "generate", "--output=/etc/cdi/nvidia.yaml"), needs_root=True)


def judge(
    machine: Machine, toolkit: Toolkit, engines: Sequence[Mapping[str, Any]], minimum: str
) -> tuple[Finding, ...]:
    """What is to be said about the toolkit of a machine."""
    names = [str(one["name"]) for one in engines]
    needs_toolkit = names != ["apptainer"]
    found: list[Finding] = []
    if not toolkit.is_there:
        level: findings.Level = "problem" if needs_toolkit else "ok"
        text = "not installed" if needs_toolkit else "not installed, and Apptainer needs none"
        plan = install_plan(machine, names) if needs_toolkit else ()
        found.append(Finding("toolkit", level, text, f"{minimum} or newer" if needs_toolkit else "", plan))
    elif not versions.is_within(toolkit.library, minimum):
        text = f"libnvidia-container {toolkit.library}"
        found.append(Finding("toolkit", "problem", text, f"{minimum} or newer", install_plan(machine, names)))
    else:
        found.append(Finding("toolkit", "ok", f"libnvidia-container {toolkit.library} ({toolkit.path})"))
    found += [_engine(one, toolkit) for one in engines]
    if not engines:
        found.append(Finding(ENGINE, "note", "no container engine", "docker, podman or apptainer"))
    driver = nvidia.look(machine)
    if not driver.is_working:
        text = driver.trouble or "no NVIDIA driver answers"
        found.append(Finding("driver", "note", f"{text}, so containers will see no GPU", "a driver that shows a GPU"))
    return tuple(found)


def _engine(engine: Mapping[str, Any], toolkit: Toolkit) -> Finding:
    name = str(engine["name"])
    if not engine["is_usable"]:
        fix = Command(line="cm run script --tags=get,docker explains what to do")
        return Finding(name, "note", str(engine["trouble"]), "an engine that starts containers", (fix,))
    if name == "podman" and toolkit.is_there and not toolkit.cdi_specs:
        return Finding(name, "problem", "no CDI specification offers nvidia.com/gpu", "one", (MAKE_CDI,))
    return Finding(name, "ok", str(engine["version"]))


def install_plan(machine: Machine, engine_names: Sequence[str]) -> tuple[Command, ...]:
    """How to install the toolkit and tell the engines of it; empty where that is not known."""
    tool = packages.look(machine).tool
    if tool == "apt":
        key = f"curl -fsSL {REPOSITORY}/gpgkey | {{sudo}}gpg --dearmor -o {KEYRING}"
        source = (
            f"curl -fsSL {REPOSITORY}/stable/deb/nvidia-container-toolkit.list "
            f"| sed 's#deb https://#deb [signed-by={KEYRING}] https://#g' "
            "| {sudo}tee /etc/apt/sources.list.d/nvidia-container-toolkit.list"
        )
        commands = (
            Command(needs_root=True, line=key),
            Command(needs_root=True, line=source),
            as_root("apt-get", "update"),
            as_root("apt-get", "install", "-y", "nvidia-container-toolkit"),
        )
    elif tool in ("dnf", "yum"):
        at = f"{REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo"
        commands = (
            as_root("curl", "-fsSL", at, "-o", "/etc/yum.repos.d/nvidia-container-toolkit.repo"),
            as_root(tool, "install", "-y", "nvidia-container-toolkit"),
        )
    elif tool == "zypper":
        commands = (
            as_root("zypper", "addrepo", f"{REPOSITORY}/stable/rpm/nvidia-container-toolkit.repo"),
            as_root("zypper", "--non-interactive", "--gpg-auto-import-keys", "install", "nvidia-container-toolkit"),
        )
    elif tool == "pacman":
        commands = (as_root("pacman", "-S", "--noconfirm", "nvidia-container-toolkit"),)
    else:
        return ()
    if host.look(machine).container:
        return commands  # the daemon is the host's, and so is its configuration
    configured: tuple[Command, ...] = ()
    if "podman" not in engine_names or "docker" in engine_names:
        configure = as_root("nvidia-ctk", "runtime", "configure", "--runtime=docker")
        configured = (configure, as_root("systemctl", "restart", "docker"))
    return (*commands, *configured, *((MAKE_CDI,) if "podman" in engine_names else ()))
