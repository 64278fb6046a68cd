"""Commands that install an NVIDIA driver and its fabric manager, by distribution. They are shown, never run.

Sources: the VirtualClient guide and its installer (packages for Debian's family, RHEL and SUSE, driver and fabric
manager by branch), Ubuntu's archive (nvidia-fabricmanager-BRANCH beside the -server driver), NVIDIA's driver
installation guide (repositories by distribution), the Arch wiki (NVIDIA). The names are from these texts: not run by
this project, and not looked up in the archives.
"""

import re

from crowdperf.machine.findings import Command, as_root

from .probe import Seen

DEFAULT_BRANCH = 550
"""The branch that the VirtualClient guide installs."""
REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos"
KEYRING = "cuda-keyring_1.1-1_all.deb"
GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
REBOOT = Command(needs_root=True, line="{sudo}reboot")


def branch(*versions: str) -> int:
    """The branch to plan for: the newest that is wanted anywhere, and no older than the default."""
    wanted = [int(found[0]) for text in versions if (found := re.match(r"\d+", text))]
    return max((*wanted, DEFAULT_BRANCH))


def driver_plan(seen: Seen, wanted: int) -> tuple[Command, ...]:
    """How to install a driver of this branch, with its fabric manager where that is needed; empty: not known."""
    tool, known = seen.packages.tool, seen.host
    if tool == "apt" and "ubuntu" in (known.distribution, *known.like):
        packages = [f"nvidia-driver-{wanted}-server", f"nvidia-dkms-{wanted}-server"]
        # both out of one archive: a fabric manager out of another is often of another version
        packages += [f"nvidia-fabricmanager-{wanted}"] if seen.needs_fabric_manager else []
        commands = (as_root("apt-get", "update"), as_root("apt-get", "install", "-y", *packages))
    elif tool == "apt":
        commands = (
            *_debian_repository(seen),
            as_root("apt-get", "install", "-y", f"cuda-drivers-{wanted}", *_meta_package(seen, wanted)),
        )
    elif tool in ("dnf", "yum") and _major(seen) in range(7, 10) and known.distribution != "fedora":
        repository = f"{REPOSITORY}/rhel{_major(seen)}/{_folder(seen)}/cuda-rhel{_major(seen)}.repo"
        stream = f"nvidia-driver:{wanted}" + ("/fm" if seen.needs_fabric_manager else "-dkms")
        commands = (
            as_root(tool, "config-manager", "--add-repo", repository),
            as_root(tool, "module", "install", "-y", stream),
        )
    elif tool == "zypper" and _major(seen) == 15:
        repository = f"{REPOSITORY}/sles15/{_folder(seen)}/cuda-sles15.repo"
        commands = (
            as_root("zypper", "addrepo", repository),
            as_root("zypper", "--non-interactive", "--gpg-auto-import-keys", "refresh"),
            as_root("zypper", "--non-interactive", "install", f"cuda-drivers-{wanted}", *_meta_package(seen, wanted)),
        )
    elif tool == "pacman":
        commands = (as_root("pacman", "-S", "--needed", "--noconfirm", "nvidia-open-dkms", "nvidia-utils"),)
    else:
        return ()
    return (*commands, *_start_fabric_manager(seen, tool), REBOOT)


def fabric_manager_fix(seen: Seen, version: str) -> tuple[Command, ...]:
    """How to get the fabric manager of exactly the driver's version; empty: not known for this distribution."""
    major = version.split(".")[0]
    tool = seen.packages.tool
    if tool == "apt":
        install = as_root("apt-get", "install", "-y", "--allow-downgrades", f"nvidia-fabricmanager-{major}={version}-*")
    elif tool in ("dnf", "yum"):
        install = as_root(tool, "install", "-y", f"nvidia-fabric-manager-{version}")
    elif tool == "zypper":
        install = as_root(
            "zypper", "--non-interactive", "install", "--oldpackage", f"cuda-drivers-fabricmanager-{major}"
        )
    else:
        return ()
    return (install, as_root("systemctl", "restart", "nvidia-fabricmanager"))


def hold(seen: Seen, version: str) -> tuple[Command, ...]:
    """How to keep an upgrade of the system from parting driver and fabric manager; Debian's family only."""
    major = version.split(".")[0]
    if seen.packages.tool != "apt":
        return ()
    return (as_root("apt-mark", "hold", f"nvidia-driver-{major}-server", f"nvidia-fabricmanager-{major}"),)


def _start_fabric_manager(seen: Seen, tool: str) -> tuple[Command, ...]:
    if not seen.needs_fabric_manager or tool == "pacman":  # Arch has no package of it
        return ()
    return (as_root("systemctl", "enable", "nvidia-fabricmanager"),)


def _meta_package(seen: Seen, wanted: int) -> tuple[str, ...]:
    return (f"cuda-drivers-fabricmanager-{wanted}",) if seen.needs_fabric_manager else ()


def _debian_repository(seen: Seen) -> tuple[Command, ...]:
    address = f"{REPOSITORY}/debian{seen.host.version or 12}/{_folder(seen)}/{KEYRING}"
    return (
        Command(("curl", "-fsSLO", address)),
        as_root("dpkg", "-i", KEYRING),
        as_root("apt-get", "update"),
    )


def _folder(seen: Seen) -> str:
    return "sbsa" if seen.architecture in ("aarch64", "arm64") else "x86_64"


def _major(seen: Seen) -> int:
    found = re.match(r"\d+", seen.host.version)
    return int(found[0]) if found else 0
