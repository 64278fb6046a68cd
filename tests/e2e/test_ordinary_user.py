"""The toolchain as an ordinary user without sudo, group or terminal: each recipe ends, and writes only where asked.

Run by root, the commands run as the user 65534 (nobody); run by anybody else, as that user.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
PATIENCE_S = 120
COMMANDS = [
    "get,cuda",
    "get,cuda-devices",
    "get,cudnn",
    "get,tensorrt",
    "get,nvidia,driver",
    "get,nvidia,driver,_fabricmanager-match",
    "get,docker",
    "get,docker,_install",
    "get,nvidia,container-toolkit",
    "check,user,docker,permissions",
    "manage,nvidia,mig,_configure",
    "manage,nvidia,mig,_set-device",
    "tune,system",
    "tune,system,_apply",
    "get,scratch,disk",
    "get,mlperf,scratch,space",
    "get,sys-utils-cm",
    "install,python-venv --name=mine --version=3.99.1",
    "detect,mlperf,system",
    "doctor",
    "run,container,mlperf,_plan --recipe_tags=get,python3",
]


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder that the user owns, with a CM home and a copy of the recipes that the user may only read."""
    folder = Path(tempfile.mkdtemp(prefix="ordinary-user-"))
    try:
        for name in ("script", "src", "automation"):
            shutil.copytree(ROOT / name, folder / "crowdperf" / name)  # compiled modules too: a cm is then quicker
        shutil.copy2(ROOT / "cmr.yaml", folder / "crowdperf")
        subprocess.run(["chmod", "-R", "a+rX,go-w", str(folder)], check=True)
        for name in ("cm", "home", "work"):
            (folder / name).mkdir()
        (folder / "cm" / "repos.json").write_text(json.dumps([str(folder / "crowdperf")]), encoding="utf-8")
        if os.getuid() == 0:
            for name in ("cm", "home", "work", "cm/repos.json"):
                os.chown(folder / name, NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_user(base: Path, *words: str) -> subprocess.CompletedProcess[str]:
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CM_", "CROWDPERF"))}
    env |= {"HOME": str(base / "home"), "CM_REPOS": str(base / "cm"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*become, *words],
        cwd=base / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def written_elsewhere(base: Path, since: Path) -> list[str]:
    """What the user wrote outside the CM home and the working folder after ``since`` was made."""
    if os.getuid() == 0:
        found = subprocess.run(
            ["find", "/", "-xdev", "-user", str(NOBODY), "-newer", str(since), "-not", "-path", "/proc/*"],
            capture_output=True,
            text=True,
        ).stdout.splitlines()
    else:  # other programs of this user write too
        found = [str(path) for name in ("home", "crowdperf") for path in (base / name).rglob("*")]
        found = [path for path in found if os.lstat(path).st_mtime > since.stat().st_mtime]
    allowed = (str(base / "cm"), str(base / "work"))
    return [path for path in found if not path.startswith(allowed) and path != str(base / "home")]


@pytest.mark.full
def test_every_recipe_of_the_toolchain_ends_well_and_writes_only_where_asked(base: Path) -> None:
    cm = str(Path(sys.executable).parent / "cm")
    if as_user(base, cm, "version", "core").returncode:
        pytest.skip("an ordinary user of this system cannot run the Python of the tests")
    stamp = base / "stamp"
    stamp.touch()
    wrong = []
    for command in COMMANDS:
        done = as_user(base, cm, "run", "script", *f"--tags={command}".split(), "--quiet")
        told = done.stdout + done.stderr
        if done.returncode not in (0, 1, 2, 16) or "Traceback" in told or "internal error" in told:
            wrong.append(f"{command}: exit {done.returncode}: {told[-500:]}")
        elif done.returncode and not ("hint" in told or "fix" in told or "cm run script" in told):
            wrong.append(f"{command}: exit {done.returncode} without advice: {told[-500:]}")
    assert wrong == []
    assert written_elsewhere(base, stamp) == []
