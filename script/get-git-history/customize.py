"""Hooks of get-git-history: an empty bare repository in the cache that knows where to fetch from.

It asks for no files of old commits (`blob:none`, git-clone(1) under --filter), so that repositories with gigabytes of
logs cost megabytes. Whoever depends on it fetches what is needed, with credentials that this recipe never sees.
"""

import subprocess
from pathlib import Path
from urllib.parse import unquote

FOLDER = "history.git"
TIMEOUT_S = 60
HINT = "hint: cm run script --tags=get,git,history,_repo.https://github.com/OWNER/NAME"


def plan(i):
    """Crowdperf hook of `cm plan script`: nothing on disk is changed."""
    i["env"]["CM_GIT_HISTORY_PATH"] = str(Path.cwd() / FOLDER)
    return {"return": 0}


def preprocess(i):
    """CM hook: makes the repository; `_repo.` holds its address, with `%2C` for a comma."""
    env = i["env"]
    address = unquote(str(env.get("CM_GIT_URL") or ""))
    if not address or address.startswith("-"):
        return {"return": 1, "error": f"_repo.{address} is not an address of a git repository\n{HINT}"}
    folder = Path.cwd() / FOLDER
    git = ["git", f"--git-dir={folder}"]
    commands = [
        ["git", "init", "--quiet", "--bare", str(folder)],
        [*git, "config", "remote.origin.url", address],
        [*git, "config", "remote.origin.promisor", "true"],
        [*git, "config", "remote.origin.partialclonefilter", "blob:none"],
    ]
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        except FileNotFoundError:
            return {"return": 1, "error": "git is not installed\nhint: sudo apt-get install git"}
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            told = str(getattr(error, "stderr", "") or error).strip()
            return {"return": 1, "error": f"git cannot make {folder}: {told}\nhint: see the free space with df -h"}
    env["CM_GIT_HISTORY_PATH"] = str(folder)
    return {"return": 0}
