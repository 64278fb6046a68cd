"""What a machine is: operating system, kernel, container or not, WSL, the vendor's name of it, the cloud it is in.

Sources: those of os_files.py; DMI in /sys/class/dmi/id (kernel); Amazon names the instance type as product (EC2 user
guide, "Identify EC2 instances"); Azure's chassis asset tag (Microsoft, "How to identify a VM in Azure").
"""

from typing import NamedTuple

from crowdperf.machine.os_files import CONTAINER_FILES, container_by_group, os_release
from crowdperf.machine.probe import Machine

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


def container(machine: Machine) -> str:
    """The manager of the container that this is, ``other`` when only that is known, empty outside of containers."""
    for path, name in CONTAINER_FILES.items():
        if machine.is_file(path) or machine.is_dir(path):
            return name
    by_group = container_by_group(machine.read_text("/proc/1/cgroup"))
    return by_group or ("other" if machine.environment.get("container") else "")
