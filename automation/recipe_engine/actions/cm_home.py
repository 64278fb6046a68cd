"""From cmind's object to the engine: where things are, and which of several engines answers.

CM gives the commands of ``cm ... script`` to the automation it finds first. Repositories such as mlcommons@cm4mlops
bring script and cache automations with the same UIDs as ours; CM's index keeps the one of the repository registered
first and does not say so. ``home_of`` refuses to work in the wrong order, ``use_action`` puts this repository first.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..disk.checkout import CHECKOUT
from ..disk.files import read_json, write_text
from ..disk.repos import RepoInfo
from ..rules.errors import RequestError
from .report import answer_cm
from .run import Home

logger = logging.getLogger(__name__)


def answer(cmind: Any, i: dict[str, Any], function: str, *facts: str) -> dict[str, Any]:
    """What ``module.function`` of this package answers to ``i``; its further arguments are ``home`` or ``cmind``.

    The module is imported when it is called, so that a run does not load the other actions.
    """

    def act(i: Mapping[str, Any]) -> dict[str, Any]:
        module, _, name = function.partition(".")
        action = getattr(import_module(f"{__package__}.{module}"), name)
        answered: dict[str, Any] = action(i, *(home_of(cmind) if fact == "home" else cmind for fact in facts))
        return answered

    return answer_cm(act, i, cmind)


def home_of(cmind: Any) -> Home:
    """The registered repositories, CM's home and its local repository, read from a loaded ``cmind`` object.

    Raises RequestError when another engine comes before this one.
    """
    repos = _repos(cmind)
    check_first(repos)
    home = Path(cmind.repos_path)
    local = [repo.path for repo in repos if repo.alias == "local"]
    return Home(repos=repos, path=home, local_repo=local[0] if local else home / "repos" / "local")


def _repos(cmind: Any) -> list[RepoInfo]:
    return [
        RepoInfo(
            Path(repo.path_with_prefix),
            str(repo.meta.get("alias", "")),
            str(repo.meta.get("uid", "")),
            "literal" if repo.meta.get("values") == "literal" else "cm",
        )
        for repo in cmind.repos.lst
    ]


def loaded_artifacts(cmind: Any, artifact: type, paths: Sequence[Path]) -> dict[str, Any]:
    """CM's answer of a search: each path as one of cmind's ``artifact``, with its metadata and the repository it is in.

    A cache outside all repositories counts as the local one's: cmind's own actions (update, copy) look it up.
    """
    by_path = {Path(repo.path_with_prefix): repo for repo in cmind.repos.lst}
    local = by_path.get(home_of(cmind).local_repo)
    loaded = []
    for path in paths:
        found = artifact(cmind=cmind, path=str(path))
        repo = by_path.get(path.parent.parent) or local
        if repo:
            found.repo_path, found.repo_meta = repo.path_with_prefix, repo.meta
        found.load()
        loaded.append(found)
    return {"return": 0, "list": loaded}


def rival_automations(repos: Sequence[RepoInfo]) -> tuple[RepoInfo | None, list[RepoInfo], list[RepoInfo]]:
    """This repository, and those with a script automation of their own before and behind it; nothing when this one is
    not among ``repos``.
    """
    number = next((number for number, repo in enumerate(repos) if _is_own(repo.path)), None)
    if number is None:
        return None, [], []
    before, behind = (list(filter(_has_automation, part)) for part in (repos[:number], repos[number + 1 :]))
    return repos[number], before, behind


def _is_own(path: Path) -> bool:
    return path == CHECKOUT or os.path.realpath(path) == os.path.realpath(CHECKOUT)


def _has_automation(repo: RepoInfo) -> bool:
    folder = repo.path / "automation" / "script"
    return any((folder / name).is_file() for name in ("_cm.json", "_cm.yaml"))


def check_first(repos: Sequence[RepoInfo]) -> None:
    """Raises RequestError when another repository's engine comes before this one, or this one is there twice."""
    own, before, behind = rival_automations(repos)
    if own is None:
        return
    remedy = f"cm use {own.alias}:script"
    copies = [repo for repo in (*before, *behind) if repo.uid == own.uid]
    if copies:
        raise RequestError(
            f"two copies of {own.alias} are registered: {own.path} and {copies[0].path}",
            hint=f"remove the line of one of them from repos.json of the CM home, then: cm reindex repo; {remedy}",
        )
    if before:
        raise RequestError(
            f"two engines are registered for 'cm ... script': {before[0].path} ({before[0].alias}) comes first, so "
            f"'cm run script' runs its engine and not this one ({own.path})",
            hint=f"{remedy}   (puts {own.alias} first; the recipes of both then run here)",
        )


def use_action(i: Mapping[str, Any], cmind: Any) -> dict[str, Any]:
    """Answers ``cm use crowdperf:script``: this repository comes first in CM's list, and CM's index is rebuilt.

    Raises RequestError when something still comes before it.
    """
    path = Path(cmind.repos_path) / "repos.json"
    known = read_json(path)
    paths = [item for item in known if isinstance(item, str)] if isinstance(known, list) else []
    folder = Path(cmind.repos_path) / "repos"
    others = [item for item in paths if not _is_own(folder / item)]
    first = next((item for item in paths if _is_own(folder / item)), str(CHECKOUT))
    if paths != [first, *others]:
        write_text(path, json.dumps([first, *others], indent=2))
    cmind.repos.load(init=True)
    answered: dict[str, Any] = cmind.access({"action": "reindex", "automation": "repo,55c3e27e8a140e48"})
    if answered["return"] > 0:
        return answered
    _, before, behind = rival_automations(_repos(cmind))
    if before:
        raise RequestError(
            f"{before[0].path} still comes first: cmind puts Python packages whose name starts with 'cm' before all "
            "registered repositories",
            hint=f"pip uninstall {before[0].path.name}, or set CM_CORE_SKIP_INTERNAL_REPOS=yes in your shell",
        )
    if behind and not cmind.use_index:
        raise RequestError(
            "CM_INDEX is off in this shell: without its index cmind refuses two automations of one name",
            hint="unset CM_INDEX, or write crowdperf:script instead of script in every command",
        )
    names = ", ".join(f"{repo.alias} ({repo.path})" for repo in behind) or "none"
    logger.info("cm ... script and cm ... cache now run on %s; other engines, behind it: %s", CHECKOUT, names)
    return {"return": 0, "path": str(CHECKOUT), "behind": [str(repo.path) for repo in behind]}
