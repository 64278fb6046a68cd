"""The package tool of a machine, whether its user may act as root, and the exact commands to show.

Nothing here runs a command. The tool is the first of a list of programs that is there: programs, not names of
distributions, because a derived one has the tool of its parent. Commands as the tools' manual pages have them.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from crowdperf.machine import host
from crowdperf.machine.probe import Machine

Tool = Literal["apt", "dnf", "yum", "zypper", "pacman", "apk"]
Rights = Literal["root", "sudo", "maybe", "none"]
PROGRAMS: Mapping[Tool, str] = {
    "apt": "apt-get",
    "dnf": "dnf",
    "yum": "yum",
    "zypper": "zypper",
    "pacman": "pacman",
    "apk": "apk",
}
INSTALL: Mapping[Tool, tuple[str, ...]] = {
    "apt": ("apt-get", "install", "-y"),
    "dnf": ("dnf", "install", "-y"),
    "yum": ("yum", "install", "-y"),
    "zypper": ("zypper", "--non-interactive", "install"),
    "pacman": ("pacman", "-S", "--noconfirm"),
    "apk": ("apk", "add"),
}
BY_DISTRIBUTION: Mapping[str, Tool] = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "yum",
    "suse": "zypper",
    "sles": "zypper",
    "arch": "pacman",
    "alpine": "apk",
}
ADMIN_GROUPS = ("sudo", "wheel", "admin", "google-sudoers")
"""Groups that the usual sudoers file of Debian, Red Hat, older Ubuntu and Google Cloud images lets act as root."""


class Packages(NamedTuple):
    """How this user gets packages: the tool (empty: none known) and whether root's rights are there.

    ``rights``: ``root`` is root; ``sudo`` has sudo and a group that may use it; ``maybe`` has sudo, but none of these
    groups (sudoers can only be read by root); ``none`` has no sudo.
    """

    tool: Tool | None
    rights: Rights

    def install(self, names: Mapping[str, Sequence[str]]) -> str:
        """The command that installs packages, by tool or ``""`` for all others; empty when there is none to tell."""
        wanted = names.get(self.tool or "", names.get("", ()))
        return self.as_root((*INSTALL[self.tool], *wanted)) if self.tool and wanted else ""

    def as_root(self, words: Sequence[str]) -> str:
        """A command that needs root, as this user has to write it; without sudo it is one for an administrator."""
        text = shlex.join(words)
        return text if self.rights in ("root", "none") else f"sudo {text}"


def look(machine: Machine) -> Packages:
    """The package tool and rights of this machine's user."""
    tool = next((name for name, program in PROGRAMS.items() if machine.which(program)), None)
    if tool is None:
        known = host.look(machine)
        tool = next(
            (BY_DISTRIBUTION[word] for word in (known.distribution, *known.like) if word in BY_DISTRIBUTION), None
        )
    return Packages(tool, rights(machine))


def rights(machine: Machine) -> Rights:
    """Whether this user is root, has sudo, may have it, or has none; asks no password and runs nothing."""
    user = machine.user
    if user.uid == 0:
        return "root"
    if not machine.which("sudo"):
        return "none"
    return "sudo" if set(ADMIN_GROUPS) & set(user.groups) else "maybe"
