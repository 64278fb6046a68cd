"""Hooks of the recipe detect-os: put the facts of the operating system into env and state.

Everything is read from files and from Python itself; the one process that may be started is `ld --verbose`, for the
linker's folders. The rules are in `os_facts.py`.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import functools
import os
import platform
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

from . import os_facts

OS_RELEASE_FILES = (Path("/etc/os-release"), Path("/usr/lib/os-release"))
LOADER_CONFIG = Path("/etc/ld.so.conf")
LINKER_TIMEOUT_S = 20
CONTAINER_VARIABLE = "container"  # in lower case: https://systemd.io/CONTAINER_INTERFACE


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets all keys of the recipe; returns CM's answer."""
    system = platform.system()
    if system not in ("Linux", "Darwin"):
        return {
            "return": 1,
            "error": f"detect-os knows Linux and macOS, this system calls itself {system!r}. "
            "hint: run in a Linux container, or under WSL.",
        }
    identity = _identity(system)
    env = i["env"]
    env.update(os_facts.env_of_identity(identity))
    env.update(os_facts.env_of_machine(platform.machine(), struct.calcsize("P") * 8))
    env["CM_HOST_OS_KERNEL_VERSION"] = platform.release()
    env["CM_HOST_SYSTEM_NAME"] = platform.node()
    env.update(os_facts.env_of_package_manager(os_facts.package_manager(identity)))
    kind = _container_kind()
    env["CM_HOST_OS_CONTAINER"] = "yes" if kind else "no"
    env["CM_HOST_OS_CONTAINER_KIND"] = kind
    glibc_version = _glibc_version()
    if glibc_version:
        env["CM_HOST_OS_GLIBC_VERSION"] = glibc_version
    if system == "Linux":
        env["+CM_HOST_OS_DEFAULT_LIBRARY_PATH"] = list(_library_folders())
    uname = platform.uname()
    i["state"]["os_uname_machine"] = uname.machine
    i["state"]["os_uname_all"] = os_facts.uname_line(
        uname.system, uname.node, uname.release, uname.version, uname.machine
    )
    return {"return": 0}


plan = preprocess


def _identity(system: str) -> os_facts.OsIdentity:
    """The name and version of the distribution. The macOS branch was never run on a Mac."""
    if system == "Darwin":
        return os_facts.OsIdentity(type="darwin", flavor="macos", flavor_like="", version=platform.mac_ver()[0])
    for path in OS_RELEASE_FILES:
        if path.is_file():
            return os_facts.parse_os_release(path.read_text(encoding="utf-8", errors="replace"))
    return os_facts.OsIdentity(type="linux", flavor="", flavor_like="", version="")


def _glibc_version() -> str:
    """The version of the C library in use, "" where it is not glibc (for example musl)."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""
    name, _, version = text.partition(" ")
    return version if name == "glibc" else ""


def _container_kind() -> str:
    """The kind of container this process runs in, "" outside of one."""
    try:
        cgroup = Path("/proc/1/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cgroup = ""
    return os_facts.container_kind(
        marker_files=tuple(path for path in os_facts.CONTAINER_FILES if Path(path).exists()),
        container_variable=os.environ.get(CONTAINER_VARIABLE, ""),
        init_cgroup=cgroup,
    )


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    """The folders the linker searches by default; without a linker, those of the dynamic loader's configuration."""
    linker = shutil.which("ld")
    if linker:
        try:
            done = subprocess.run(
                [linker, "--verbose"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LINKER_TIMEOUT_S,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return _loader_folders()
        folders = os_facts.parse_linker_folders(done.stdout) if done.returncode == 0 else ()
        if folders:
            return folders
    return _loader_folders()


def _loader_folders() -> tuple[str, ...]:
    """The folders named in ld.so.conf and the files it includes, then the trusted ones that exist."""
    folders: list[str] = []
    queue = [LOADER_CONFIG]
    while queue:
        path = queue.pop(0)
        if not path.is_file():
            continue
        listed, patterns = os_facts.parse_loader_config(path.read_text(encoding="utf-8", errors="replace"))
        folders.extend(listed)
        for pattern in patterns:
            base = Path(pattern) if pattern.startswith("/") else path.parent / pattern
            queue.extend(sorted(base.parent.glob(base.name)))
    folders.extend(folder for folder in os_facts.TRUSTED_LIBRARY_FOLDERS if Path(folder).is_dir())
    return tuple(dict.fromkeys(folders))
