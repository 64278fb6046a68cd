"""The image of Containerfile, built by Podman on a base image with the programs of this machine, and used by no root.

Needs the package index that pip is set up with.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from base_image import base_image, limits
from tree_builder import build

ROOT = Path(__file__).resolve().parents[2]
BASE, IMAGE, HOME = "localhost/crowdperf-test-base:1", "localhost/crowdperf-test-image:1", "crowdperf-test-home"
LIBRARIES = (
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libm.so.6",
)
PROGRAMS = "awk cut date find getconf head mktemp nproc sed sort stat tail tee tr wc"
"""python:3.12-slim has them. Those of base_image.py are there too."""
PATIENCE_S = 600
SHORT = ("--scenario=Offline", "--min_duration_ms=300")


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def access(folder: Path) -> list[str]:
    """Words for Podman, for the same package index as here: the settings of pip, and the files in them."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    values = dict(re.findall(r"^[^\s=]*\.([a-z-]+)='(.*)'$", told.stdout, re.MULTILINE))
    (folder / "pip.conf").write_text("".join(["[global]\n", *(f"{key} = {one}\n" for key, one in values.items())]))
    paths = {one.removeprefix("file://") for text in values.values() for one in re.split(r"\s+|\\n", text)}
    mounted = [one.removesuffix("/simple") for one in sorted(paths) if one.startswith("/") and os.path.exists(one)]
    return ["--network=host", f"--volume={folder / 'pip.conf'}:/etc/pip.conf:ro",
            *(f"--volume={one}:{one}:ro" for one in mounted), *limits().split()]  # fmt: skip


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The image in Podman's store, and the words that give its containers the index; afterwards all is removed."""
    if os.getuid() != 0 or not shutil.which("podman"):
        pytest.skip("needs podman, and root")
    folder = tmp_path_factory.mktemp("image")
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = [match[1] for one in LIBRARIES if (match := re.search(rf"{re.escape(one)} .*=> (\S+)", listed))]
    found += [path for name in PROGRAMS.split() if (path := shutil.which(name, path="/usr/bin:/bin"))]
    base_image(folder / "base.tar", [*map(Path, found)])
    assert podman("import", "--quiet", str(folder / "base.tar"), BASE).returncode == 0
    given = access(folder)
    built = podman("build", *given, f"--build-arg=BASE={BASE}", "--tag", IMAGE, str(ROOT))
    assert built.returncode == 0, built.stderr[-3000:]
    yield given
    for last in (["rmi", "--force", IMAGE, BASE], ["volume", "rm", "--force", HOME]):
        podman(*last)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    tmp_path.chmod(0o777)
    return tmp_path


def inside(words: list[str], work: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A verb of crowdperf in a container, with its home in a volume and its current folder here."""
    return podman("run", "--rm", *words, f"--volume={HOME}:/home/user", f"--volume={work}:/work", IMAGE, *command)


def results_in(work: Path) -> dict[str, Any]:
    newest = max((work / "results").glob("*/results.json"))
    content: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    return content


@pytest.mark.full
def test_the_image_measures_digits_and_an_own_network_and_checks_a_tree(words: list[str], work: Path) -> None:
    done = inside(words, work, "run", *SHORT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert results_in(work)["passed"] is True
    owner = (work / "results").stat().st_uid
    assert owner == 1000, "the program inside is not root"
    network = work / "mine.onnx"
    lonely = [*limits().split(), "--network=none"]
    copied = inside([*lonely, "--entrypoint=sh"], work, "-c", "cp $(find ~/.cache -name digits.onnx) /work/mine.onnx")
    assert copied.returncode == 0, copied.stderr
    done = inside(lonely, work, "run", f"--model_path=/work/{network.name}", *SHORT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert results_in(work)["model"] == "own-onnx"
    build(work / "tree", "open")
    done = inside(lonely, work, "check", "/work/tree", "--version=v6.1")
    assert "verdict: " in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0, done.stdout[-3000:]
    done = inside(lonely, work, "run", "get,cuda-devices", "--machine=t4x1")
    assert done.returncode == 0 and "recorded machine" in done.stdout, done.stderr[-3000:]
