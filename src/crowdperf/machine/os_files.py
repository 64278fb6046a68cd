"""What files of a system say: its distribution, and the container that it is. Every chain loads this for detect-os.

Sources: os-release(5); /.dockerenv (moby), /run/.containerenv (podman-run(1)), https://systemd.io/CONTAINER_INTERFACE.
"""

import re
import shlex
from collections.abc import Mapping

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


def os_release(text: str) -> Mapping[str, str]:
    """The fields of an os-release text, unquoted, also where a quote does not end; other lines are left out."""
    fields: dict[str, str] = {}
    for name, value in re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE):
        try:
            fields[name] = " ".join(shlex.split(value))
        except ValueError:
            fields[name] = value.strip("\"'")
    return fields


def container_by_group(groups: str) -> str:
    """The manager of a container by the words of /proc/1/cgroup (cgroup version 1), or empty."""
    return next((name for word, name in CGROUP_WORDS.items() if word in groups), "")
