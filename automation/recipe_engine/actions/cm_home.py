"""From cmind's object to plain facts about where things are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..disk.repos import RepoInfo
from .beside import check_first
from .run import Home


def home_of(cmind: Any) -> Home:
    """The registered repositories, CM's home and its local repository, read from a loaded ``cmind`` object.

    Raises RequestError when another engine comes before this one.
    """
    repos = [
        RepoInfo(Path(repo.path_with_prefix), str(repo.meta.get("alias", "")), str(repo.meta.get("uid", "")))
        for repo in cmind.repos.lst
    ]
    check_first(repos)
    home = Path(cmind.repos_path)
    local = [repo.path for repo in repos if repo.alias == "local"]
    return Home(repos=repos, path=home, local_repo=local[0] if local else home / "repos" / "local")
