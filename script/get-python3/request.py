"""Rules of the recipe get-python3 for what is asked: from CM's env to one `Request`, and the errors for the user."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of

from . import versions

VERSION_KEYS = {
    "exact": "CM_VERSION",
    "minimum": "CM_VERSION_MIN",
    "maximum": "CM_VERSION_MAX",
    "maximum_usable": "CM_VERSION_MAX_USABLE",
}


class RequestError(Exception):
    """The request cannot be met. The text says what failed, what was found and the command to try."""


class NoPythonFits(RequestError):
    """None of the interpreters that are there is the one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked: `only` is the one interpreter to take, `folders` are searched instead of PATH."""

    limits: versions.Limits
    only: Path | None
    folders: tuple[Path, ...]
    extra_tags: tuple[str, ...]
    name: str

    @property
    def is_virtual(self) -> bool:
        """Whether the caller registers the Python of a virtual environment."""
        return "virtual" in self.extra_tags


def from_env(env: Mapping[str, Any], inputs: Mapping[str, Any]) -> Request:
    """The request in CM's env.

    Raises RequestError for a version that is none, for a path that does not exist, and for a name nobody registered.
    """
    limits = versions.Limits(**{field: text_of(env, key) for field, key in VERSION_KEYS.items()})
    for text in (limits.exact, limits.minimum, limits.maximum, limits.maximum_usable):
        if text:
            _check_version(text)
    tags_text = str(env.get("CM_EXTRA_CACHE_TAGS", "") or inputs.get("extra_cache_tags", "") or "")
    tags = tuple(tag.strip() for tag in tags_text.split(",") if tag.strip() and "<<<" not in tag)
    asked = Request(
        limits=limits,
        only=_given_file(env, tags),
        folders=_given_folders(env),
        extra_tags=tags,
        name=text_of(env, "CM_NAME").lower(),
    )
    if asked.name and asked.only is None and not asked.folders:
        raise RequestError(
            f"no Python is registered under the name {asked.name!r}\nhint: make a virtual environment of "
            f'that name: cm run script "install python-venv" --name={asked.name}, or register an interpreter: '
            f'cm run script "get python3" --name={asked.name} --input=/path/to/python3'
        )
    return asked


def cache_tags(asked: Request, version: str) -> tuple[str, ...]:
    """The tags of the cache entry that tell this Python from others; recipes that depend on a Python use them too."""
    kind = () if asked.is_virtual else ("non-virtual",)
    name = (f"name-{asked.name}",) if asked.name else ()
    return tuple(dict.fromkeys((f"version-{version}", *asked.extra_tags, *name, *kind)))


def no_python_fits(asked: Request, rejected: tuple[str, ...], found: tuple[str, ...]) -> NoPythonFits:
    """The error for "none of these is the one", with every interpreter seen and a command to try."""
    seen = "".join(f"\n  {line}" for line in rejected) or "\n  none at all"
    longer = [version for version in found if asked.limits.exact and version.startswith(asked.limits.exact + ".")]
    if longer:
        hint = f"request it in full: --version={longer[0]}"
    elif found:
        hint = f"take one that is there, by the same command with --version={versions.nearest(asked.limits, found)}"
    else:
        hint = 'give its folder: cm run script "get python3" --path=FOLDER'
    return NoPythonFits(f"no Python matches; required: {asked.limits.describe()}. Seen:{seen}\n  hint: {hint}")


def _check_version(text: str) -> None:
    try:
        versions.sort_key(text)
    except ValueError as error:
        raise RequestError(f'{error}\nhint: cm run script "get python3" --version_min=3.10') from error


def _given_file(env: Mapping[str, Any], tags: tuple[str, ...]) -> Path | None:
    """The one interpreter to take, None when it is to be searched.

    CM_PYTHON_BIN_WITH_PATH in env is an order when the caller registers a virtual environment or a Python it has just
    installed, or when nobody says where it comes from. Otherwise another recipe found it earlier, for another purpose.
    """
    text = text_of(env, "CM_INPUT")
    if not text:
        known = text_of(env, "CM_PYTHON_BIN_WITH_PATH")
        if known and not _is_left_over(known, env, tags):
            text = known
    if not text:
        return None
    path = Path(os.path.expanduser(text))
    if not os.path.isfile(path):
        raise RequestError(
            f'the interpreter {text} does not exist\nhint: cm run script "get python3" finds those that do'
        )
    return Path(os.path.abspath(path))


def _is_left_over(known: str, env: Mapping[str, Any], tags: tuple[str, ...]) -> bool:
    if "virtual" in tags or str(Path(known).parent) == str(env.get("CM_PYTHON_INSTALLED_PATH", "")):
        return False
    environment = str(env.get("CM_VIRTUAL_ENV_PATH", "") or "")
    return bool(env.get("CM_PYTHON_CACHE_TAGS")) or bool(environment and Path(environment) in Path(known).parents)


def _given_folders(env: Mapping[str, Any]) -> tuple[Path, ...]:
    """The folders of --path. One that does not exist is an error unless CM_TMP_PATH_IGNORE_NON_EXISTANT is "yes"."""
    given = env.get("CM_TMP_PATH") or ""
    texts = [str(text).strip() for text in (given if isinstance(given, list) else str(given).split(os.pathsep))]
    folders = [Path(os.path.expanduser(text)) for text in texts if text]
    missing = [str(folder) for folder in folders if not os.path.isdir(folder)]
    if missing and str(env.get("CM_TMP_PATH_IGNORE_NON_EXISTANT", "")).lower() != "yes":
        raise RequestError(
            f'not a folder: {", ".join(missing)} (from --path)\nhint: cm run script "get python3" searches PATH'
        )
    return tuple(Path(os.path.abspath(folder)) for folder in folders if os.path.isdir(folder))
