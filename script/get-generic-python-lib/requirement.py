"""Rules of the recipe get-generic-python-lib: what package is asked for, whether a version fits, options for pip."""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.call.values import is_yes, text_of

OPTIONS = ("index_url", "extra_index_url", "find_links")
"""The inputs that are options of `pip install`, too (pip documentation, "pip install", options)."""
PROXY_KEYS = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")

SAME_FILES = (
    ("onnxruntime", "onnxruntime-directml", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-qnn"),
    ("opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless"),
)
"""Packages on PyPI that are builds of one module and write the same files (their project pages, November 2026)."""

_STAGES = {"a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "pre": -1, "preview": -1}
_VERSION = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)"  # epoch, release
    r"(?:[-_.]?(alpha|beta|preview|pre|rc|a|b|c)[-_.]?(\d*))?"  # stage before the release
    r"(?:-(\d+)|[-_.]?(?:post|rev|r)[-_.]?(\d*))?"  # after the release
    r"(?:[-_.]?dev[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"

SortKey = tuple[int, tuple[int, ...], tuple[int, int], int, float]


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
        if not re.fullmatch(_NAME, name) or version != version.strip() or sort_key(version) is None or not has_digest:
            raise RequirementError(
                f"the lockfile has the package {name!r} {version!r} with the SHA-256 {sha256!r}, allowed are a name, "
                "a version such as 1.2.3 and 64 hex digits\nhint: create a new lock with cm lock script"
            )


def from_env(env: Mapping[str, Any], last_for_driver: str = "") -> Requirement:
    """The requirement in CM's env. Raises RequirementError for a missing or impossible name or version.

    last_for_driver: the newest release that the machine's GPU driver runs, empty for any; a version that is asked for
    exactly stays.
    """
    text = text_of(env, "CM_GENERIC_PYTHON_PACKAGE_NAME")
    # PEP 508, "Names" and "Extras".
    found = re.fullmatch(rf"({_NAME})(\[[A-Za-z0-9._, -]*\])?", text)
    if not found:
        raise RequirementError(
            f"{text!r} is not the name of a Python package (letters, digits, '.', '_', '-', "
            "and extras in brackets)\nhint: cm run script --tags=get,generic-python-lib,_package.numpy"
        )
    limits = text_of(env, "CM_TMP_PIP_VERSION_STRING") or _limits_of(env)
    if last_for_driver and "==" not in limits:
        limits = ",".join(filter(None, (limits, f"<={last_for_driver}")))
    for part in filter(None, limits.split(",")):
        if not re.fullmatch(r"(==|>=|<=).+", part) or sort_key(part[2:]) is None:
            raise RequirementError(
                f"{part!r} is not a limit of a version of {text}, allowed are ==, >= and <= "
                "with a version such as 1.2.3\nhint: --version=1.2.3, or --version_min=1.2 --version_max=1.9"
            )
    named = str(env.get("CM_GENERIC_PYTHON_PIP_UNINSTALL_DEPS", "") or "")
    return Requirement(
        name=found[1],
        extras=(found[2] or "").replace(" ", ""),
        limits=limits,
        is_forced=is_yes(env.get("CM_TMP_PYTHON_PACKAGE_FORCE_INSTALL")),
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
    exact, minimum, maximum = (text_of(env, key) for key in ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX"))
    if exact:
        return f"=={exact}"
    return ",".join([*([f">={minimum}"] if minimum else []), *([f"<={maximum}"] if maximum else [])])


def env_name(text: str) -> str:
    """A package's name as part of an env key: upper case, everything else than letters and digits as '_'."""
    return re.sub(r"[^A-Z0-9]", "_", text.upper())


def fits(version: str, limits: str) -> bool:
    """Whether an installed version is within the limits, in the order of PEP 440. A local part (+cpu) fits ==."""
    key = sort_key(version)
    if key is None:
        return not limits
    for part in filter(None, limits.split(",")):
        operator, wanted_text = part[:2], part[2:]
        wanted = sort_key(wanted_text)
        compared = key if "+" in wanted_text else sort_key(version.partition("+")[0])
        if wanted is None or compared is None:
            return False
        if operator == "==" and "+" in wanted_text:
            is_right = version.strip().lower() == wanted_text.strip().lower()
        else:
            is_right = {"==": compared == wanted, ">=": compared >= wanted, "<=": compared <= wanted}[operator]
        if not is_right:
            return False
    return True


def sort_key(version: str) -> SortKey | None:
    """A key that orders versions as PEP 440 does, without the local part; None for a text that is no version."""
    found = _VERSION.fullmatch(version.strip())
    if not found:
        return None
    epoch, release, stage, stage_number, dash_post, post, dev, _local = found.groups()
    numbers = [int(part) for part in release.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    has_post = dash_post is not None or post is not None
    if stage:
        stage_key = (_STAGES[stage.lower()], int(stage_number or 0))
    elif dev is not None and not has_post:
        stage_key = (-4, 0)  # 1.0.dev1 is older than 1.0a1
    else:
        stage_key = (0, 0)
    post_key = int(dash_post or post or 0) + 1 if has_post else 0
    return (int(epoch or 0), tuple(numbers), stage_key, post_key, float("inf") if dev is None else float(dev or 0))


def pip_options(env: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[str, ...]:
    """The options for `pip install` that the user asked for."""
    options: list[str] = []
    for name in OPTIONS:
        if values[name]:
            options += [f"--{name.replace('_', '-')}", values[name]]
    if env.get("CM_GENERIC_PYTHON_LOCAL_BUILD"):
        # Its index may be out of reach while another source has the wheel: pip goes on after these tries.
        options += ["--retries=2", "--timeout=15"]
    common = "CM_PYTHON_PIP_COMMON_EXTRA"
    for name, text in ((common, text_of(env, common)), ("--extra", values["extra"] or "")):
        try:
            options += shlex.split(text)
        except ValueError as error:
            raise RequirementError(
                f"{name} cannot be read as options ({error}): {text!r}\nhint: close its quotes"
            ) from error
    return tuple(options)


def proxies(env: Mapping[str, Any]) -> Mapping[str, str]:
    """The proxy variables in CM's env."""
    return {key: str(env[key]) for key in PROXY_KEYS if env.get(key)}


def masked(words: Sequence[str]) -> str:
    """A command for a message: quoted as for a shell, without the user and password in addresses."""
    return without_logins(shlex.join(words))


def without_logins(text: str) -> str:
    """A text without the user and password in addresses."""
    return re.sub(r"://[^/@\s']+@", "://***@", text)
