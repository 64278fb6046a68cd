"""The steps that get-cudnn and get-tensorrt have in common; the only module here that changes the current folder.

What get-cudnn and get-tensorrt give alike: lines of the story, the error when nothing fits.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine import toolkits
from crowdperf.machine.nvidia_libraries import archive, discovery, load, selection
from crowdperf.machine.nvidia_libraries.kinds import Kind
from crowdperf.machine.nvidia_libraries.request import Request, RequestError, asked_in
from crowdperf.machine.nvidia_libraries.selection import Choice
from crowdperf.machine.probe import Machine


def library_folders(env: Mapping[str, Any]) -> list[str]:
    """The folders that the loader of this system searches, as detect-os tells them."""
    told = env.get("+CM_HOST_OS_DEFAULT_LIBRARY_PATH", [])
    return [str(folder) for folder in told] if isinstance(told, list) else []


def state_of(kind: Kind, choice: Choice) -> list[dict[str, Any]]:
    """All that were looked at, best first, with what is to be said of each."""
    return [
        {
            "version": one.library.version,
            "version_source": one.library.version_source,
            "lib": one.library.lib,
            "include": one.library.include,
            "is_chosen": one is choice.chosen,
            "says": one.text(kind),
        }
        for one in choice.judged
    ]


def not_found(kind: Kind, asked: Request, choice: Choice, more: tuple[str, ...]) -> str:
    """The error when none fits: what was seen or where was looked, and the commands to try, ``more`` the last ones."""
    if choice.judged:
        lines = [f"no matching {kind.name}; required: {asked.limits_text}. Seen:"]
        lines += [f"  {one.text(kind)}" for one in choice.judged]
    elif asked.only_in:
        lines = [f"no {kind.name} ({kind.library}) in {', '.join(asked.only_in)}."]
    else:
        places = "next to CUDA, in /usr, /usr/local and /opt, in LD_LIBRARY_PATH, " + ", ".join(kind.home_variables)
        lines = [f"no {kind.name} ({kind.library}) was found. Looked: {places}."]
    usable = [one for one in choice.judged if one.refusal.startswith("required: ")]
    hints = [f'cm run script "{kind.tags}" --version={usable[0].library.version}  (it is there)'] if usable else []
    hints.append(f"{archive.command(kind)}  (from {kind.page})")
    return "\n".join((*lines, *(f"  hint: {text}" for text in (*hints, *more))))


NOT_THERE_CODE = 1
"""What cm4mlops' get-cudnn and get-tensorrt end with when nothing is found and no tar file is given."""
NONE_FITS_CODE = 16
"""CM's code for "not found"."""
FOLDER = "unpacked"
"""Where the archive goes, in the entry; the _cm.yaml of both recipes name it too."""


class NotTaken(Exception):
    """Nothing fits. ``code`` is CM's return code, the text says why and what to try."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Taken(NamedTuple):
    """A library that is there and not broken: its file, its version as precise as is known, and how loading ended."""

    place: toolkits.Library
    library: str
    version: str
    loads: str


class Own(NamedTuple):
    """What a recipe does its own way: further hints when nothing is there, its keys and answer, its word on wheels.

    ``more_hints`` reads the env only when an installed one is looked for: a plan waits for every key that is read.
    """

    more_hints: Callable[[dict[str, Any]], tuple[str, ...]]
    give: Callable[[dict[str, Any], Machine, Taken], dict[str, Any]]
    judge_wheels: Callable[[dict[str, Any], Machine], None] = lambda env, machine: None


def prepare(i: dict[str, Any], kind: Kind, own: Own, *, is_plan: bool) -> dict[str, Any]:
    """Takes an installed library, or says what the dependencies that follow have to unpack or to install; CM's answer.

    For a plan the archive's SHA-256 is not computed.
    """
    env, machine = i["env"], i.get("machine") or Machine()
    try:
        asked = asked_in(env, i["values"], kind)
        env[f"{kind.prefix}_SOURCE"] = asked.source
        if asked.source == "tar":
            look_at_archive(env, machine, kind, asked, is_plan=is_plan)
        elif asked.source == "pip":
            env.update(pip_limits(asked, kind))
            own.judge_wheels(env, machine)
        else:
            return own.give(env, machine, take_installed(i, machine, kind, asked, own.more_hints(env)))
    except RequestError as error:
        return {"return": NONE_FITS_CODE, "error": str(error)}
    except NotTaken as error:
        return {"return": error.code, "error": str(error)}
    return {"return": 0}


def pip_limits(asked: Request, kind: Kind) -> dict[str, str]:
    """The limits of the version for pip. The wheels' own last number is not what users say: 9.10 means 9.10.x.y."""
    return {
        f"{kind.prefix}_PIP_VERSION": asked.exact,
        f"{kind.prefix}_PIP_VERSION_MIN": asked.minimum,
        f"{kind.prefix}_PIP_VERSION_MAX": asked.maximum + ".9999" if asked.maximum else "",
    }


