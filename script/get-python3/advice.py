"""How a version of Python that is missing can be had: exact commands for the user, none of which is run.

Commands as in the documents of pyenv ("Install additional Python versions") and uv ("Installing a specific version");
names of packages as Debian, Fedora, openSUSE and Homebrew build them. A distribution has few versions, so its command
stands last.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from .versions import Limits

PACKAGES: Mapping[str, str] = {
    "apt-get": "sudo apt-get install -y python{minor} python{minor}-venv",
    "dnf": "sudo dnf install -y python{minor}",
    "zypper": "sudo zypper install -y python{joined}",
    "brew": "brew install python@{minor}",
}
"""Package tool -> the command for a minor version such as 3.10."""
PROGRAMS = ("pyenv", "uv", *PACKAGES)


def ways(limits: Limits, available: Container[str]) -> tuple[str, ...]:
    """The lines that tell how to get a version within the limits with the programs that are available."""
    minor = limits.minor
    if not minor:
        return ()
    version = limits.exact if limits.exact.count(".") == 2 else minor
    lines = [f"  or get {version}, then rerun the same command (nothing is built or installed automatically):"]
    if "pyenv" in available:
        lines.append(f"    pyenv install {version}    # builds it from source, needs a compiler and headers")
    uv = "uv" if "uv" in available else "python3 -m venv uv-venv && uv-venv/bin/pip install uv && uv-venv/bin/uv"
    lines.append(f"    {uv} python install {version}    # a finished build, no root")
    package_tool = next((name for name in PACKAGES if name in available), "")
    if package_tool:
        command = PACKAGES[package_tool].format(minor=minor, joined=minor.replace(".", ""))
        lines.append(f"    {command}    # if the distribution has {minor}, in its own patch version")
    return tuple(lines)
