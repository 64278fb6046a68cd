"""The vendor's tar file of cuDNN or TensorRT: what its name says, and whether what was unpacked is whole.

It is unpacked by the recipe extract,file, which refuses members that could touch anything outside of their folder.
Nothing here writes anything.
"""

import re
from pathlib import Path
from typing import NamedTuple

from crowdperf.kit.whole_file import file_sha256
from crowdperf.machine import toolkits, versions
from crowdperf.machine.nvidia_libraries import discovery
from crowdperf.machine.nvidia_libraries.kinds import CUDNN, TENSORRT, Kind
from crowdperf.machine.nvidia_libraries.request import Request, RequestError
from crowdperf.machine.probe import Machine

BOMB_RATIO = 20
"""NVIDIA's archives unpack to two to four times their size; a bomb to a thousand times."""
SMALLEST_LIMIT_BYTES = 1024**3
MACHINES = {
    "x86_64": ("x86_64", "x64"),
    "aarch64": ("aarch64", "sbsa", "arm64"),
    "ppc64le": ("ppc64le",),
}
"""What ``uname -m`` says, and the words for it in names of NVIDIA's archives (sbsa: servers with Arm processors)."""
PACKAGES = {".deb": "sudo apt-get install ./FILE", ".rpm": "sudo dnf install ./FILE", ".run": "sh FILE", ".exe": ""}


class ArchiveError(Exception):
    """The archive cannot be taken. The text says why and what to try."""


class Name(NamedTuple):
    """What the name of an archive (or of its folder) says; texts are empty where it says nothing."""

    version: str = ""
    cuda: str = ""
    machine: str = ""


class Archive(NamedTuple):
    """The user's archive before it is unpacked. ``stamp``: size in bytes and time of change in s, as stat -c prints."""

    path: str
    name: Name
    stamp: str
    max_size_bytes: int


class Whole(NamedTuple):
    """What was unpacked: its home folder, its parts, and its version as precise as header and names tell."""

    home: str
    library: toolkits.Library
    version: str


def parse(text: str, kind: Kind) -> Name:
    """What a file's or folder's name says."""
    for pattern in kind.names:
        found = pattern.search(text)
        if found:
            said = found.groupdict()
            return Name(said["version"], (said.get("cuda") or "").strip("."), said.get("machine") or "")
    return Name()


def before(asked: Request, kind: Kind, machine: Machine) -> Archive:
    """The archive that was asked for, after all checks that need only its name.

    Raises RequestError for a file that is not there, that is of another kind, or for another version or machine.
    """
    path = Path(asked.tar_file)
    if not path.is_file():
        raise RequestError(f"--tar_file={path} is not a file.\n  hint: {command(kind)}")
    if path.suffix.lower() in PACKAGES:
        raise RequestError(_is_package(path, kind))
    name = parse(path.name, kind)
    for other in (CUDNN, TENSORRT):
        if other is not kind and not name.version and parse(path.name, other).version:
            raise RequestError(
                f"{path.name} is an archive of {other.name}, not of {kind.name}.\n  hint: {command(other)}\n"
                f"  hint: {command(kind)}"
            )
    if name.version and not asked.admits(name.version):
        raise RequestError(
            f"{path.name} is {kind.name} {name.version}, required: {asked.limits_text}.\n"
            "  hint: omit the version, or use another file"
        )
    here = machine.run(("uname", "-m")).stdout.strip()
    words = MACHINES.get(here, (here,))
    said = name.machine.lower()
    if here and said and ("windows" in said or not any(word in said for word in words)):
        raise RequestError(
            f"{path.name} is made for {name.machine}, this machine is Linux on {here}.\n"
            f'  hint: download the "Tar" for Linux {here} from {kind.page}'
        )
    status = path.stat()
    stamp = f"{status.st_size} {status.st_mtime_ns // 10**9}.{status.st_mtime_ns % 10**9:09d}"
    limit = asked.max_size_bytes or max(SMALLEST_LIMIT_BYTES, BOMB_RATIO * status.st_size)
    return Archive(str(path), name, stamp, limit)