def look_at_archive(env: dict[str, Any], machine: Machine, kind: Kind, asked: Request, *, is_plan: bool) -> None:
    """Checks the archive's name and (but for a plan) its checksum, and makes room for it; sets what extract-file needs.

    Raises RequestError.
    """
    seen = archive.before(asked, kind, machine)
    env[f"{kind.prefix}_TAR_FILE_ABSOLUTE_PATH"] = seen.path
    env[f"{kind.prefix}_UNPACK_LIMIT_BYTES"] = str(seen.max_size_bytes)
    if is_plan:
        return
    env[f"{kind.prefix}_TAR_FILE_STAMP"] = seen.stamp
    env[f"{kind.prefix}_TAR_FILE_SHA256"] = archive.sha256(asked)
    remove_unpacked()  # of an earlier try in this entry
    if Path(FOLDER).exists():
        raise RequestError(
            f"{Path(FOLDER).absolute()} already exists and is not changed.\n  hint: run without --skip_cache"
        )
    tell(kind, f"SHA-256 of {seen.path}: {env[f'{kind.prefix}_TAR_FILE_SHA256']}")
    tell(kind, "unpacking it into the cache entry ...")


def remove_unpacked() -> None:
    """Removes what was unpacked, where the current folder is a cache entry of CM; a folder of the user stays."""
    if Path("_cm.json").is_file():
        shutil.rmtree(FOLDER, ignore_errors=True)


def take_archive(machine: Machine, kind: Kind, asked: Request, folders: Sequence[str]) -> tuple[archive.Whole, Taken]:
    """What extract-file has unpacked, checked and loaded; ``folders`` are the loader's.

    Raises ArchiveError; then nothing of the archive stays in the entry.
    """
    try:
        whole = archive.after(machine, kind, os.path.join(os.getcwd(), FOLDER), Path(asked.tar_file).name, asked)
        return whole, checked(machine, kind, whole.library, whole.version, folders)
    except archive.ArchiveError:
        remove_unpacked()
        raise


def take_installed(
    i: dict[str, Any], machine: Machine, kind: Kind, asked: Request, more_hints: tuple[str, ...]
) -> Taken:
    """The best of those installed; tells all with reasons. Raises RequestError and NotTaken."""
    env = i["env"]
    cuda = [str(env["CM_CUDA_PATH_LIB"])] if env.get("CM_CUDA_PATH_LIB") else []
    found = discovery.installed(machine, kind, asked, library_folders(env) + cuda)
    choice = selection.choose(found, asked, cuda)
    i["state"][f"cm_{kind.name.lower()}_found"] = state_of(kind, choice)
    if choice.chosen is None:
        code = NONE_FITS_CODE if choice.judged or asked.only_in else NOT_THERE_CODE
        raise NotTaken(code, not_found(kind, asked, choice, more_hints))
    for one in choice.judged:
        tell(kind, one.text(kind))
    library = choice.chosen.library
    tell(kind, f"# Found artifact in {discovery.library_file(machine, kind, library.lib)} ({choice.reason})")
    try:
        return checked(machine, kind, library, library.version, loader_folders(env))
    except archive.ArchiveError as error:
        hint = f'cm run script "{kind.tags}" --input=ANOTHER_FOLDER'
        raise NotTaken(1, f"{error}\n  hint: {hint}") from error


def checked(machine: Machine, kind: Kind, place: toolkits.Library, version: str, folders: Sequence[str]) -> Taken:
    """A library that was found, after loading it. Raises ArchiveError for one that is broken or of another version."""
    library = discovery.library_file(machine, kind, place.lib)
    loaded = load.load(machine, kind, library, [place.lib, *folders])
    tell(kind, loaded.text)
    trouble = load.contradiction(kind, version, loaded)
    if loaded.level == "broken" or trouble:
        raise archive.ArchiveError(trouble or loaded.text)
    # a file name may say the major version alone
    version = loaded.version if loaded.version.count(".") > version.count(".") else version
    tell(kind, f"Detected version: {version}")
    return Taken(place, library, version, loaded.level)


def loader_folders(env: dict[str, Any]) -> list[str]:
    """The folders of other libraries that were found before and that this one may need."""
    return [str(env[key]) for key in ("CM_CUDA_PATH_LIB", "CM_CUDA_PATH_LIB_CUDNN") if env.get(key)]


def tell(kind: Kind, line: str) -> None:
    """One line of the story."""
    print(f"{kind.recipe}: {line}", file=sys.stderr)
