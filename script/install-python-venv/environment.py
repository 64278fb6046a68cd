"""Makes a virtual environment that has pip, also where the distribution left ensurepip out.

`python -m venv --without-pip FOLDER`, then pip from the first of these that works:

1. a wheel of pip that Python or the distribution keeps, unpacked (no network). ensurepip would take the same wheel; it
   costs 5 s of processor time more, because it compiles all files of pip and setuptools. If the Python that runs this
   has the same pip, that is copied with what is compiled of it, which saves up to 3 s more (measured 2026-11-28),
2. `python -m venv FOLDER`, which runs ensurepip,
3. `pip --python FOLDER install pip` with the pip of the base Python or of the Python that runs CM (this asks the
   package index).

tools/prepare.sh runs this file as a program: `python environment.py PYTHON FOLDER`.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAKE_TIMEOUT_S = 600
CHECK_TIMEOUT_S = 60
# Where distributions keep the wheels that ensurepip would have: Debian's python-pip-whl, Fedora's python-pip-wheel.
WHEEL_FOLDERS = ("/usr/share/python-wheels",)
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


class VenvError(Exception):
    """The environment could not be made. The text says why and what to try."""


class BadPlace(VenvError):
    """No environment can be made in a folder of that name."""


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
    if not _is_utf8(folder):
        raise BadPlace(
            f"no virtual environment can be made in {str(folder)!a}: Python's venv needs a path that is valid UTF-8\n"
            "hint: move the checkout to such a folder, or set CROWDPERF_CACHE to one"
        )
    with _alone(folder) as lock:
        options = ("--clear", *(["--system-site-packages"] if has_system_packages else []))
        return _make([str(base), "-I", "-m", "venv", *options], folder, package_manager, lock)


def _is_utf8(path: Path) -> bool:
    try:
        return os.fsencode(path) == str(path).encode()
    except UnicodeError:
        return False


def _make(command: Sequence[str], folder: Path, package_manager: str, lock: int) -> str:
    base = Path(command[0])
    bare = _run([*command, "--without-pip", str(folder)], lock)
    tried = [f"{base} -m venv --without-pip: {bare.said}"]
    if not bare.is_ok or not _add_pip(command, folder, tried, lock):
        minor = _python_version(base).rpartition(".")[0] or "3"
        lines = "".join(f"\n  {line}" for line in tried)
        raise VenvError(
            f"no virtual environment with pip could be made by {base}. Tried:{lines}\n"
            f"hint: {help_command(package_manager, minor)}, then run this again"
        )
    python = folder / "bin" / "python3"
    version = _python_version(python)
    if not version:
        raise VenvError(f'{python} was made but does not run\nhint: cm run script "get python3" --path=FOLDER')
    _quote_path(folder)
    return version


def _quote_path(folder: Path) -> None:
    """Writes the path of an environment into bin/activate as a shell reads it.

    Python 3.11.7 puts it between double quotes as it is; releases with the fix of CVE-2024-9287 quote it themselves.
    """
    activate = folder / "bin" / "activate"
    if activate.is_file():
        text = activate.read_text(encoding="utf-8")
        activate.write_text(text.replace(f'VIRTUAL_ENV="{folder}"', f"VIRTUAL_ENV={shlex.quote(str(folder))}"), "utf-8")


def _add_pip(command: Sequence[str], folder: Path, tried: list[str], lock: int) -> bool:
    """Whether one of the ways to add pip worked; every way that did not is added to `tried`."""
    base, python = Path(command[0]), folder / "bin" / "python3"
    wheels = _pip_wheels(base)
    for source in [*_compiled_pip(wheels[:1]), *wheels]:
        try:
            _place_pip(source, folder)
        except (OSError, shutil.Error, zipfile.BadZipFile) as error:
            tried.append(f"unpack {source}: {error}")
            continue
        if _has_pip(python):
            return True
        tried.append(f"unpack {source}: its pip does not run")
    whole = [*command, str(folder)]
    runners = dict.fromkeys((str(base), sys.executable))
    asked = (
        [runner, "-I", "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check", "pip"]
        for runner in runners
    )
    for way in (whole, *asked):
        outcome = _run(way, lock)
        if outcome.is_ok and _has_pip(python):
            return True
        tried.append(f"{' '.join(way)}: {outcome.said}")
        if way is whole:  # it leaves no environment where it fails, or half of one
            _run([*command, "--without-pip", str(folder)], lock)
    return False


def _compiled_pip(wheels: Sequence[Path]) -> list[Path]:
    """The metadata folder of this Python's own pip, if it is the pip of one of the wheels; else nothing."""
    found = [
        place
        for place in Path(sysconfig.get_path("purelib")).glob("pip-*.dist-info")
        if place.parent.name == "site-packages"  # Debian changes the one in dist-packages
        and any(wheel.name.startswith(place.name.removesuffix(".dist-info") + "-") for wheel in wheels)
    ]
    return found if len(found) == 1 else []


