"""Finds MLCommons' Endpoints client among the user's files, and what was installed: version and commit.

Nothing is run: the client takes 12 s of processor time to start. The version stands in its metadata
(inference_endpoint-<version>.dist-info), the commit in direct_url.json beside it (PEP 610) or in the checkout.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

PROGRAM = "inference-endpoint"
SOURCE = "https://github.com/mlcommons/endpoints"
PYTHON = "3.12"


class ClientNotFound(Exception):
    """There is no client where it was looked for; the text says where, and how to install one."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client. version and commit are empty where its environment does not say them."""

    program: Path
    version: str
    commit: str


def how_to_install() -> str:
    """Return the commands that install the client, which this project never does itself."""
    return (
        f"install it with Python {PYTHON} or later in a separate environment, then pass its folder:\n"
        f"  git clone {SOURCE} && cd endpoints\n"
        f"  python{PYTHON} -m venv .venv && .venv/bin/pip install .\n"
        "  cm run script --tags=get,mlperf,endpoints,client --path=$PWD"
    )


def find(given: Path | None, search_path: str | None = None) -> Client:
    """Return the client that `given` names, or the one on PATH; raises ClientNotFound."""
    if given is None:
        found = shutil.which(PROGRAM, path=search_path)
        if found is None:
            raise ClientNotFound(f"MLCommons' Endpoints client ({PROGRAM}) is not on PATH. {how_to_install()}")
        return _known(Path(found))
    places = [given] if given.is_file() else [given / inner / PROGRAM for inner in ("bin", ".venv/bin", ".")]
    program = next((one for one in places if one.is_file()), None)
    if program is None:
        raise ClientNotFound(f"no {PROGRAM} in {given}: neither in bin/ nor in .venv/bin/. {how_to_install()}")
    if not os.access(program, os.X_OK):
        raise ClientNotFound(f"{program} is not executable; try: chmod +x {program}")
    return _known(program)


def _known(program: Path) -> Client:
    program = program.absolute()
    prefix = program.resolve().parent.parent
    metadata = sorted(prefix.glob("lib/python3.*/site-packages/inference_endpoint-*.dist-info"))
    if not metadata:
        return Client(program, "", "")
    version = metadata[-1].name.removeprefix("inference_endpoint-").removesuffix(".dist-info")
    try:
        origin = json.loads((metadata[-1] / "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        origin = {}
    return Client(program, version, _commit(origin if isinstance(origin, dict) else {}))


def _commit(origin: dict[str, object]) -> str:
    """The commit of PEP 610's direct_url.json: as recorded, or of the folder that was installed from."""
    recorded = origin.get("vcs_info")
    if isinstance(recorded, dict):
        return str(recorded.get("commit_id") or "")
    parts = urlsplit(str(origin.get("url") or ""))
    folder = Path(unquote(parts.path))
    if parts.scheme != "file" or not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
