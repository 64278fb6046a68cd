"""Packages that are installed for a Python of a machine, told by the folders of their metadata.

Layouts: PEP 376 and the PyPA "Recording installed projects" specification (``NAME-VERSION.dist-info``), Debian's
``dist-packages``, ``pyvenv.cfg`` (Python documentation of venv).
"""

import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

from crowdperf.machine.probe import Machine

NAMES = ("site-packages", "dist-packages")


class Package(NamedTuple):
    """An installed Python package: normalised name (PEP 503), version, and the folder of its metadata."""

    name: str
    version: str
    folder: str


def default_python(machine: Machine) -> str:
    """The Python 3 that PATH gives, empty when none."""
    return machine.which("python3") or machine.which("python")


def find(machine: Machine, text: str, start: str) -> str:
    """The Python that a user names by path (relative ones from ``start`` on) or by program name; empty: not there.

    Without a name, the default one.
    """
    if not text:
        return default_python(machine)
    path = posixpath.join(start, text) if "/" in text else machine.which(text)
    return path if path and machine.is_file(path) else ""


def packages(machine: Machine, python: str) -> Mapping[str, Package]:
    """The packages of a Python by name; the first folder wins, as it does for imports. Empty without a Python."""
    found: dict[str, Package] = {}
    for folder in site_folders(machine, python) if python else ():
        for name in machine.names(folder):
            if told := re.fullmatch(r"(.+?)-(\d[^-]*)\.(?:dist|egg)-info", name):
                package = re.sub(r"[-_.]+", "-", told[1]).lower()
                found.setdefault(package, Package(package, told[2], f"{folder}/{name}"))
    return found


def site_folders(machine: Machine, python: str) -> tuple[str, ...]:
    """The folders that a Python's packages may lie in; a virtual environment has only its own."""
    prefix = _prefix(machine, python)
    prefixes = [prefix]
    if not machine.is_file(f"{prefix}/pyvenv.cfg"):
        home = machine.environment.get("HOME", "")
        prefixes = [f"{home}/.local" if home else "", prefix, "/usr/local" if prefix == "/usr" else ""]
    inside = [f"{one}/lib*/python3*/{name}" for one in dict.fromkeys(prefixes) if one for name in NAMES]
    return tuple(dict.fromkeys(path for pattern in inside for path in machine.glob(pattern)))


def _prefix(machine: Machine, python: str) -> str:
    """What lies above ``bin`` of a Python; one that is a wrapper (of pyenv, say) is asked."""
    prefix = python.rsplit("/bin/", 1)[0] if "/bin/" in python else ""
    if prefix and (machine.is_file(f"{prefix}/pyvenv.cfg") or machine.glob(f"{prefix}/lib*/python3*")):
        return prefix
    said = machine.run((python, "-c", "import sys; print(sys.prefix)"))
    return said.stdout.strip() if said.code == 0 else prefix


def torch_cuda_release(machine: Machine, torch: Package) -> str:
    """The CUDA release that a torch was built for, such as ``12.1``; empty for a build without CUDA."""
    site = torch.folder.rsplit("/", 1)[0]
    found = re.search(r"^cuda(?:\s*:[^=]*)?\s*=\s*['\"]([\d.]+)", machine.read_text(f"{site}/torch/version.py"), re.M)
    if found:
        return found[1]
    tag = re.search(r"\+cu(\d+)(\d)$", torch.version)
    return f"{tag[1]}.{tag[2]}" if tag else ""


def onnxruntime_cuda_major(machine: Machine, package: Package) -> str:
    """The CUDA major version that onnxruntime-gpu was built for: its extra ``cuda`` names NVIDIA's wheels for it.

    Without that in its metadata: 11 up to 1.18, 12 from 1.19 on (onnxruntime.ai, CUDA Execution Provider, 2025-07).
    """
    metadata = machine.read_text(f"{package.folder}/METADATA")
    found = re.search(r"^Requires-Dist: nvidia-cuda-runtime(?:-cu(\d+))?\s*\(?(?:[~>=]=\s*(\d+))?", metadata, re.M)
    if found and (found[1] or found[2]):
        return found[1] or found[2]
    numbers = re.match(r"(\d+)\.(\d+)", package.version)
    if not numbers:
        return ""
    return "12" if (int(numbers[1]), int(numbers[2])) >= (1, 19) else "11"