def _place_pip(source: Path, folder: Path) -> None:
    """Puts a pip into a new environment, with its commands: of a wheel, or beside the metadata folder of another one.

    Raises OSError, shutil.Error and BadZipFile.
    """
    site = next(folder.glob("lib/python*/site-packages"))
    if source.suffix == ".dist-info":
        for name in ("pip", source.name):
            shutil.copytree(source.parent / name, site / name)
    else:
        with zipfile.ZipFile(source) as archive:
            archive.extractall(site)
    scripts = folder / "bin"
    for name in ("pip", "pip3"):
        # A path after #! may hold no blank and 127 bytes at most, so a shell reads the line and Python passes over it.
        (scripts / name).write_text(
            f"#!/bin/sh\n'''exec' {shlex.quote(str(scripts / 'python3'))} \"$0\" \"$@\"\n' '''\n"
            "import sys\n\nfrom pip._internal.cli.main import main\n\nsys.exit(main())\n",
            encoding="utf-8",
        )
        (scripts / name).chmod(0o755)


def _pip_wheels(base: Path) -> list[Path]:
    """Wheels of pip on this host: of the base Python, of the one that runs CM, of the distribution."""
    spec = importlib.util.find_spec("ensurepip")
    own = spec.origin if spec is not None else None
    question = "import ensurepip; print(ensurepip.__file__)"  # words: ok P23
    asked = _run([str(base), "-I", "-S", "-c", question], timeout_s=CHECK_TIMEOUT_S)
    origins = [asked.output.strip() if asked.is_ok else None, own]
    folders = [*(Path(origin).parent / "_bundled" for origin in origins if origin), *map(Path, WHEEL_FOLDERS)]
    wheels = [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"), reverse=True)]
    return list(dict.fromkeys(wheels))


def _has_pip(python: Path) -> bool:
    return _run([str(python), "-I", "-m", "pip", "--version"], timeout_s=CHECK_TIMEOUT_S).is_ok


def _python_version(python: Path) -> str:
    question = "import sys; print('%d.%d.%d' % sys.version_info[:3])"  # words: ok P23
    outcome = _run([str(python), "-I", "-S", "-c", question], timeout_s=CHECK_TIMEOUT_S)
    return outcome.output.strip() if outcome.is_ok else ""


# Not crowdperf.kit.file_locks: a base recipe depends on no library of MLPerf, and this file in /tmp must not be a link.
@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Waits until nobody else makes this environment; gives the descriptor of the lock.

    The programs that make it get the descriptor too: when this process is killed and they go on, the next try waits
    for them instead of writing into the same folder beside them.
    """
    digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
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


def help_command(package_manager: str, minor_version: str) -> str:
    """The one command that makes pip installable for Python `minor_version` ("3.11") on this distribution."""
    command = HELP_COMMANDS.get(package_manager, "python{minor} -m ensurepip --default-pip")
    return command.format(minor=minor_version)


def main(words: Sequence[str]) -> int:
    """`environment.py PYTHON FOLDER` makes the environment FOLDER; where it cannot, it prints why and returns 1, for a
    folder that cannot hold one 2."""
    python, folder = words
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, each child counts as a success
    try:
        make(Path(python), Path(folder), "")
    except BadPlace as error:
        print(str(error).replace("\nhint:", "\n  hint:"), file=sys.stderr)
        return 2
    except VenvError as error:
        print(str(error).partition("\nhint:")[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
