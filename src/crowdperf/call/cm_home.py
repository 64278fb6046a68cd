"""Registers a checkout in a CM home and indexes it: ``cm_home.py CM_HOME CHECKOUT``, with a Python that has cmind.

The result is the same as that of ``cm add repo --path=CHECKOUT``. Each file is written as a whole, so that a killed
start never leaves half a file, and the checkout is registered first, so that its engine is used even if another
repository also has one. An index that cannot be parsed is removed, and cmind rebuilds it. Another copy of the same
repository (left by a checkout that was moved or copied with its home) is unregistered, because the engine refuses two.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def load(path: Path) -> object:
    """The JSON in a file, or None when it is missing or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


LOCAL_REPO = {"alias": "local", "name": "local CM repository", "uid": "9a3280b14a4285c9"}
"""What cmind 4.2.0 writes into the ``local`` repository of a new home (its config.py, ``local_repo_meta``)."""


def make_local_repo(home: Path) -> None:
    """Makes CM's ``local`` repository as a whole.

    cmind makes it at its first start, file by file, and another ``cm`` that starts at that moment fails.
    """
    repos = home / "repos"
    repos.mkdir(parents=True, exist_ok=True)
    if (repos / "local" / "cmr.yaml").is_file() and (repos / "local" / "cmr.yaml").stat().st_size > 0:
        return
    scratch = repos / f".local.{os.getpid()}"
    scratch.mkdir()
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in LOCAL_REPO.items())
    (scratch / "cmr.yaml").write_text(text, encoding="utf-8")
    try:
        os.rename(scratch, repos / "local")
    except OSError:  # it is there: from another start, or half-made by a killed one
        os.replace(scratch / "cmr.yaml", repos / "local" / "cmr.yaml")
        scratch.rmdir()


def identity(repo: Path) -> str:
    """The line of a repository's ``cmr.yaml`` with its identity, empty if the file is missing."""
    try:
        lines = (repo / "cmr.yaml").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("uid:")), "")


def register(home: Path, checkout: Path) -> None:
    """Register ``checkout`` in ``home``, unless it is registered already."""
    make_local_repo(home)
    if not isinstance(load(home / "index.json"), dict):
        (home / "index.json").unlink(missing_ok=True)
    known = load(home / "repos.json")
    paths = [path for path in known if isinstance(path, str)] if isinstance(known, list) else []
    is_same = {path: os.path.realpath(home / "repos" / path) == os.path.realpath(checkout) for path in paths}
    own = identity(checkout)
    others = [path for path in paths if not is_same[path] and (not own or identity(home / "repos" / path) != own)]
    if paths and is_same[paths[0]] and len(others) == len(paths) - 1:
        return
    scratch = home / f".repos.{os.getpid()}.json"
    scratch.write_text(json.dumps([str(checkout), *others], indent=2), encoding="utf-8")
    os.replace(scratch, home / "repos.json")
    (home / "index.json").unlink(missing_ok=True)


LEAVE_WORKING_FOLDER = "import sys; sys.path = list(filter(None, sys.path))"
"""Begins a program of `python -c`, whose imports otherwise find the Python files of the user's folder first."""
END_AT_CTRL_C = """import signal
if signal.getsignal(signal.SIGINT) is signal.default_int_handler: signal.signal(signal.SIGINT, signal.SIG_DFL)
"""
"""Begins a program in which a Ctrl-C would otherwise print the traceback of an import."""
INDEX = f"""{LEAVE_WORKING_FOLDER}
import yaml
yaml.FullLoader = getattr(yaml, "CFullLoader", yaml.FullLoader)
from cmind.cli import run
run(["version", "core"])"""
"""cmind 4.2.0 makes its index at its first start; with the parser in C in a quarter of the time (2026-11-28)."""


def make_index(home: Path) -> None:
    """Let CM make its index in ``home`` if it has none: here, because it announces that on standard output.

    A separate process, because rooms do not import CM, whose next start makes an index that is still missing.
    """
    if not (home / "index.json").is_file():
        env = {**os.environ, "CM_REPOS": str(home)}
        subprocess.run([sys.executable, "-c", INDEX], env=env, stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    try:
        register(Path(sys.argv[1]), Path(sys.argv[2]))
        make_index(Path(sys.argv[1]))
    except OSError as error:
        sys.exit(
            f"cannot set up the CM home {sys.argv[1]}: {error.strerror}: {error.filename}\n"
            "  hint: ls -ld shows its owner, df -h whether the disk is full. Then rerun the command"
        )
