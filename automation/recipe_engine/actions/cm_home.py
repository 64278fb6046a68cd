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
        RepoInfo(
            Path(repo.path_with_prefix),
            str(repo.meta.get("alias", "")),
            str(repo.meta.get("uid", "")),
            "literal" if repo.meta.get("values") == "literal" else "cm",
        )
        for repo in cmind.repos.lst
    ]
    check_first(repos)
    home = Path(cmind.repos_path)
    local = [repo.path for repo in repos if repo.alias == "local"]
    return Home(repos=repos, path=home, local_repo=local[0] if local else home / "repos" / "local")


def loaded_artifact(artifact: Any, home: Home) -> Any:
    """``artifact``, one of cmind's with its ``path`` only, with its metadata and the repository it is in.

    A cache outside all repositories counts as the local one's: cmind's own actions (update, copy) look it up.
    """
    cmind, path = artifact.cmind, Path(artifact.path)
    by_path = {Path(repo.path_with_prefix): repo for repo in cmind.repos.lst}
    repo = by_path.get(path.parent.parent) or by_path.get(home.local_repo)
    if repo:
        artifact.repo_path, artifact.repo_meta = repo.path_with_prefix, repo.meta
    artifact.load()
    return artifact
