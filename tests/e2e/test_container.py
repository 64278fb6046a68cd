"""The targets of `make` inside a container of Podman, on a base image with the programs of this machine; no network."""

import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import cmind
import pytest
from helpers import cm_command

ROOT = Path(__file__).resolve().parents[2]
BASE, TAG = "localhost/crowdperf-test-container:1", "crowdperf-test-make"
PROGRAMS = (
    "sh bash env make git cat chmod chown cp dirname echo grep id ln ls mkdir mv readlink rm sleep test touch uname"
)
LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "tkinter", "__pycache__"}
ENGINE_PACKAGES = (
    "cmind yaml _yaml [Pp]y[Yy][Aa][Mm][Ll] requests certifi charset_normalizer idna urllib3 giturlparse packaging "
    "setuptools _distutils_hack pkg_resources wheel tabulate"
)
PATIENCE_S = 300


@pytest.fixture
def base(tmp_path: Path) -> Iterator[None]:
    """The base image in Podman's store; afterwards it and the images made of it are removed."""
    if os.getuid() != 0 or not shutil.which("podman"):
        pytest.skip("needs podman, and root")
    base_image(tmp_path / "base.tar")
    words = ("podman", "import", "--quiet", "--change", "ENV PYTHONPATH=/opt/site")
    subprocess.run([*words, str(tmp_path / "base.tar"), BASE], check=True, capture_output=True)
    yield
    for one in (f"mlperf-inference:{TAG}", f"mlperf-inference:{TAG}-latest", BASE):
        subprocess.run(["podman", "rmi", "--force", one], capture_output=True, check=False)


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
            ("usr/bin/cm", "#!/usr/bin/env python3\nimport sys\nfrom cmind.cli import run\nsys.exit(run())\n"),
        ):
            row = tarfile.TarInfo(name)
            row.size, row.mode = len(text), 0o755
            tar.addfile(row, io.BytesIO(text.encode()))


def limits() -> str:
    """Podman's own limits are larger than those of a test that runs in a container itself."""
    rows = (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
    return " ".join(f"--ulimit={name}={min(resource.getrlimit(row)[1], 4096)}" for name, row in rows)


def run_inside(folder: Path, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`_headless` with Podman, called in `folder`."""
    words = ("run", "script", "--tags=run,container,mlperf,_headless", "--engine=podman", f"--base_image={BASE}")
    given = ("--build_args=--network=none", f"--docker_args=--network=none {limits()}", f"--docker_tag={TAG}")
    env = {**os.environ, "CM_REPOS": str(home), "CROWDPERF_CACHE": str(home / "cache")}
    env.pop("MLPERF_SCRATCH_PATH", None)
    return subprocess.run(
        cm_command([*words, *given, *more]),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.full
@pytest.mark.usefixtures("base")
def test_make_works_in_a_container_of_the_workspace_and_without_one(tmp_path: Path) -> None:
    home, scratch, work = tmp_path / "home", tmp_path / "scratch", tmp_path / "W"
    for folder in (home, scratch, home / "cache/kept"):
        folder.mkdir(parents=True)
    (home / "repos.json").write_text(json.dumps([str(ROOT)]), encoding="utf-8")
    (home / "cache/kept/file").write_text("of the host", encoding="utf-8")
    line = ["run", "script", "--tags=run,mlperf,make,_init", f"--path={work}", "--submitter=NVIDIA"]
    subprocess.run(
        cm_command(line), env={**os.environ, "CM_REPOS": str(home)}, check=True, capture_output=True, timeout=PATIENCE_S
    )
    workspace = work / "closed/NVIDIA"
    (scratch / "linked").symlink_to(home / "cache/kept/file")
    for folder in (tmp_path, scratch, work, workspace.parent, workspace):  # root's stand-in inside has to write there
        folder.chmod(0o777)
    commands = ["make info", "make link_dirs", f"cat {scratch}/linked", "cm run script --tags=get,python3 --quiet"]
    done = run_inside(workspace, home, f"--scratch={scratch}", f"--commands={json.dumps(commands)}")
    assert done.returncode == 0, done.stderr
    assert re.search(r"submitter +NVIDIA", done.stdout)
    assert "of the host" in done.stdout
    assert os.readlink(workspace / "build/data") == f"{scratch}/data"
    made = list((home / "containers").glob("*/*/entry.json")) + list(
        (home / "containers").glob("*/*/cm-cached-state.json")
    )
    assert made, "the container's entries are on the host, at the same path"
    done = run_inside(tmp_path, home, '--commands=["make info"]')
    assert done.returncode == 0, done.stderr
    assert re.search(r"submitter +container", done.stdout)