def sha256(asked: Request) -> str:
    """The SHA-256 of the archive; raises RequestError when it is not the one expected or cannot be read."""
    try:
        found = file_sha256(Path(asked.tar_file))
    except OSError as error:
        raise RequestError(
            f"{asked.tar_file} cannot be read ({error.strerror}).\n  hint: check its permissions"
        ) from error
    if asked.sha256 and found != asked.sha256:
        raise RequestError(
            f"the SHA-256 of {asked.tar_file} is {found}, expected is {asked.sha256}.\n  hint: download it again"
        )
    return found


def after(machine: Machine, kind: Kind, folder: str, archive_name: str, asked: Request) -> Whole:
    """What lies unpacked in ``folder``; ``archive_name`` is the file's name, which must not contradict the headers.

    Raises ArchiveError that says what is missing or does not fit.
    """
    tops = [folder, *(path for path in machine.glob(f"{folder}/*") if machine.is_dir(path))]
    found = [one for one in kind.installed(machine, tops) if one.prefix in tops]
    home = next((one for one in found if one.lib and one.header), next(iter(found), None))
    missing = _missing(kind, home)
    if missing or home is None:
        raise ArchiveError(_not_whole(machine, kind, (folder, archive_name), missing))
    version = home.version
    for text in (home.prefix.rpartition("/")[2], archive_name):
        said = parse(text, kind).version
        if said and not versions.is_exact(said, home.version) and not versions.is_exact(home.version, said):
            raise ArchiveError(
                f"{archive_name} is inconsistent: the name {text!r} says {kind.name} {said}, its "
                f"{home.version_source} says {home.version}.\n  hint: download it again from {kind.page}"
            )
        version = said if said.count(".") > version.count(".") else version
    if not asked.admits(version):
        raise ArchiveError(
            f"{archive_name} is {kind.name} {version} by its {home.version_source}, required: {asked.limits_text}.\n"
            "  hint: omit the version, or use another file"
        )
    return Whole(home.prefix, home, version)


def command(kind: Kind) -> str:
    """The command that takes an archive, as CM's tutorial has it."""
    return f'cm run script "{kind.tags}" --tar_file={{full path to the {kind.name} tar file}}'


def _missing(kind: Kind, home: toolkits.Library | None) -> tuple[str, ...]:
    lib = f"lib/{kind.library}* (or lib64/)"
    header = f"include/{kind.headers[0]}"
    if home is None:
        return lib, header
    return tuple(name for name, is_there in ((lib, home.lib), (header, home.header)) if not is_there)


def _not_whole(machine: Machine, kind: Kind, place: tuple[str, str], missing: tuple[str, ...]) -> str:
    folder, archive_name = place
    tops = [path.rpartition("/")[2] for path in machine.glob(f"{folder}/*")]
    inner = [name for top in tops[:1] for name in machine.names(f"{folder}/{top}")]
    seen = ", ".join(tops[:8]) + (f" with {', '.join(inner[:8])}" if inner else "")
    bare = discovery.bare(machine, kind, folder)
    return (
        f"{archive_name} is not NVIDIA's archive of {kind.name}: missing in it: {'; '.join(missing)}. It has: "
        f"{seen or 'nothing'}.\n"
        + (f"  seen: {bare[0].version_source} at its top\n" if bare else "")
        + f'  hint: download the "Tar" file for Linux from {kind.page}, then\n  hint: {command(kind)}'
    )


def _is_package(path: Path, kind: Kind) -> str:
    install = PACKAGES[path.suffix.lower()].replace("FILE", re.sub(r"[^\w.+~-]", "?", path.name))
    lines = [f"{path.name} is not a tar file but a package or an installer ({path.suffix})."]
    if install:
        lines.append(f'  hint: {install}   (as administrator), then cm run script "{kind.tags}"')
    lines.append(f'  hint: download the "Tar" file from {kind.page}, then {command(kind)}')
    return "\n".join(lines)
