"""Rules of the recipe get-nvidia-driver: from what is seen and asked to findings.

Why the fabric manager: on systems with NVSwitch it sets up the links between the GPUs, and ends at its start when its
version is not exactly the loaded driver's (Fabric Manager User Guide, NVIDIA); then CUDA does not start either.
Packages are usually installed by branch only, so an upgrade can part the two.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from crowdperf.call.values import is_yes, text_of
from crowdperf.machine import versions
from crowdperf.machine.findings import Command, Finding, Level

from . import install
from .probe import Seen

PARTED = "Driver/library version mismatch"
"""What NVML says when the loaded module and the libraries are of two drivers."""


FIRST_CAPABILITY = "7.5"
"""Turing's: NVIDIA's v0.7 submission asks for Turing or Ampere."""


class AskError(Exception):
    """What is asked makes no sense; the text says what is allowed."""


class DriverRequest(NamedTuple):
    """What is asked of the driver; empty: anything will do."""

    minimum: str = ""
    expected: str = ""
    branch: int | None = None
    must_match: bool = False
    shows_plan: bool = False


def asked_in(values: Mapping[str, Any], env: Mapping[str, Any]) -> DriverRequest:
    """What the inputs, and the versions in CM's env, ask. Raises AskError."""
    minimum = max(values["min"] or "", text_of(env, "CM_VERSION_MIN"), key=versions.key).removesuffix(".xx")
    expected = values["expected"] or text_of(env, "CM_VERSION")
    in_name = re.search(r"cuda_[\d.]+_(\d+\.\d+(?:\.\d+)?)_linux", expected)
    expected = in_name[1] if in_name else expected
    for name, value in (("min", minimum), ("expected", expected)):
        if value and not re.fullmatch(r"\d+(\.\d+){0,3}", value):
            raise AskError(
                f"--{name}={value} is not the version of a driver.\n"
                "  allowed: numbers with dots, such as 510 or 535.54.03\n"
                "  hint: cm run script --tags=get,nvidia,driver,_min.510"
            )
    flags = [is_yes(env.get(f"CM_NVIDIA_{name}")) for name in ("FABRIC_MANAGER_MUST_MATCH", "DRIVER_SHOW_PLAN")]
    return DriverRequest(minimum, expected, values["branch"], *flags)


def judge(seen: Seen, asked: DriverRequest) -> tuple[Finding, ...]:
    """What is found, in the order in which it matters."""
    if not seen.driver.is_working:
        return (_missing(seen, asked),)
    found = [Finding("driver", "ok", _driver_text(seen))]
    found += _old_gpus(seen)
    found += _minimum(seen, asked)
    found += _expected(seen, asked)
    found += _fabric_manager(seen, asked)
    return tuple(found)


def _driver_text(seen: Seen) -> str:
    driver = seen.driver
    cuda = f", runs CUDA up to {driver.cuda_version}" if driver.cuda_version else ""
    return f"{driver.version}{cuda}, {len(driver.gpus)} GPU{'' if len(driver.gpus) == 1 else 's'}"


