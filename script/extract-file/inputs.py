"""Rules of the recipe extract-file for what is asked: from its inputs to one `ExtractRequest`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of

# Text packs 10 times, masks of organs 100 times; zeros 1,000 times (gzip) and more (bzip2, xz).
DEFAULT_MAX_RATIO = 200
DEFAULT_MIN_BYTES, DEFAULT_MAX_BYTES = 16 * 1024**3, 1024**4
"""Below 16 GiB the ratio does not count; 1 TiB is more than any MLPerf data set."""
DEFAULT_MAX_MEMBERS = 10_000_000  # ImageNet has 1.3 million


class InputError(Exception):
    """What is asked cannot be done. The text says what was found, what is allowed and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRequest:
    """What to unpack and where: into `folder`, or into `folder / inner` where `inner` is not ""."""

    archive: Path
    folder: Path
    inner: str
    result_name: str
    strip_folders: int
    max_size_bytes: int
    max_members: int
    overwrites: bool
    removes_archive: bool
    final_env_name: str

    @property
    def root(self) -> Path:
        """The folder that the members' names count from."""
        return self.folder / self.inner if self.inner else self.folder


def asked_in(env: Mapping[str, Any], values: Any) -> ExtractRequest:
    """The request in the inputs; a relative path that a recipe gives counts from its own step's folder.

    Raises InputError for a missing archive and for values that cannot be.
    """
    text = values.text("input")
    if not text:
        raise InputError(
            "no archive was given (--input)\nhint: cm run script --tags=extract,file --input=data.tar.gz --to=data"
        )
    path = _absolute(text)
    if not path.is_file():
        raise InputError(f"the archive {path} does not exist\nhint: check --input")
    final_name = values["env_key"] or ""
    if final_name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", final_name):
        raise InputError(f"--env_key={final_name} cannot name an env key\nhint: --env_key=CM_MY_DATA_PATH")
    limit = values["max_size_bytes"]
    return ExtractRequest(
        archive=path,
        folder=_absolute(values.text("to") or "."),
        inner=_one_name(values["extra_folder"] or "", "--extra_folder"),
        result_name=_one_name(text_of(env, "CM_EXTRACT_EXTRACTED_FILENAME"), "CM_EXTRACT_EXTRACTED_FILENAME"),
        strip_folders=values["strip_folders"],
        max_size_bytes=default_limit_bytes(path.stat().st_size) if limit is None else limit,
        max_members=DEFAULT_MAX_MEMBERS,
        overwrites=values["overwrite"] is True,
        removes_archive=values["remove"] is True,
        final_env_name=final_name,
    )


def default_limit_bytes(archive_bytes: int) -> int:
    """The most that an archive of this size may unpack to when the user gave no limit."""
    return max(DEFAULT_MIN_BYTES, min(DEFAULT_MAX_BYTES, DEFAULT_MAX_RATIO * archive_bytes))


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))


def _one_name(text: str, option: str) -> str:
    name = text.strip("/")
    if name in (".", "..") or "/" in name:
        raise InputError(f"{option}={name} must be one name, not a path\nhint: --to=FOLDER for a path")
    return name
