"""Hooks of the recipe get-python3: choose an interpreter and describe it in env.

`request.py` says what is asked for, `interpreters.py` finds and asks interpreters, `versions.py` compares versions.
Where none is suitable, exact commands to install one are printed. Nothing is installed here.

Commands as in the documents of pyenv ("Install additional Python versions") and uv ("Installing a specific version");
names of packages as Debian, Fedora, openSUSE and Homebrew build them. A distribution has few versions, so its command
stands last.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import interpreters, request, versions
from .versions import Limits

PACKAGES: Mapping[str, str] = {
    "apt-get": "sudo apt-get install -y python{minor} python{minor}-venv",
    "dnf": "sudo dnf install -y python{minor}",
    "zypper": "sudo zypper install -y python{joined}",
    "brew": "brew install python@{minor}",
}
"""Package tool -> the command for a minor version such as 3.10."""
PROGRAMS = ("pyenv", "uv", *PACKAGES)


def ways(limits: Limits, available: Container[str]) -> tuple[str, ...]:
    """The lines that tell how to get a version within the limits with the programs that are available."""
    minor = limits.minor
    if not minor:
        return ()
    version = limits.exact if limits.exact.count(".") == 2 else minor
    lines = [f"  or get {version}, then rerun the same command (the recipe neither builds nor installs one):"]
    if "pyenv" in available:
        lines.append(f"    pyenv install {version}    # builds it from source, needs a compiler and headers")
    uv = "uv" if "uv" in available else "python3 -m venv uv-venv && uv-venv/bin/pip install uv && uv-venv/bin/uv"
    lines.append(f"    {uv} python install {version}    # a finished build, no root")
    package_tool = next((name for name in PACKAGES if name in available), "")
    if package_tool:
        command = PACKAGES[package_tool].format(minor=minor, joined=minor.replace(".", ""))
        lines.append(f"    {command}    # if the distribution has {minor}, in its own patch version")
    return tuple(lines)


NOT_FOUND_CODE = 16  # CM's code for "not found"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end; which interpreter fits, and its version, are known only then."""
    tags = str(i["input"].get("extra_cache_tags") or "").split(",")
    return {"return": 0, "add_extra_cache_tags": [] if "virtual" in tags else ["non-virtual"]}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the keys of the interpreter that fits; returns CM's answer with its version and cache tags."""
    env = i["env"]
    try:
        asked = request.from_env(env, i["input"] if isinstance(i.get("input"), dict) else {})
        chosen = choose(asked, _candidates(asked))
    except request.NoPythonFits as error:
        commands = ways(asked.limits, frozenset(filter(shutil.which, PROGRAMS)))
        return {"return": NOT_FOUND_CODE, "error": "\n".join((str(error), *commands))}
    except request.RequestError as error:
        return {"return": NOT_FOUND_CODE, "error": str(error)}
    tags = request.cache_tags(asked, chosen.version)
    env.update(env_of(chosen))
    env["CM_PYTHON_CACHE_TAGS"] = ",".join(tags)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = str(chosen.path)
    return {"return": 0, "version": chosen.version, "add_extra_cache_tags": list(tags)}


def choose(asked: request.Request, candidates: Iterable[Path]) -> interpreters.Interpreter:
    """The first candidate that runs and fits the versions asked for.

    Raises NoPythonFits that lists every candidate with the reason why it is not the one.
    """
    rejected: list[str] = []
    found: list[str] = []
    seen: set[interpreters.Identity] = set()
    for path in candidates:
        before = interpreters.identity(path)
        if before in seen:
            continue
        seen.add(before)
        answer = interpreters.ask(path)
        if isinstance(answer, interpreters.Unusable):
            rejected.append(f"{path}: {answer.reason}")
            continue
        after = interpreters.identity(answer.path)
        if after != before and after in seen:
            continue
        seen.add(after)
        reason = versions.misfit(answer.version, asked.limits)
        if not reason:
            return answer
        found.append(answer.version)
        rejected.append(f"{answer.path}: {reason}")
    raise request.no_python_fits(asked, tuple(rejected), tuple(found))


def env_of(chosen: interpreters.Interpreter) -> dict[str, str]:
    """CM's keys for an interpreter."""
    major, minor, patch = versions.numbers(chosen.version)
    return {
        "CM_PYTHON_BIN": chosen.path.name,
        "CM_PYTHON_BIN_PATH": str(chosen.path.parent),
        "CM_PYTHON_BIN_WITH_PATH": str(chosen.path),
        "CM_PYTHON_VERSION": chosen.version,
        "CM_PYTHON_MAJOR_VERSION": str(major),
        "CM_PYTHON_MINOR_VERSION": str(minor),
        "CM_PYTHON_PATCH_VERSION": str(patch),
    }


def _candidates(asked: request.Request) -> Iterable[Path]:
    if asked.only is not None:
        return (asked.only,)
    if asked.folders:
        return interpreters.in_folders(asked.folders)
    return interpreters.on_this_host(os.environ, Path(os.path.expanduser("~")))
