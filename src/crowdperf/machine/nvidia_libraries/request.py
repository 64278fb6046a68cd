"""What is asked of get-cudnn or get-tensorrt: from CM's env to one ``Request``."""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from crowdperf.call.values import text_of
from crowdperf.machine import versions
from crowdperf.machine.nvidia_libraries.kinds import Kind


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


def asked_in(env: Mapping[str, Any], values: Mapping[str, Any], kind: Kind) -> Request:
    """The request in a recipe's inputs, and in what the engine and the variations put into CM's env.

    Relative paths count from the folder where the command was given. Raises RequestError for a wrong version.
    """
    limits = {name: text_of(env, f"CM_{name.upper()}") for name in ("version", "version_min", "version_max")}
    for name, text in limits.items():
        if text and not re.fullmatch(r"\d+(\.\d+){0,3}", text):
            raise RequestError(
                f"--{name}={text} is not a version of {kind.name}, such as 8.9 or 8.9.7.\n"
                f'  hint: cm run script "{kind.tags}" --version_min=8.6'
            )
    sha256 = values["sha256sum"] or ""
    start = text_of(env, "CM_TMP_CURRENT_PATH") or os.getcwd()
    one, folders = str(values["input"] or text_of(env, "CM_INPUT")), values["path"] or text_of(env, "CM_TMP_PATH")
    places = [one] if one else folders.split(":")
    source = text_of(env, f"{kind.prefix}_ASKED_SOURCE") or "installed"
    return Request(
        source="tar" if values["tar_file"] and source == "installed" else source,
        exact=limits["version"],
        minimum=limits["version_min"],
        maximum=limits["version_max"],
        only_in=tuple(os.path.normpath(os.path.join(start, os.path.expanduser(place))) for place in places if place),
        needs_headers=text_of(env, f"{kind.prefix}_REQUIRE_DEV") == "yes",
        tar_file=str(values["tar_file"] or ""),
        sha256=sha256,
        max_size_bytes=values["max_size_bytes"] or 0,
    )
