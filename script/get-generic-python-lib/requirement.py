"""Rules of the recipe get-generic-python-lib: what package is asked for, whether a version fits, options for pip."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

TRUE_WORDS = ("yes", "true", "on", "1")
# CM's env keys for pip -> the option of `pip install` (pip documentation, "pip install", options).
OPTION_KEYS: Mapping[str, str] = {
    "CM_GENERIC_PYTHON_PIP_INDEX_URL": "--index-url",
    "CM_GENERIC_PYTHON_PIP_EXTRA_INDEX_URL": "--extra-index-url",
    "CM_GENERIC_PYTHON_PIP_EXTRA_FIND_LINKS_URL": "--find-links",
}
FREE_OPTION_KEYS = ("CM_PYTHON_PIP_COMMON_EXTRA", "CM_GENERIC_PYTHON_PIP_EXTRA")
PROXY_KEYS = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")

SAME_FILES = (
    ("onnxruntime", "onnxruntime-directml", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-qnn"),
    ("opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless"),
)
"""Packages on PyPI that are builds of one module and write the same files (their project pages, November 2026)."""

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


class RequirementError(Exception):
    """What is asked cannot be asked for. The text says what was found and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A package: its name, extras ("" or "[a,b]"), the limits of its version ("==1.2", ">=1,<=2", "") and force.

    local_build: the build to install ("cpu" asks for 2.13.0+cpu); any build that is there is taken. refused_build: one
    that is not taken. replaces: packages that write the same files and must go first.
    """

    name: str
    extras: str
    limits: str
    is_forced: bool
    local_build: str = ""
    refused_build: str = ""
    replaces: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Name and extras as the user wrote them."""
        return self.name + self.extras

    @property
    def for_pip(self) -> str:
        """The requirement as pip reads it. With the build's name no index can answer with another build."""
        is_plain = self.limits.startswith("==") and "+" not in self.limits and "," not in self.limits
        return self.text + self.limits + (f"+{self.local_build}" if self.local_build and is_plain else "")

    def takes(self, version: str) -> bool:
        """Whether an installed version will do."""
        is_refused = bool(self.refused_build) and version.partition("+")[2] == self.refused_build
        return not is_refused and fits(version, self.limits)


def check_locked(locked: Mapping[str, Mapping[str, str]]) -> None:
    """Raises RequirementError for a locked package that pip could take for an option or an address."""
    for name, row in locked.items():
        version, sha256 = str(row.get("version", "")), row.get("sha256")
        has_digest = sha256 is None or re.fullmatch(r"[0-9a-f]{64}", str(sha256))
        if not re.fullmatch(_NAME, name) or version != version.strip() or parsed(version) is None or not has_digest:
            raise RequirementError(
                f"the lock names the package {name!r} {version!r} with the SHA-256 {sha256!r}; allowed are a name, "
                "a version such as 1.2.3 and 64 hex digits. hint: make a new lock with `cm lock script`"
            )


def from_env(env: Mapping[str, Any]) -> Requirement:
    """The requirement in CM's env. Raises RequirementError for a missing or impossible name or version."""
    text = str(env.get("CM_GENERIC_PYTHON_PACKAGE_NAME", "") or "").strip()
    # PEP 508, "Names" and "Extras".
    found = re.fullmatch(rf"({_NAME})(\[[A-Za-z0-9._, -]*\])?", text)
    if not found:
        raise RequirementError(
            f"{text!r} is not the name of a Python package (letters, digits, '.', '_', '-', "
            "and extras in brackets). hint: `cm run script --tags=get,generic-python-lib,_package.numpy`"
        )
    limits = str(env.get("CM_TMP_PIP_VERSION_STRING", "") or "").strip() or _limits_of(env)
    for part in filter(None, limits.split(",")):
        if not re.fullmatch(r"(==|>=|<=).+", part) or parsed(part[2:]) is None:
            raise RequirementError(
                f"{part!r} is not a limit of a version of {text}; allowed are ==, >= and <= "
                "with a version such as 1.2.3. hint: --version=1.2.3, or --version_min=1.2 --version_max=1.9"
            )
    forced = str(env.get("CM_TMP_PYTHON_PACKAGE_FORCE_INSTALL", "") or "").lower() in TRUE_WORDS
    named = str(env.get("CM_GENERIC_PYTHON_PIP_UNINSTALL_DEPS", "") or "")
    return Requirement(
        name=found[1],
        extras=(found[2] or "").replace(" ", ""),
        limits=limits,
        is_forced=forced,
        # Only wheels for Linux have builds by name; those for other systems have one build, for processors.
        local_build=str(env.get("CM_GENERIC_PYTHON_LOCAL_BUILD", "") or "") if sys.platform == "linux" else "",
        refused_build=str(env.get("CM_GENERIC_PYTHON_REFUSED_BUILD", "") or ""),
        replaces=tuple(dict.fromkeys((*other_builds(found[1]), *named.split()))),
    )


def other_builds(name: str) -> tuple[str, ...]:
    """The packages that write the same files as the named one."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return tuple(other for family in SAME_FILES if plain in family for other in family if other != plain)


def _limits_of(env: Mapping[str, Any]) -> str:
    """The limits in CM_VERSION*, for engines that do not put them into CM_TMP_PIP_VERSION_STRING."""
    exact, minimum, maximum = (
        str(env.get(key, "") or "").strip() for key in ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX")
    )
    if exact:
        return f"=={exact}"
    return ",".join([*([f">={minimum}"] if minimum else []), *([f"<={maximum}"] if maximum else [])])


def env_name(text: str) -> str:
    """A package's name as part of an env key: upper case, everything else than letters and digits as '_'."""
    return re.sub(r"[^A-Z0-9]", "_", text.upper())


def fits(version: str, limits: str) -> bool:
    """Whether an installed version is within the limits, in the order of PEP 440. A local part (+cpu) fits ==."""
    installed = parsed(version)
    if installed is None:
        return not limits
    for part in filter(None, limits.split(",")):
        wanted = parsed(part[2:])
        if wanted is None:
            return False
        compared = installed if wanted.local else Version(installed.public)
        if not {"==": compared == wanted, ">=": compared >= wanted, "<=": compared <= wanted}[part[:2]]:
            return False
    return True


def parsed(version: str) -> Version | None:
    """The version, None for a text that is none."""
    try:
        return Version(version)
    except InvalidVersion:
        return None


def pip_options(env: Mapping[str, Any]) -> tuple[str, ...]:
    """The options for `pip install` that the user asked for."""
    options: list[str] = []
    for key, option in OPTION_KEYS.items():
        value = str(env.get(key, "") or "").strip()
        if value:
            options += [option, value]
    if env.get("CM_GENERIC_PYTHON_LOCAL_BUILD"):
        # Its index may be out of reach while another source has the wheel: pip goes on after these tries.
        options += ["--retries=2", "--timeout=15"]
    for key in FREE_OPTION_KEYS:
        try:
            options += shlex.split(str(env.get(key, "") or ""))
        except ValueError as error:
            raise RequirementError(
                f"{key} cannot be read as options ({error}): {env[key]!r}. hint: close its quotes"
            ) from error
    return tuple(options)


def proxies(env: Mapping[str, Any]) -> Mapping[str, str]:
    """The proxy variables in CM's env."""
    return {key: str(env[key]) for key in PROXY_KEYS if env.get(key)}


def masked(words: Sequence[str]) -> str:
    """A command for a message: quoted as for a shell, without the user and password in addresses."""
    return re.sub(r"://[^/@\s']+@", "://***@", shlex.join(words))
