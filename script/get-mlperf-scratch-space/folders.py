"""The folders and links of a scratch space: makes them, links them, looks at them. The one module that touches disks.

Nothing is made outside the scratch space and the ``build`` folder that the user named; nothing that is there is
removed, but links in ``build`` when the user says so.
"""

import contextlib
import os
import shlex
from pathlib import Path
from typing import NamedTuple

NAMES = ("models", "data", "preprocessed_data")
"""NVIDIA's layout: MLPerf Inference v0.7, closed/NVIDIA/README.md and the target link_dirs of its Makefile."""
INFERENTIA_FOLDERS = ("preprocessed_data/squad_tokenized", "preprocessed_data/imagenet/ResNet50/fp32_pytorch")
"""Layout of NVIDIA's Triton on AWS Inferentia, v2.0. Its README spells Resnet50, its code ResNet50."""
INFERENTIA_LINK = ("preprocessed_data/imagenet/Resnet50", "ResNet50")


class FolderError(Exception):
    """A folder or link cannot be made; the text says why and what to try."""


class Link(NamedTuple):
    """A link of ``build``: its path, where it leads (empty: it is no link), where it should, whether it gets there."""

    path: str
    target: str
    wanted: str
    is_there: bool

    @property
    def is_right(self) -> bool:
        """Whether it leads to the folder of the scratch space, and that exists."""
        return self.is_there and bool(self.target) and os.path.realpath(self.path) == os.path.realpath(self.wanted)


def make(scratch: Path, *, is_inferentia: bool) -> tuple[str, ...]:
    """Makes the scratch space and its folders; gives the paths that were made now. Raises FolderError."""
    wanted = [scratch, *(scratch / name for name in NAMES)]
    wanted += [scratch / name for name in INFERENTIA_FOLDERS] if is_inferentia else []
    made = tuple(str(path) for path in wanted if _make_folder(path))
    if is_inferentia:
        link = scratch / INFERENTIA_LINK[0]
        # Where the file system knows no case, both spellings are one folder already.
        with contextlib.suppress(FileExistsError):
            link.symlink_to(INFERENTIA_LINK[1])
            made = (*made, str(link))
    for name in NAMES:
        if not os.access(scratch / name, os.R_OK | os.W_OK | os.X_OK):
            raise FolderError(
                f"{scratch / name} is there, but this user may not write to it\n"
                f"  hint: cm run script --tags=check,user,permissions --scratch={shlex.quote(str(scratch))} shows why"
            )
    return made


def _make_folder(path: Path) -> bool:
    if os.path.isdir(path):  # Path.is_dir raises where a folder above may not be searched
        return False
    if os.path.lexists(path):
        kind = "a link that leads nowhere" if os.path.islink(path) else "a file"
        raise FolderError(f"{path} must be a folder, but is {kind}\n  hint: move it away, or name another --path")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(
            f"{path} cannot be made: {error.strerror}\n"
            "  hint: --path=FOLDER in a place that you may write to. cm run script --tags=get,scratch,disk finds one"
        ) from error
    return True


def link(scratch: Path, build: Path, *, may_replace: bool) -> tuple[str, ...]:
    """Links the three folders into ``build``; gives the links that were made now. Raises FolderError.

    A link that leads elsewhere is replaced only when ``may_replace``; a file or folder never is. All three are looked
    at before the first is made.
    """
    wrong = [one for one in look(scratch, build) if not one.is_right and os.path.lexists(one.path)]
    for one in wrong:
        if not one.target:
            raise FolderError(f"{one.path} exists and is not a link\n  hint: move it away. No link was changed")
        if not may_replace:
            places = f"--path={shlex.quote(str(scratch))} --build_dir={shlex.quote(str(build.parent))}"
            again = f"cm run script --tags=get,mlperf,scratch,space,_link-dirs {places} --relink"
            raise FolderError(
                f"{one.path} leads to {one.target}, wanted: {one.wanted}\n"
                f"  hint: {again}   # replaces such links. None was changed"
            )
    made = []
    try:
        build.mkdir(parents=True, exist_ok=True)
        for one in look(scratch, build):
            if not one.is_right:
                beside = Path(f"{one.path}.new-{os.getpid()}")
                beside.symlink_to(one.wanted)
                os.replace(beside, one.path)
                made.append(one.path)
    except OSError as error:
        raise FolderError(
            f"the links in {build} cannot be made: {error.strerror}\n  hint: --build_dir=FOLDER that you may write to"
        ) from error
    return tuple(made)


def look(scratch: Path, build: Path) -> tuple[Link, ...]:
    """What ``build`` has in the places of the three links."""
    found = []
    for name in NAMES:
        path = build / name
        target = os.readlink(path) if os.path.islink(path) else ""
        found.append(Link(str(path), target, str(scratch / name), os.path.isdir(path)))
    return tuple(found)


def told(links: tuple[Link, ...]) -> str:
    """The links as text, a line each: where it leads, whether that exists, and what is wanted where it is another."""
    lines = []
    for one in links:
        if not one.target:
            state = "no link, but a folder or file" if os.path.lexists(one.path) else "not there"
            lines.append(f"  {one.path}: {state}; wanted: a link to {one.wanted}")
            continue
        state = "exists" if one.is_there else "DOES NOT EXIST"
        wanted = "" if one.is_right or not one.is_there else f"; wanted: {one.wanted}"
        lines.append(f"  {one.path} -> {one.target} ({state}){wanted}")
    return "\n".join(lines)
