"""The targets of `make` inside a container of Podman, on a base image with the programs of this machine; no network."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from base_image import base_image, limits
from helpers import cm_command

ROOT = Path(__file__).resolve().parents[2]
BASE, TAG = "localhost/crowdperf-test-container:1", "crowdperf-test-make"
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
