"""What is asked of get-cudnn or get-tensorrt: from CM's env to one ``Request``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from crowdperf.call.values import text_of
from crowdperf.machine import versions
from crowdperf.machine.nvidia_libraries.kinds import Kind

VERSION_KEYS = ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX")


class RequestError(Exception):
    """The request cannot be met. The text says what failed, what was found and the command to try."""


class Request(NamedTuple):
    """What is asked; texts are empty where nothing is. ``only_in`` are absolute paths to choose among."""

    source: str = "installed"
    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    only_in: tuple[str, ...] = ()
    needs_headers: bool = False
    tar_file: str = ""
    sha256: str = ""
    max_size_bytes: int = 0

    def admits(self, version: str) -> bool:
        """Whether a version is one of those asked for."""
        # the build number is in the archive's name only: 8.9.7 by its header may be the 8.9.7.29 asked for
        is_shorter = version.count(".") == 2 and versions.is_exact(self.exact, version)
        return is_shorter or versions.is_asked(version, self.exact, self.minimum, self.maximum)

    @property
    def limits_text(self) -> str:
        """The versions asked for, in words."""
        return versions.asked_text(self.exact, self.minimum, self.maximum)


def from_env(env: Mapping[str, Any], kind: Kind) -> Request:
    """The request in CM's env; relative paths count from the folder where the command was given.

    Raises RequestError for a version or a checksum that is none.
    """

    def text(key: str) -> str:
        return text_of(env, key)

    for key in VERSION_KEYS:
        if text(key) and not re.fullmatch(r"\d+(\.\d+){0,3}", text(key)):
            raise RequestError(
                f"{text(key)!r} ({key}) is not a version of {kind.name}, such as 8.9 or 8.9.7.\n"
                f'  hint: cm run script "{kind.tags}" --version_min=8.6'
            )
    sha256, size = text(f"{kind.prefix}_EXPECTED_SHA256").lower(), text(f"{kind.prefix}_MAX_SIZE_BYTES")
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise RequestError(f"--sha256sum={sha256!r} must be 64 hexadecimal digits.\n  hint: sha256sum FILE")
    if size and not size.isdecimal():
        raise RequestError(f"--max_size_bytes={size!r} must be a whole number.\n  hint: leave it out")
    start = text("CM_TMP_CURRENT_PATH") or os.getcwd()
    tar_file = text(f"{kind.prefix}_TAR_FILE_PATH")
    places = [text(f"{kind.prefix}_INPUT_PATH") or text("CM_INPUT")]
    if not places[0]:
        places = [part for part in text("CM_TMP_PATH").split(":") if part]
    source = text(f"{kind.prefix}_ASKED_SOURCE") or "installed"
    return Request(
        source="tar" if tar_file and source == "installed" else source,
        exact=text("CM_VERSION"),
        minimum=text("CM_VERSION_MIN"),
        maximum=text("CM_VERSION_MAX"),
        only_in=tuple(_absolute(start, place) for place in places if place),
        needs_headers=text(f"{kind.prefix}_REQUIRE_DEV") == "yes",
        tar_file=_absolute(start, tar_file) if tar_file else "",
        sha256=sha256,
        max_size_bytes=int(size or 0),
    )


def _absolute(start: str, path: str) -> str:
    return os.path.normpath(os.path.join(start, os.path.expanduser(path)))
