"""A container image of this machine's own files, for tests with Podman and without a registry."""

import io
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import cmind

PROGRAMS = (
    "sh bash env make git cat chmod chown cp dirname echo grep id ln ls mkdir mv readlink rm sleep test touch uname"
)
LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "tkinter", "__pycache__"}
ENGINE_PACKAGES = (
    "cmind yaml _yaml [Pp]y[Yy][Aa][Mm][Ll] requests certifi charset_normalizer idna urllib3 giturlparse packaging "
    "setuptools _distutils_hack pkg_resources wheel tabulate"
)


def libraries(program: Path) -> list[Path]:
    """The shared libraries that a program or module is linked with."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(name) for name in re.findall(r"(/\S+) \(0x", told)]


def base_image(archive: Path, more: Sequence[Path] = ()) -> None:
    """Writes a root file system: programs, this Python, the engine's packages, a package tool that is a stub, and more
    files."""
    python, standard = Path(sys.executable).resolve(), Path(os.__file__).parent
    found = [Path(path) for name in PROGRAMS.split() if (path := shutil.which(name, path="/usr/bin:/bin"))]
    found += [python, *Path(sys.base_prefix).glob("lib/libpython*.so*")]
    found += [
        one for one in standard.rglob("*") if one.is_file() and not LEFT_OUT & set(one.relative_to(standard).parts)
    ]
    found += more
    linked = [one for one in found if one.suffix == ".so" or standard not in one.parents]
    found += [library for one in linked for library in libraries(one)]
    with tarfile.open(archive, "w") as tar:
        for folder, mode in (("tmp", 0o1777), ("etc", 0o755), ("usr", 0o755), ("usr/bin", 0o755)):
            row = tarfile.TarInfo(folder)
            row.type, row.mode = tarfile.DIRTYPE, mode
            tar.addfile(row)
        for name, target in (("bin", "usr/bin"), ("usr/bin/python3", str(python))):
            row = tarfile.TarInfo(name)
            row.type, row.linkname = tarfile.SYMTYPE, target
            tar.addfile(row)
        for one in dict.fromkeys(found):
            name = str(one).replace("/bin/", "/usr/bin/", 1) if str(one).startswith("/bin/") else str(one)
            tar.add(os.path.realpath(one), name.lstrip("/"), recursive=False)
        packages = Path(cmind.__file__).parents[1]
        for name in ENGINE_PACKAGES.split():
            for folder in (*packages.glob(name), *packages.glob(f"{name}-*.dist-info")):
                tar.add(folder, f"opt/site/{folder.name}")
        for name, text in (
            ("usr/bin/apk", "#!/bin/sh\nexit 0\n"),
            ("opt/cm/bin/cm", "#!/usr/bin/env python3\nimport sys\nfrom cmind.cli import run\nsys.exit(run())\n"),
        ):
            row = tarfile.TarInfo(name)
            row.size, row.mode = len(text), 0o755
            tar.addfile(row, io.BytesIO(text.encode()))


def limits() -> str:
    """Podman's own limits are larger than those of a test that runs in a container itself."""
    rows = (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
    return " ".join(f"--ulimit={name}={min(resource.getrlimit(row)[1], 4096)}" for name, row in rows)
