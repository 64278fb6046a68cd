"""What a machine is: operating system, kernel, container or not, WSL, the vendor's name of it, the cloud it is in.

Sources: os-release(5); /.dockerenv (moby), /run/.containerenv (podman-run(1)), https://systemd.io/CONTAINER_INTERFACE;
DMI in /sys/class/dmi/id (kernel); Amazon names the instance type as product (EC2 user guide, "Identify EC2 instances");
Azure's chassis asset tag (Microsoft, "How to identify a VM in Azure").
"""

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from crowdperf.machine.probe import Machine

CONTAINER_FILES: Mapping[str, str] = {
    "/.dockerenv": "docker",
    "/run/.containerenv": "podman",
    "/.singularity.d": "apptainer",
    "/run/systemd/container": "systemd",
}
CGROUP_WORDS: Mapping[str, str] = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "containerd": "containerd",
    "lxc": "lxc",
}
AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
DMI = "/sys/class/dmi/id"


class Host(NamedTuple):
    """A machine as its files tell it; texts are empty where they do not. ``container`` and ``cloud``: empty for none.

    ``distribution`` and ``like`` are ID and ID_LIKE of os-release; ``instance_type`` is known on EC2 only.
    """

    distribution: str
    like: tuple[str, ...]
    version: str
    pretty_name: str
    kernel: str
    container: str
    is_wsl: bool
    vendor: str
    product: str
    cloud: str
    instance_type: str


def look(machine: Machine) -> Host:
    """What a machine is."""
    release = os_release(machine.read_text("/etc/os-release") or machine.read_text("/usr/lib/os-release"))
    kernel = machine.read_text("/proc/sys/kernel/osrelease").strip()
    vendor, product = (machine.read_text(f"{DMI}/{name}").strip() for name in ("sys_vendor", "product_name"))
    cloud = "aws" if vendor == "Amazon EC2" else ""
    if machine.read_text(f"{DMI}/chassis_asset_tag").strip() == AZURE_ASSET_TAG:
        cloud = "azure"
    return Host(
        distribution=release.get("ID", "").lower(),
        like=tuple(release.get("ID_LIKE", "").lower().split()),
        version=release.get("VERSION_ID", ""),
        pretty_name=release.get("PRETTY_NAME", "") or release.get("NAME", ""),
        kernel=kernel,
        container=container(machine),
        is_wsl="microsoft" in kernel.lower(),
        vendor=vendor,
        product=product,
        cloud=cloud,
        instance_type=product if cloud == "aws" and "." in product else "",
    )


def os_release(text: str) -> Mapping[str, str]:
    """The fields of an os-release text, unquoted; lines that are none are left out."""
    fields: dict[str, str] = {}
    for name, value in re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE):
        try:
            fields[name] = " ".join(shlex.split(value))
        except ValueError:
            continue
    return fields


def container(machine: Machine) -> str:
    """The manager of the container that this is, ``other`` when only that is known, empty outside of containers."""
    for path, name in CONTAINER_FILES.items():
        if machine.is_file(path) or machine.is_dir(path):
            return name
    groups = machine.read_text("/proc/1/cgroup")
    by_group = next((name for word, name in CGROUP_WORDS.items() if word in groups), "")
    return by_group or ("other" if machine.environment.get("container") else "")
