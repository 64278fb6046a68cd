"""Reads what a submission folder holds for a push: its files, and what forbids pushing them.

Only `<division>/<submitter>/...` is pushed; anything else in the folder is named and left out.
"""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from crowdperf.kit.privacy import PrivateNames, find_leaks, find_leaks_in_folder, masked
from crowdperf.logs.run_log import LogError, parse_detail_log
from crowdperf.logs.seeds import SEEDS
from crowdperf.logs.tree import DIVISIONS

MEGABYTE = 1_000_000
SYSTEM_KINDS = ("results", "measurements", "compliance")
"""Folders of a submitter that are cut into <system>/<model>/<Scenario>."""

MAX_SHOWN = 30


class ContentError(Exception):
    """A folder that cannot be pushed as it is; `problems` holds one text each, without anything private in it."""

    def __init__(self, problems: tuple[str, ...], hint: str) -> None:
        shown = problems[:MAX_SHOWN]
        more = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
        super().__init__("\n  ".join([f"{len(problems)} reason(s) not to push:", *shown, *more]) + f"\nhint: {hint}")
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A file to push; `path` is relative, with slashes."""

    path: str
    size_bytes: int
    is_executable: bool

    @property
    def mode(self) -> str:
        """Git's word for its kind."""
        return "100755" if self.is_executable else "100644"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a submission folder holds, in order."""

    root: Path
    submitter: str
    files: tuple[TreeFile, ...]
    left_out: tuple[str, ...]

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders `<division>/<submitter>` that are pushed."""
        return tuple(sorted({"/".join(file.path.split("/")[:2]) for file in self.files}))

    @property
    def scenario_folders(self) -> frozenset[str]:
        """`<division>/<submitter>/results/<system>/<model>/<Scenario>` and its like, of which the folder has files."""
        return frozenset(filter(None, (scenario_folder(file.path) for file in self.files)))

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, which are published on purpose."""
        return tuple(sorted({folder.split("/")[3] for folder in self.scenario_folders}))


def scenario_folder(path: str) -> str:
    """Return the part of a path up to its scenario; empty when it lies in no scenario."""
    parts = path.split("/")
    return "/".join(parts[:6]) if len(parts) > 6 and parts[2] in SYSTEM_KINDS else ""


def read_content(root: Path, submitter: str = "") -> Content:
    """Return what is to be pushed. Raises ContentError when there is nothing, or something that git should not hold."""
    found = sorted({path.name for division in DIVISIONS for path in root.glob(f"{division}/*") if path.is_dir()})
    hint = "cm run script --tags=generate,inference,submission makes the folder"
    if not found:
        raise ContentError((f"{root} has no folder <{'|'.join(DIVISIONS)}>/<submitter>",), hint)
    if submitter and submitter not in found:
        raise ContentError((f"{root} has no submitter {submitter}",), f"--submitter={found[0]}")
    if not submitter and len(found) > 1:
        raise ContentError((f"{root} has several submitters: {', '.join(found)}",), f"--submitter={found[0]}")
    chosen = submitter or found[0]
    files, problems = _walk(root, chosen)
    if problems:
        raise ContentError(tuple(problems), "replace it with its target file, or remove it")
    if not files:
        raise ContentError((f"{root} has no files of {chosen}",), hint)
    left_out = [path.name for path in root.iterdir() if path.name not in DIVISIONS]
    left_out += [f"{d}/{path.name}" for d in DIVISIONS for path in root.glob(f"{d}/*") if path.name != chosen]
    return Content(root=root, submitter=chosen, files=tuple(files), left_out=tuple(sorted(left_out)))


def _walk(root: Path, submitter: str) -> tuple[list[TreeFile], list[str]]:
    """The files of a submitter, and what is wrong with some."""
    files, problems = [], []
    for path in sorted(path for division in DIVISIONS for path in (root / division / submitter).rglob("*")):
        relative = path.relative_to(root).as_posix()
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            continue
        if ".git" in PurePosixPath(relative).parts or "\n" in relative:
            problems.append(f"{relative!r}: git cannot store a file of this name")
        elif stat.S_ISREG(status.st_mode):
            files.append(TreeFile(path=relative, size_bytes=status.st_size, is_executable=os.access(path, os.X_OK)))
        else:
            problems.append(f"{relative}: is a link or a device, but only plain files are pushed")
    return files, problems


def round_of(content: Content) -> str:
    """Return the round whose seeds the runs have, by the first log that can be read; empty when none has."""
    for file in content.files:
        parts = file.path.split("/")
        if parts[-1] == "mlperf_log_detail.txt" and not any(part.startswith("TEST") for part in parts):
            with contextlib.suppress(OSError, LogError):
                found = parse_detail_log((content.root / file.path).read_text(encoding="utf-8", errors="replace")).seeds
                return next((name for name, seeds in SEEDS.items() if seeds == found), "")
    return ""


def check_sizes(content: Content, largest_bytes: int) -> None:
    """Raises ContentError with the files that are too large."""
    large = [file for file in content.files if file.size_bytes > largest_bytes]
    if large:
        texts = [f"{file.path}: {file.size_bytes / MEGABYTE:.1f} MB" for file in large]
        raise ContentError(
            tuple(f"{text}, at most {largest_bytes / MEGABYTE:g} MB" for text in texts),
            "truncate accuracy logs with generate,inference,submission, or allow more with --largest_mb=N",
        )


def check_privacy(content: Content, texts: dict[str, str], known: PrivateNames) -> None:
    """Raises ContentError with what the files and `texts` (of the commit, by what they are) give away, masked."""
    told = [f"{name}: {leak.kind.value}: {leak.excerpt}" for name, text in texts.items()
            for leak in find_leaks(text, known)]  # fmt: skip
    for root in content.roots:
        found = find_leaks_in_folder(content.root / root, known)
        told += [f"{masked(root, known)}/{leak}" for leak in found]
    if told:
        raise ContentError(
            tuple(told),
            "replace them at their source and recreate the submission. "
            "A name or folder that may be published: --public=NAME,FOLDER",
        )
