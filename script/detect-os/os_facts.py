"""Rules of the recipe detect-os: from the text of system files to CM's env keys. Nothing here reads the system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crowdperf.machine.os_files import CONTAINER_FILES, container_by_group, os_release

# Folders the dynamic loader trusts without configuration: ld.so(8), section "DESCRIPTION".
TRUSTED_LIBRARY_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
# Distribution (ID, else a word of ID_LIKE in os-release) to its package manager.
PACKAGE_MANAGERS: Mapping[str, str] = {
    "debian": "apt",
    "ubuntu": "apt",
    "rhel": "dnf",
    "fedora": "dnf",
    "centos": "dnf",
    "arch": "pacman",
    "sles": "zypper",
    "suse": "zypper",
    "opensuse": "zypper",
    "alpine": "apk",
    "macos": "brew",
}
# Package manager to its (install, update the lists) command, without sudo.
PACKAGE_MANAGER_COMMANDS: Mapping[str, tuple[str, str]] = {
    "apt": ("DEBIAN_FRONTEND=noninteractive apt-get install -y", "apt-get update -y"),
    "dnf": ("dnf install -y", "dnf update -y"),
    "yum": ("yum install -y --skip-broken", "yum update -y"),
    "pacman": ("pacman -Sy --noconfirm", "pacman -Syu"),
    "zypper": ("zypper install -y", "zypper update -y"),
    "apk": ("apk add", "apk update"),
    "brew": ("brew install", "brew update"),
}
SIXTY_FOUR_BIT_MACHINES = ("x86_64", "amd64", "aarch64", "arm64", "ppc64", "ppc64le", "s390x", "riscv64", "loongarch64")


@dataclass(frozen=True, slots=True, kw_only=True)
class OsIdentity:
    """What a system calls itself, all in lower case; "" where it does not say."""

    type: str
    flavor: str
    flavor_like: str
    version: str


def parse_os_release(text: str) -> OsIdentity:
    """The identity in the text of an os-release file (format: os-release(5))."""
    values = os_release(text)
    return OsIdentity(
        type="linux",
        flavor=values.get("ID", "linux").lower(),
        flavor_like=values.get("ID_LIKE", "").lower(),
        version=values.get("VERSION_ID", "").lower(),
    )


def package_manager(identity: OsIdentity) -> str:
    """The package manager of a distribution, "" when it is not one that we know."""
    if identity.flavor == "amzn":  # Amazon Linux 2 has yum, 2023 and later have dnf
        return "yum" if identity.version.split(".")[0] in ("1", "2", "2018") else "dnf"
    for word in (identity.flavor, *identity.flavor_like.split()):
        known = PACKAGE_MANAGERS.get(word) or PACKAGE_MANAGERS.get(word.split("-")[0])
        if known:
            return known
    return ""


def env_of_identity(identity: OsIdentity) -> dict[str, str]:
    """CM's keys for the identity."""
    return {
        "CM_HOST_OS_TYPE": identity.type,
        "CM_HOST_OS_FLAVOR": identity.flavor,
        "CM_HOST_OS_FLAVOR_LIKE": identity.flavor_like,
        "CM_HOST_OS_VERSION": identity.version,
    }


def env_of_machine(machine: str, python_bits: int) -> dict[str, str]:
    """CM's keys for the kind of processor (`uname -m`) and for the width of this Python's pointers in bits."""
    return {
        "CM_HOST_OS_MACHINE": machine,
        "CM_HOST_PLATFORM_FLAVOR": machine,
        "CM_HOST_OS_BITS": "64" if machine.lower() in SIXTY_FOUR_BIT_MACHINES else "32",
        "CM_HOST_PYTHON_BITS": str(python_bits),
    }


def env_of_package_manager(name: str) -> dict[str, str]:
    """CM's keys for a package manager; empty when there is none that we know, so that no command is guessed."""
    if not name:
        return {}
    install, update = PACKAGE_MANAGER_COMMANDS[name]
    return {
        "CM_HOST_OS_PACKAGE_MANAGER": name,
        "CM_HOST_OS_PACKAGE_MANAGER_INSTALL_CMD": install,
        "CM_HOST_OS_PACKAGE_MANAGER_UPDATE_CMD": update,
    }


def container_kind(*, marker_files: Sequence[str], container_variable: str, init_cgroup: str) -> str:
    """The kind of container told by marker files that exist, the variable `container` and /proc/1/cgroup; "" = none."""
    by_file = next((CONTAINER_FILES[path] for path in marker_files if path in CONTAINER_FILES), "")
    return container_variable or by_file or container_by_group(init_cgroup)


def parse_linker_folders(text: str) -> tuple[str, ...]:
    """The SEARCH_DIR folders in the output of `ld --verbose`, in order, each once."""
    found = re.findall(r'SEARCH_DIR\("=?([^"]+)"\)', text)
    return tuple(dict.fromkeys(found))


def parse_loader_config(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders and the include patterns in the text of an ld.so.conf file (format: ldconfig(8))."""
    folders: list[str] = []
    patterns: list[str] = []
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if line.startswith("include "):
            patterns.extend(line.split()[1:])
        elif line.startswith("/"):
            folders.append(line)
    return tuple(folders), tuple(patterns)


def uname_line(system: str, node: str, release: str, version: str, machine: str) -> str:
    """The line of `uname -a`, made of its parts."""
    parts = [system, node, release, version, machine]
    if system == "Linux":
        parts.append("GNU/Linux")
    return " ".join(parts)
