"""Rules of the recipe install-cuda-prebuilt: which of NVIDIA's run files to take, and from where."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.call.values import text_of
from crowdperf.machine import toolkits, versions

TABLE = Path(__file__).with_name("run_files.json")
"""The newest run file of each release since 11.4, and 12.4.0; its source stands in the file."""
NAME = re.compile(r"cuda_(\d+\.\d+\.\d+)_[\w.]+_linux(?:_\w+)?\.run")
FIRST_WITH_INSTALLPATH = "10.1"
"""Older installers have other options (spack's recipe of cuda, see run_files.json)."""


class OrderError(Exception):
    """What is asked cannot be done. The text says why and what to try."""


class RunFile(NamedTuple):
    """A run file that this recipe knows: version, machine as ``uname -m`` has it, address, SHA-256."""

    version: str
    machine: str
    url: str
    sha256: str

    @property
    def name(self) -> str:
        """Its file name."""
        return self.url.rpartition("/")[2]


class Order(NamedTuple):
    """The run file to take: on this machine (``local``) or from ``url``. ``sha256`` is empty where nobody knows it."""

    version: str
    local: str
    url: str
    sha256: str


def known_files() -> tuple[RunFile, ...]:
    """The run files of the table."""
    return tuple(RunFile(**row) for row in json.loads(TABLE.read_text(encoding="utf-8"))["files"])


class Wish(NamedTuple):
    """What is asked; texts are empty where nothing is, ``run_file`` is None."""

    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    run_file: Path | None = None
    url: str = ""
    sha256: str = ""

    @property
    def limits(self) -> tuple[str, str, str]:
        """The exact, the oldest and the newest version that is asked for."""
        return self.exact, self.minimum, self.maximum

    @classmethod
    def of_call(cls, env: Mapping[str, Any], values: Mapping[str, Any]) -> Wish:
        """The wish in a recipe's inputs, and in the versions that the engine put into CM's env."""
        limits = (text_of(env, key) for key in ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX"))
        return cls(*limits, values["run_file"], *(values[name] or "" for name in ("url", "sha256sum")))


def order(wish: Wish, files: Sequence[RunFile], machine: str, driver_cuda: str) -> Order:
    """The run file for a wish: the user's own, else the address given, else the newest known one that fits.

    ``driver_cuda``: the newest CUDA that the driver runs, empty where none answers. Raises OrderError.
    """
    if wish.run_file:
        return _own_file(wish.run_file, wish, files)
    if wish.url:
        return _own_address(wish, files)
    fitting = [file for file in files if file.machine == machine and versions.is_asked(file.version, *wish.limits)]
    if not (wish.exact or wish.maximum) and driver_cuda:
        fitting = [file for file in fitting if versions.is_within(toolkits.release_of(file.version), "", driver_cuda)]
    if not fitting:
        raise OrderError(_nothing_known(wish, files, machine, driver_cuda))
    newest = max(fitting, key=lambda file: versions.key(file.version))
    return Order(newest.version, "", newest.url, newest.sha256)


def offline_text(chosen: Order) -> str:
    """What to do when the address cannot be reached."""
    return (
        f"{chosen.url} could not be downloaded (see above).\n"
        "  hint: fetch it on a machine with network, check it, and give it to this recipe:\n"
        f"    sha256sum {chosen.url.rpartition('/')[2]}   # must be {chosen.sha256}\n"
        f'    cm run script "get cuda _prebuilt" --run_file=/path/of/{chosen.url.rpartition("/")[2]}'
    )


def _own_file(path: Path, wish: Wish, files: Sequence[RunFile]) -> Order:
    if not path.is_file():
        raise OrderError(f"--run_file={path} is not a file.\n  hint: give NVIDIA's cuda_*_linux.run with its path")
    version = _version_in(path.name, wish)
    known = next((file.sha256 for file in files if file.name == path.name), "")
    return Order(version, str(path), "", wish.sha256 or known)


def _own_address(wish: Wish, files: Sequence[RunFile]) -> Order:
    name = wish.url.rpartition("/")[2]
    known = next((file.sha256 for file in files if file.name == name), "")
    if not (wish.sha256 or known):
        raise OrderError(f"the SHA-256 of {name} is not known here.\n  hint: add --sha256sum=64 hexadecimal digits")
    return Order(_version_in(name, wish), "", wish.url, wish.sha256 or known)


def _version_in(name: str, wish: Wish) -> str:
    """The version in the name of a run file, empty in an unusual name; raises OrderError when it is not as asked."""
    found = NAME.fullmatch(name)
    if not found:
        return ""
    if versions.key(found[1]) < versions.key(FIRST_WITH_INSTALLPATH):
        raise OrderError(
            f"{name} is older than CUDA {FIRST_WITH_INSTALLPATH}, whose installer works otherwise.\n"
            f'  hint: sh {name} --silent --toolkit --toolkitpath=FOLDER, then cm run script "get cuda" --input=FOLDER'
        )
    if not versions.is_asked(found[1], *wish.limits):
        raise OrderError(
            f"{name} is CUDA {found[1]}, required: {versions.asked_text(*wish.limits)}.\n"
            "  hint: leave --version out, or another file"
        )
    return found[1]


def _nothing_known(wish: Wish, files: Sequence[RunFile], machine: str, driver_cuda: str) -> str:
    there = ", ".join(file.version for file in files if file.machine == machine) or "none"
    asked = wish.exact or f"{wish.minimum or 'any'} to {wish.maximum or driver_cuda or 'any'}"
    return (
        f"no run file of CUDA {asked} for {machine} is known to this recipe, known are: {there}.\n"
        '  hint: cm run script "get cuda _prebuilt" --run_file=FILE\n'
        '  hint: cm run script "get cuda _prebuilt" --url=ADDRESS --sha256sum=64 hexadecimal digits'
    )
