"""The table tools.csv: which tools, how to tell that one is there, and in which package each distribution has it.

Tools are looked for by program or file, never by package name: a tool that came another way is there too. The choice
follows the lists of cm4mlops' recipe of this name (e1d5c7cf of 2025-03-13), without editors and Python packages, and so
do most names of packages; the others are those of packages.debian.org, packages.fedoraproject.org, openSUSE Leap 15,
archlinux.org/packages, pkgs.alpinelinux.org and formulae.brew.sh. A package that Red Hat or SUSE keep outside of their
default repositories is left out, because one unknown name fails the whole command. Only apt's names were tried by us.
"""

import csv
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crowdperf.machine.probe import Machine

LIBRARY_FOLDERS = ("/usr/lib*", "/usr/lib/*", "/lib*", "/lib/*", "/opt/homebrew/lib", "/usr/local/lib")
HEADER_FOLDERS = ("/usr/include", "/usr/include/*", "/usr/local/include", "/opt/homebrew/include")


class Utility(NamedTuple):
    """A tool: any of the programs, headers or libraries tells that it is there.

    ``packages`` by package tool (apt, dnf, zypper, pacman, apk, brew); yum has dnf's. ``pip`` is the package of PyPI
    that brings the program without root's rights.
    """

    name: str
    programs: tuple[str, ...]
    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    pip: str
    packages: Mapping[str, str]

    def package(self, tool: str) -> str:
        """The package of a distribution, empty when none is known."""
        return self.packages.get("dnf" if tool == "yum" else tool, "")


def _read(path: Path) -> tuple[Utility, ...]:
    """The rows of the table; names in one cell are separated by blanks, an empty package is one that is left out."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            Utility(
                name=row.pop("name"),
                programs=tuple(row.pop("programs").split()),
                headers=tuple(row.pop("headers").split()),
                libraries=tuple(row.pop("libraries").split()),
                pip=row.pop("pip"),
                packages=row,
            )
            for row in csv.DictReader(file)
        )


TABLE = _read(Path(__file__).with_name("tools.csv"))
KNOWN: Mapping[str, Utility] = {row.name: row for row in TABLE}


class ToolError(Exception):
    """A tool that the table does not have; the text names those that it has."""


def named(names: Sequence[str]) -> tuple[Utility, ...]:
    """The tools of these names, each once; ``all`` and ``none`` are understood. Raises ToolError."""
    words = tuple(dict.fromkeys(word for word in names if word != "none"))
    if "all" in words:
        return TABLE
    unknown = [word for word in words if word not in KNOWN]
    if unknown:
        raise ToolError(
            f"no tool is called {', '.join(unknown)}\n  known: all, {', '.join(KNOWN)}\n  hint: --tools=git,cmake"
        )
    return tuple(KNOWN[word] for word in words)


def place(machine: Machine, one: Utility) -> str:
    """Where a tool is, empty when it is missing."""
    found = next((path for name in one.programs if (path := machine.which(name))), "")
    if found:
        return found
    patterns = [posixpath.join(folder, name) for name in one.headers for folder in HEADER_FOLDERS]
    patterns += [posixpath.join(folder, name) for name in one.libraries for folder in LIBRARY_FOLDERS]
    return next((path for pattern in patterns for path in machine.glob(pattern)), "")
