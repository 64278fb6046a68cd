"""Makes a virtual environment that has pip, also where the distribution left ensurepip out.

1. `python -m venv FOLDER`
2. if that fails: `python -m venv --without-pip FOLDER`, then pip from the first of these that works:
   a wheel of pip that Python or the distribution keeps (no network), then `pip --python FOLDER install pip` with
   the pip of the base Python or of the Python that runs CM (this asks the package index).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import names

MAKE_TIMEOUT_S = 600
CHECK_TIMEOUT_S = 60
# Where distributions keep the wheels that ensurepip would have: Debian's python-pip-whl, Fedora's python-pip-wheel.
WHEEL_FOLDERS = ("/usr/share/python-wheels",)


class VenvError(Exception):
    """The environment could not be made. The text says why and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command gave: whether it succeeded, its standard output, and the last lines that it said."""

    is_ok: bool
    output: str
    said: str


def check_place(folder: Path, *, is_entry: bool) -> None:
    """Raises VenvError when the folder is somebody else's: it exists, and not inside a cache entry that we own."""
    if folder.exists() and not is_entry:
        raise VenvError(
            f"{folder} exists already and is left as it is\nhint: run without --skip_cache, or choose another --name"
        )


def make(base: Path, folder: Path, package_manager: str, *, has_system_packages: bool = False) -> str:
    """Makes the environment with the interpreter `base`; returns the version of its Python.

    has_system_packages: whether it sees the packages of `base` too (`venv --system-site-packages`).
    A half-made environment in the same folder is replaced. Raises VenvError with the command that helps.
    """
    with _alone(folder) as lock:
        options = ("--clear", *(["--system-site-packages"] if has_system_packages else []))
        return _make([str(base), "-I", "-m", "venv", *options], folder, package_manager, lock)


def _make(command: Sequence[str], folder: Path, package_manager: str, lock: int) -> str:
    base = Path(command[0])
    whole = _run([*command, str(folder)], lock)
    python = folder / "bin" / "python3"
    tried = [f"{base} -m venv: {whole.said}"]
    if not (whole.is_ok and _has_pip(python)):
        bare = _run([*command, "--without-pip", str(folder)], lock)
        tried.append(f"{base} -m venv --without-pip: {bare.said}")
        if not bare.is_ok or not _add_pip(base, folder, tried, lock):
            minor = _python_version(base).rpartition(".")[0] or "3"
            lines = "".join(f"\n  {line}" for line in tried)
            raise VenvError(
                f"no virtual environment with pip could be made by {base}. Tried:{lines}\n"
                f"hint: {names.help_command(package_manager, minor)}, then run this again"
            )
    version = _python_version(python)
    if not version:
        raise VenvError(f'{python} was made but does not run\nhint: cm run script "get python3" --path=FOLDER')
    return version


def _add_pip(base: Path, folder: Path, tried: list[str], lock: int) -> bool:
    """Whether one of the ways to add pip worked; every way that did not is added to `tried`."""
    python = folder / "bin" / "python3"
    for command in _ways_to_pip(base, folder):
        outcome = _run(command, lock)
        if outcome.is_ok and _has_pip(python):
            return True
        tried.append(f"{' '.join(command)}: {outcome.said}")
    return False


def _ways_to_pip(base: Path, folder: Path) -> Iterator[list[str]]:
    python = folder / "bin" / "python3"
    for wheel in _pip_wheels():
        # A wheel is a zip archive, so Python runs the pip inside it.
        yield [str(python), "-I", f"{wheel}/pip", "install", "--no-index", "--disable-pip-version-check", str(wheel)]
    for runner in dict.fromkeys((str(base), sys.executable)):
        yield [runner, "-I", "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check", "pip"]


def _pip_wheels() -> list[Path]:
    """Wheels of pip on this host, newest name first: from the Python that runs CM, then from the distribution."""
    folders = [Path(folder) for folder in WHEEL_FOLDERS]
    spec = importlib.util.find_spec("ensurepip")
    if spec is not None and spec.origin is not None:
        folders.insert(0, Path(spec.origin).parent / "_bundled")
    return [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"), reverse=True)]


def _has_pip(python: Path) -> bool:
    return _run([str(python), "-I", "-m", "pip", "--version"], timeout_s=CHECK_TIMEOUT_S).is_ok


def _python_version(python: Path) -> str:
    question = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    outcome = _run([str(python), "-I", "-S", "-c", question], timeout_s=CHECK_TIMEOUT_S)
    return outcome.output.strip() if outcome.is_ok else ""


# Not crowdperf.kit.file_locks: a base recipe depends on no library of MLPerf, and this file in /tmp must not be a link.
@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Waits until nobody else makes this environment; gives the descriptor of the lock.

    The programs that make it get the descriptor too: when this process is killed and they go on, the next try waits
    for them instead of writing into the same folder beside them.
    """
    digest = hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"python-venv-{os.getuid()}-{digest}.lock"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The one before may have removed the file between our open and our lock.
        if path.exists() and os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            break
        os.close(descriptor)
    try:
        yield descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _run(command: list[str], lock: int | None = None, *, timeout_s: float = MAKE_TIMEOUT_S) -> Outcome:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env.pop("__PYVENV_LAUNCHER__", None)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
            env=env,
            pass_fds=() if lock is None else (lock,),
        )
    except subprocess.TimeoutExpired:
        return Outcome(is_ok=False, output="", said=f"no answer within {timeout_s:g} s")
    except OSError as error:
        return Outcome(is_ok=False, output="", said=f"cannot be started ({error.strerror})")
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
    said = " ".join(lines)[-400:] or f"exit code {done.returncode}"
    return Outcome(is_ok=done.returncode == 0, output=done.stdout, said=said)
