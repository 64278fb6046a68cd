"""Finds the Python interpreters of a host and asks each what it is. Nothing is imported or installed by asking."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import versions

ASK_TIMEOUT_S = 30
# Searched after PATH, pyenv and uv, for shells with a short PATH. The last two: manylinux images and builds by hand.
USUAL_FOLDERS = (
    "/usr/local/bin",
    "/usr/bin",
    "/opt/homebrew/bin",
    "/opt/conda/bin",
    "/opt/python*/bin",
    "/opt/python/*/bin",
)
# Runs in the interpreter that is asked, so it is written for any Python 3.
_QUESTION = (
    "import sys\n"
    "v = sys.version_info\n"
    "stage = {'alpha': 'a', 'beta': 'b', 'candidate': 'rc'}.get(v[3], '')\n"
    "print('%d.%d.%d%s' % (v[0], v[1], v[2], '%s%d' % (stage, v[4]) if stage else ''))\n"
    "print(sys.executable)\n"
)

Identity = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """An interpreter that runs. `path` starts it directly: where a shim was asked, it is what the shim starts."""

    path: Path
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A file that looks like an interpreter but is none, and why."""

    reason: str


def in_folders(folders: Iterable[Path]) -> Iterator[Path]:
    """The programs in these folders named like a Python 3: python3, then python3.N (newest first), then python.

    Of pyenv's folder of shims only python3 and python: what the others would start is found in its versions.
    """
    for folder in folders:
        try:
            names = {entry.name for entry in folder.iterdir()}
        except OSError:
            continue
        numbered = [int(found[1]) for name in names if (found := re.fullmatch(r"python3\.(\d+)", name))]
        if folder.name == "shims" and os.path.isdir(folder.parent / "versions"):
            numbered = []
        wanted = ["python3", *(f"python3.{minor}" for minor in sorted(numbered, reverse=True)), "python"]
        for name in wanted:
            path = folder / name
            if name in names and os.path.isfile(path) and os.access(path, os.X_OK):
                yield path


def on_this_host(process_env: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Candidates in the order of PATH, then pyenv's and uv's versions (newest first), then the usual folders."""
    yield from in_folders(Path(text) for text in process_env.get("PATH", "").split(os.pathsep) if text)
    for root, pattern in _managed(process_env, home):
        found = [(told[1], folder) for folder in _glob(root, "*") if (told := re.fullmatch(pattern, folder.name))]
        named = [(versions.sort_key(version), folder) for version, folder in found if _is_version(version)]
        yield from in_folders(folder / "bin" for _, folder in sorted(named, reverse=True))
    for text in USUAL_FOLDERS:
        yield from in_folders(_glob(Path("/"), text.lstrip("/")) if "*" in text else [Path(text)])


def _managed(process_env: Mapping[str, str], home: Path) -> Iterator[tuple[Path, str]]:
    """The folders in which pyenv and uv keep versions, with a pattern that finds the version in a folder's name.

    uv: "Python versions" and "Storage" of docs.astral.sh/uv; names such as ``cpython-3.10.8-linux-x86_64-gnu``.
    """
    yield Path(process_env.get("PYENV_ROOT") or home / ".pyenv") / "versions", r"(3\..*)"
    data = Path(process_env.get("XDG_DATA_HOME") or home / ".local" / "share")
    yield Path(process_env.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python"), r"cpython-(3\.[^-+]*)-.*"


def _glob(root: Path, pattern: str) -> list[Path]:
    """The sorted paths that fit; none where a folder may not be read."""
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def identity(path: Path) -> Identity:
    """What makes two paths the same interpreter: the real file, and the virtual environment it is called through."""
    for folder in (path.parent.parent, path.parent):
        if os.path.isfile(folder / "pyvenv.cfg"):
            return (os.path.realpath(path), os.path.realpath(folder))
    return (os.path.realpath(path), "")


def ask(path: Path) -> Interpreter | Unusable:
    """What an interpreter says it is. It is run with -I -S: PYTHONHOME, PYTHONPATH and site packages have no say."""
    try:
        done = subprocess.run(
            [str(path), "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=ASK_TIMEOUT_S,
            check=False,
            env=_clean(os.environ),
        )
    except subprocess.TimeoutExpired:
        return Unusable(reason=f"did not answer within {ASK_TIMEOUT_S} s")
    except OSError as error:
        return Unusable(reason=f"cannot be started ({error.strerror})")
    lines = done.stdout.split("\n")
    if done.returncode != 0 or len(lines) < 2 or not _is_version(lines[0]):
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return Unusable(reason=f"does not run as Python 3 (exit code {done.returncode}, {' '.join(said[:1])[:200]})")
    real = Path(lines[1])
    is_direct = not os.path.isfile(real) or os.path.realpath(real) == os.path.realpath(path)
    return Interpreter(path=path if is_direct else real, version=lines[0])


def _clean(process_env: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in process_env.items()
        if not key.startswith("PYTHON") and key != "__PYVENV_LAUNCHER__"
    }


def _is_version(text: str) -> bool:
    try:
        return versions.sort_key(text)[0] == 3
    except ValueError:
        return False
