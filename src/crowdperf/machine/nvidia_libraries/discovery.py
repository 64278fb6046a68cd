"""All cuDNN or TensorRT of a machine: what crowdperf.machine.toolkits finds, and what variables and the caller name."""

import re
from collections.abc import Iterable, Sequence

from crowdperf.machine import toolkits
from crowdperf.machine.nvidia_libraries.kinds import Kind
from crowdperf.machine.nvidia_libraries.request import Request, RequestError
from crowdperf.machine.probe import Machine

LIBRARY_FOLDER = re.compile(r"/lib(64|32)?(/[a-z0-9_]+-linux-gnu)?$")


def installed(
    machine: Machine, kind: Kind, asked: Request, library_folders: Sequence[str]
) -> tuple[toolkits.Library, ...]:
    """All installed ones: in usual places, in ``library_folders`` and where variables point.

    Where the request names paths, only what lies there. Raises RequestError for a path that is not there.
    """
    if asked.only_in:
        return in_places(machine, kind, asked.only_in)
    homes = [machine.environment[name] for name in kind.home_variables if machine.environment.get(name)]
    folders = dict.fromkeys(machine.real_path(folder) for folder in library_folders if machine.is_dir(folder))
    homes += [prefix_of(folder) for folder in folders]
    found = list(kind.installed(machine, tuple(home for home in dict.fromkeys(homes) if home != "/")))
    found += [one for folder in folders for one in bare(machine, kind, folder)]
    return _without_repeats(machine, found)


def in_places(machine: Machine, kind: Kind, paths: Iterable[str]) -> tuple[toolkits.Library, ...]:
    """What lies in the places named: each a home, a folder of libraries, or a library."""
    found: list[toolkits.Library] = []
    for path in paths:
        folder = path.rpartition("/")[0] or "/" if machine.is_file(path) else path
        if not machine.is_dir(folder):
            raise RequestError(f'{path} does not exist.\n  hint: cm run script "{kind.tags}" finds existing ones')
        homes = [home for home in (folder, prefix_of(machine.real_path(folder))) if home != "/"]
        here = [one for one in kind.installed(machine, homes) if one.prefix in homes]
        found += here or bare(machine, kind, folder)
    return _without_repeats(machine, found)


def bare(machine: Machine, kind: Kind, folder: str) -> list[toolkits.Library]:
    """The library that lies in a folder without headers, by the number in its file name."""
    number = toolkits.newest_number(machine, folder, kind.library)
    return [toolkits.Library(number, folder, "", "", folder, f"{kind.library}.{number}")] if number else []


def prefix_of(folder: str) -> str:
    """The folder that a folder of libraries belongs to: /usr of /usr/lib/x86_64-linux-gnu; others as they are."""
    return LIBRARY_FOLDER.sub("", folder.rstrip("/")) or "/"


def library_file(machine: Machine, kind: Kind, lib: str) -> str:
    """The file of the library in a folder: ``libcudnn.so``, else the one with the longest number; empty when none."""
    paths = machine.glob(f"{lib}/{kind.library}*") if lib else ()
    plain = f"{lib}/{kind.library}"
    return plain if plain in paths and machine.is_file(plain) else max(paths, key=len, default="")


def _without_repeats(machine: Machine, found: Iterable[toolkits.Library]) -> tuple[toolkits.Library, ...]:
    """One of each that is the same library by another name; the one with headers stays."""
    kept: dict[str, toolkits.Library] = {}
    for one in found:
        key = machine.real_path(one.lib) if one.lib else machine.real_path(one.include)
        if key not in kept or (one.header and not kept[key].header):
            kept[key] = one
    return tuple(kept.values())
