"""Living beside another engine: CM gives the commands of ``cm ... script`` to the automation it finds first.

Repositories such as mlcommons@cm4mlops bring script and cache automations with the same UIDs as ours. CM's index keeps
the one of the repository registered first and does not say so. ``check_first`` turns the wrong order into an error with
the mend, ``use_action`` is the mend: it puts this repository first.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..disk.checkout import CHECKOUT
from ..disk.files import read_json, write_text
from ..disk.repos import RepoInfo
from ..rules.errors import RequestError

logger = logging.getLogger(__name__)

"""The repository that this engine belongs to."""
MEND = "cm use {alias}:script"


def rival_automations(repos: Sequence[RepoInfo], checkout: Path) -> tuple[list[RepoInfo], list[RepoInfo]]:
    """The repositories with a script automation of their own before and behind ``checkout``; nothing when it is none
    of ``repos``.
    """
    own = next((number for number, repo in enumerate(repos) if _same(repo.path, checkout)), None)
    if own is None:
        return [], []
    rivals = [number for number, repo in enumerate(repos) if number != own and _has_script_automation(repo.path)]
    return [repos[number] for number in rivals if number < own], [repos[number] for number in rivals if number > own]


def _same(first: Path, second: Path) -> bool:
    return first == second or os.path.realpath(first) == os.path.realpath(second)


def _has_script_automation(repo: Path) -> bool:
    folder = repo / "automation" / "script"
    return any((folder / name).is_file() for name in ("_cm.json", "_cm.yaml"))


def check_first(repos: Sequence[RepoInfo], checkout: Path = CHECKOUT) -> None:
    """Raises RequestError when another repository's engine comes before this one, or this one is there twice."""
    before, behind = rival_automations(repos, checkout)
    own = next((repo for repo in repos if _same(repo.path, checkout)), None)
    if own is None:
        return
    copies = [repo for repo in (*before, *behind) if repo.uid == own.uid]
    if copies:
        raise RequestError(
            f"two copies of {own.alias} are registered: {own.path} and {copies[0].path}",
            hint=f"remove the line of one of them from repos.json of the CM home, then: cm reindex repo; {MEND}".format(
                alias=own.alias
            ),
        )
    if before:
        raise RequestError(
            f"two engines are registered for 'cm ... script': {before[0].path} ({before[0].alias}) comes first, so "
            f"'cm run script' runs its engine and not this one ({own.path})",
            hint=f"{MEND.format(alias=own.alias)}   (puts {own.alias} first; the recipes of both then run here)",
        )


def use_action(i: Mapping[str, Any], cmind: Any, checkout: Path = CHECKOUT) -> dict[str, Any]:
    """Answers ``cm use crowdperf:script``: this repository comes first in CM's list, and CM's index is made anew.

    Raises RequestError when something still comes before it.
    """
    path = Path(cmind.repos_path) / "repos.json"
    known = read_json(path)
    paths = [item for item in known if isinstance(item, str)] if isinstance(known, list) else []
    folder = Path(cmind.repos_path) / "repos"
    others = [item for item in paths if not _same(folder / item, checkout)]
    first = next((item for item in paths if _same(folder / item, checkout)), str(checkout))
    if paths != [first, *others]:
        write_text(path, json.dumps([first, *others], indent=2))
    cmind.repos.load(init=True)
    repos = [RepoInfo(Path(repo.path_with_prefix), repo.meta["alias"], repo.meta["uid"]) for repo in cmind.repos.lst]
    answer: dict[str, Any] = cmind.access({"action": "reindex", "automation": "repo,55c3e27e8a140e48"})
    if answer["return"] > 0:
        return answer
    before, behind = rival_automations(repos, checkout)
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
    names = ", ".join(f"{repo.alias} ({repo.path})" for repo in behind) or "none besides"
    logger.info("cm ... script and cm ... cache now run on %s; engines that stay behind it: %s", checkout, names)
    return {"return": 0, "path": str(checkout), "behind": [str(repo.path) for repo in behind]}