def _missing(seen: Seen, asked: DriverRequest) -> Finding:
    """Why no driver answers, told by the nearest cause."""
    driver = seen.driver
    wanted = asked.branch or install.branch(asked.minimum, asked.expected)
    loaded = f"driver {driver.module_version} is loaded" if driver.module_version else ""
    if seen.jetson:
        text = (
            f"{seen.jetson}: its driver is part of {seen.jetson_linux}, without a version number or its own nvidia-smi"
        )
        return Finding("driver", "problem", text)
    if seen.host.is_wsl:
        text = driver.trouble or "WSL shows no driver"
        advice = "install NVIDIA's driver in Windows, none in WSL, then in Windows: wsl --shutdown"
        return Finding("driver", "problem", text, fixes=(Command(line=advice),))
    if seen.host.container and not driver.trouble:
        text = f"this is a container ({seen.host.container}) that was given no GPU"
        text += (
            f", while on the host {loaded}"
            if loaded
            else ", and whether the host has a driver cannot be seen from here"
        )
        text += "" if seen.bus_gpus else ", and the bus shows no NVIDIA GPU"
        return Finding(
            "driver", "problem", text, fixes=(Command(line="start the container with: docker run --gpus all"),)
        )
    if PARTED in driver.trouble:
        text = f"{loaded or 'another driver is loaded'}, the libraries are of another one ({driver.trouble})"
        return Finding("driver", "problem", text, "module and libraries of one driver", (install.REBOOT,))
    if driver.trouble:
        fixes = (
            Command(("modprobe", "nvidia"), needs_root=True),
            Command(("dkms", "status")),
            Command(line="if dkms shows no nvidia for this kernel: {sudo}dkms autoinstall", needs_root=True),
        )
        return Finding("driver", "problem", f"nvidia-smi says: {driver.trouble}", "a loaded module", fixes)
    if loaded:
        return Finding("driver", "problem", f"{loaded}, but nvidia-smi is not on PATH", "the driver's tools as well")
    if not seen.bus_gpus:  # a driver would be of no use, so none is offered
        return Finding("driver", "problem", "no NVIDIA driver, and no NVIDIA GPU on the bus either")
    text = f"no NVIDIA driver, but on the bus: {', '.join(seen.bus_gpus)}"
    return Finding("driver", "problem", text, fixes=install.driver_plan(seen, wanted))


def _minimum(seen: Seen, asked: DriverRequest) -> list[Finding]:
    version = seen.driver.version
    if not asked.minimum:
        return []
    if versions.is_within(version, asked.minimum):
        return [Finding("minimum", "ok", f"{version} is {asked.minimum} or newer")]
    plan = install.driver_plan(seen, asked.branch or install.branch(asked.minimum))
    owner = "Windows" if seen.host.is_wsl else "the host" if seen.host.container else ""
    if owner:  # a driver that is installed in here would not be the one that runs the GPUs
        plan = (Command(line=f"the driver is {owner}'s: update it there"),)
    return [Finding("minimum", "problem", version, f"{asked.minimum} or newer", plan)]


def _old_gpus(seen: Seen) -> list[Finding]:
    old = [one for one in seen.driver.gpus if one.compute_capability and not _is_turing(one.compute_capability)]
    text = ", ".join(f"GPU {one.number} ({one.name}) has compute capability {one.compute_capability}" for one in old)
    return [Finding("GPUs", "note", text, f"{FIRST_CAPABILITY} or newer")] if old else []


def _is_turing(capability: str) -> bool:
    return versions.is_within(capability, FIRST_CAPABILITY)


def _expected(seen: Seen, asked: DriverRequest) -> list[Finding]:
    version = seen.driver.version
    if not asked.expected or versions.is_exact(version, asked.expected):
        return []
    # a newer driver runs what was made for an older one, so this is worth a line and no more
    return [Finding("expected", "note", version, asked.expected)]


def _fabric_manager(seen: Seen, asked: DriverRequest) -> list[Finding]:
    version, manager = seen.driver.version, seen.fabric_manager
    level: Level = "problem" if asked.must_match else "note"
    if not seen.needs_fabric_manager:
        extra = f"{manager} is installed, but " if manager else ""
        return [Finding("fabric manager", "ok", f"{extra}not needed: the bus shows no NVSwitch")]
    fixes = install.fabric_manager_fix(seen, version)
    switches = f"{seen.nvswitches} NVSwitch chips"
    if not manager and seen.host.container:
        text = f"cannot be seen from this container ({seen.host.container}), with {switches}"
        there = Command(line="run this recipe on the host")
        return [Finding("fabric manager", level, text, f"{version}, as the driver", (there,))]
    if not manager:
        return [Finding("fabric manager", level, f"none, with {switches}", f"{version}, as the driver", fixes)]
    if manager != version:
        text = f"fabric manager {manager}, driver {version}: it does not start with a driver of another version"
        return [Finding("fabric manager", level, text, version, (*fixes, *install.hold(seen, version)))]
    if seen.fabric_service and seen.fabric_service != "active":
        start = Command(("systemctl", "start", "nvidia-fabricmanager"), needs_root=True)
        return [
            Finding("fabric manager", level, f"{manager}, but its service is {seen.fabric_service}", "active", (start,))
        ]
    return [Finding("fabric manager", "ok", f"{manager}, exactly the driver's, for {switches}")]
