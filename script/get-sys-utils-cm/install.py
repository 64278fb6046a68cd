"""Rules of get-sys-utils-cm: the commands that install what is missing, and whether they may be run."""

from collections.abc import Sequence
from typing import NamedTuple

from crowdperf.machine import packages
from crowdperf.machine.findings import Command
from crowdperf.machine.packages import Packages
from crowdperf.machine.probe import Machine

from . import tools
from .tools import Utility

INSTALL_TIMEOUT_S = 1800.0
"""Downloads of a few hundred MB on a slow line, and dpkg's triggers."""
UPDATES = {"apt": ("apt-get", "update"), "apk": ("apk", "update")}
"""These know no package until they have a list; in a fresh container they have none. (Not pacman: its
manual warns of a new list without an upgrade of everything.)"""
APT_ENVIRONMENT = ("env", "DEBIAN_FRONTEND=noninteractive")
"""Packages ask questions otherwise (debconf(7)), for example tzdata."""


class ToolSearch(NamedTuple):
    """What was found: each tool with its place (empty: missing), and how this user gets packages."""

    places: tuple[tuple[Utility, str], ...]
    packages: Packages
    tool: str

    @property
    def missing(self) -> tuple[Utility, ...]:
        """The tools that are not there."""
        return tuple(one for one, place in self.places if not place)

    @property
    def without_package(self) -> tuple[Utility, ...]:
        """The missing tools for which no package of this system is known."""
        return tuple(one for one in self.missing if not one.package(self.tool))


def look(machine: Machine, wanted: Sequence[Utility]) -> ToolSearch:
    """Looks for the tools on a machine."""
    found = packages.look(machine)
    tool = found.tool or ("brew" if machine.which("brew") else "")
    return ToolSearch(tuple((one, tools.place(machine, one)) for one in wanted), found, tool)


def commands(seen: ToolSearch) -> tuple[Command, ...]:
    """The commands that install the missing tools on this system, in their order; none where none is known."""
    names = tuple(dict.fromkeys(name for one in seen.missing if (name := one.package(seen.tool))))
    if not names:
        return ()
    if seen.tool == "brew":
        return (Command(("brew", "install", *names)),)
    if seen.packages.tool is None:
        return ()
    start = packages.INSTALL[seen.packages.tool]
    if seen.tool == "apt":
        start = (*APT_ENVIRONMENT, *start, "--no-install-recommends")
    update = UPDATES.get(seen.tool)
    return (
        *((Command(update, needs_root=True),) if update else ()),
        Command((*start, *names), needs_root=True),
    )


def may_sudo(machine: Machine) -> bool:
    """Whether sudo works without a password; asks it, and it asks nobody (``-n``)."""
    return machine.user.uid != 0 and bool(machine.which("sudo")) and machine.run(("sudo", "-n", "true")).code == 0
