"""`pip install .`: what is in the wheel, what it requires, and that its commands need nothing else."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import crowdperf

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
SOURCE = CHECKOUT / "src"
REPOSITORY = "crowdperf/repository/"
MACHINES = "tests/machine/fixtures"
RECORDED = "crowdperf/machine/recorded/"
BUILT_FROM = '{"commit": "0123456789abcdef0123456789abcdef01234567", "is_modified": false}\n'


def list_of(name: str) -> list[str]:
    """The texts of a list in pyproject.toml."""
    found = re.search(rf"^{re.escape(name)} = \[(.*?)\]$", PROJECT, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return re.findall(r'"([^"]+)"', found[1])


def files_of_source() -> list[str]:
    """What belongs into a wheel; pages are for readers of the repository."""
    found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.suffix not in (".md", ".pyc") and "egg-info" not in str(path))


def test_every_kind_of_file_is_in_the_wheel() -> None:
    names = [name for name in files_of_source() if not name.endswith(".py")]
    assert [name for name in names if not any(Path(name).match(pattern) for pattern in list_of('"*"'))] == []


def test_the_extra_web_is_what_the_recipe_installs() -> None:
    recipe = (CHECKOUT / "script" / "get-mlperf-results-server" / "requirements.txt").read_text(encoding="utf-8")
    pinned = {line.removesuffix("\\").strip().replace(" ;", ";") for line in recipe.splitlines() if "==" in line}
    assert set(list_of("web")) <= pinned


@pytest.mark.full
def test_pip_builds_it_from_src_and_its_commands_run(trees, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(SOURCE, source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "cmr.yaml"):
        shutil.copy(CHECKOUT / name, source)
    (source / "built-from.json").write_text(BUILT_FROM)  # as in an unpacked sdist: there is no clone around it
    for name in ("automation", "script"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CHECKOUT / MACHINES, source / MACHINES)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    flags = ["--no-index", "--no-deps"]  # PyYAML is for results of endpoints
    subprocess.run(
        [sys.executable, "setup.py", "-q", "sdist"], cwd=source, check=True, capture_output=True, timeout=300
    )
    (sdist,) = (source / "dist").glob("crowdperf-*.tar.gz")
    assert sdist.name == f"crowdperf-{crowdperf.__version__}.tar.gz"
    build = [*pip, "wheel", "--no-build-isolation", *flags, "-w", str(tmp_path), str(sdist)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("crowdperf-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert archive.read(f"{REPOSITORY}built-from.json").decode() == BUILT_FROM
    bundled = {name.removeprefix(REPOSITORY) for name in names if name.startswith(REPOSITORY)}
    assert sorted(name for name in names if not name.startswith((REPOSITORY, RECORDED))) == files_of_source()
    assert f"{RECORDED}a100-sxm4x8/machine.json" in names
    assert {"cmr.yaml", "automation/script/module.py", "script/get-cuda/_cm.yaml"} <= bundled
    install = [*pip, "install", *flags, "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    call = [str(target / "bin" / "check-mlperf-submission"), str(trees.folder / "open"), "--version", "v6.1"]
    environment = {"PYTHONPATH": str(target), "PATH": os.environ["PATH"]}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "verdict: accepted")

    version = [str(target / "bin" / "crowdperf"), "--version"]
    home = {**environment, "HOME": str(tmp_path / "home")}  # cmind is that of these tests
    call = [str(target / "bin" / "crowdperf"), "plan", "--scenario=Offline", "-v"]
    for _ in range(2):  # the second one finds its repository
        done = subprocess.run(call, cwd=tmp_path, env=home, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "get-mlperf-loadgen" in done.stdout and "would fail" not in done.stdout.partition("\n\n")[2]
        assert done.stderr.startswith("crowdperf cm plan script --tags=run,mlperf,inference --scenario=Offline -v\n")
    recorded = [*call[:2], "get,cuda-devices", "--machine=t4x1"]
    done = subprocess.run(recorded, cwd=tmp_path, env=home, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "would fail" not in done.stdout, done.stdout + done.stderr
    done = subprocess.run(version, env=home, capture_output=True, text=True, check=True, timeout=60)
    assert f"crowdperf {crowdperf.__version__}+g0123456789ab" in done.stdout
    assert len(list((tmp_path / "home/.local/share/crowdperf/repository").iterdir())) == 1
