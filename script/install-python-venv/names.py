"""Rules of the recipe install-python-venv: names of environments, and the command that helps on a distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_NAME = "venv"
# Package manager -> the command that gives a Python the parts that its distribution left out.
# Debian and Ubuntu ship ensurepip in python3.N-venv (packages.debian.org/bookworm/python3.11-venv), Fedora and openSUSE
# ship pip as python3-pip, Arch as python-pip, Alpine as py3-pip.
HELP_COMMANDS: Mapping[str, str] = {
    "apt": "sudo apt-get install -y python{minor}-venv",
    "dnf": "sudo dnf install -y python3-pip",
    "yum": "sudo yum install -y python3-pip",
    "zypper": "sudo zypper install -y python3-pip",
    "pacman": "sudo pacman -S --noconfirm python-pip",
    "apk": "sudo apk add py3-pip",
}


class BadName(Exception):
    """A name that cannot be the name of an environment."""


def folder_name(name: str) -> str:
    """The folder and tag of an environment: its name in lower case, "venv" for none.

    Raises BadName for a name that is not letters, digits, '.', '_' and '-'.
    """
    lower = name.strip().lower() or DEFAULT_NAME
    if not re.fullmatch(r"[a-z0-9_][a-z0-9._-]{0,99}", lower):
        raise BadName(
            f"{name!r} cannot name an environment; allowed are letters, digits, '.', '_' and '-', "
            'at most 100\nhint: cm run script "install python-venv" --name=my-venv'
        )
    return lower


def venv_id(created_ms: int) -> str:
    """Eleven hexadecimal digits that tell environments of one name apart, from the time in ms since 1970.

    They count down: cache entries are found in the order of their tags, so the newest of a name comes first, and one
    that was damaged and made again never hides the new one.
    """
    return f"{(1 << 44) - 1 - created_ms:011x}"


def help_command(package_manager: str, minor_version: str) -> str:
    """The one command that makes pip installable for Python `minor_version` ("3.11") on this distribution."""
    command = HELP_COMMANDS.get(package_manager, "python{minor} -m ensurepip --default-pip")
    return command.format(minor=minor_version)
