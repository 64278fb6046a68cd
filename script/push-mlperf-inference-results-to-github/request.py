"""Reads what the user asked for out of the env and the inputs of a call, and makes the calls of other recipes of it."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crowdperf.kit.privacy import SHORTEST_SECRET
from crowdperf.kit.secret_shapes import is_secret_name
from crowdperf.kit.user_paths import users_folder

from . import address

GATE_TAGS = "check,mlperf,submission"
HISTORY_TAGS = "get,git,history,_repo."
URL_SAFE = ":/@.-_~+"


def gate_inputs(i: dict[str, Any], round_name: str) -> dict[str, Any] | None:
    """The call of the gate, for the round that the user names or else this one; None when the user does not want it."""
    values = i["values"]
    if values["skip_check"]:
        return None
    more = {name: True for name in ("allow_synthetic", "rehearsal") if values[name]}
    version = str(i["input"].get("version") or round_name)
    more |= {"version": version} if version else {}
    return {"tags": GATE_TAGS, "submission_dir": str(values["submission_dir"]), **more}


def history_inputs(where: address.Address) -> dict[str, Any]:
    """The call of the recipe that keeps the history of the repository in the cache."""
    return {"tags": HISTORY_TAGS + quote(where.url, safe=URL_SAFE)}


def repository_address(i: dict[str, Any]) -> address.Address | None:
    """Where to push to; None when a clone of the user's says it. Raises AddressError."""
    values = i["values"]
    if values["repo_url"] is None and values["repo_path"]:
        return None
    found = address.parse_address(values["repo_url"] or "", users_folder(i["env"]))
    if values["rehearsal"] and not Path(found.url).is_dir():
        raise address.AddressError(f"a rehearsal is pushed into a folder of this machine only, not to {found.url}")
    return found


def rehearsal_identity() -> dict[str, str]:
    """Git's variables for the author of a rehearsal's commit, so that nobody has to set up git for it."""
    name, address = "Rehearsal", "rehearsal@localhost"
    roles = ("AUTHOR", "COMMITTER")
    return {f"GIT_{role}_{key}": value for role in roles for key, value in (("NAME", name), ("EMAIL", address))}


def secret_values(env: dict[str, Any]) -> tuple[str, ...]:
    """The values of the secret keys of the env."""
    found = (str(value) for key, value in env.items() if is_secret_name(key))
    return tuple(value for value in found if len(value) >= SHORTEST_SECRET)


def access_environment(env: dict[str, Any], where: address.Address | None) -> dict[str, str]:
    """The settings for git of CM_GIT_AUTH, with CM_GH_TOKEN or CM_GIT_SSH, as the engine gives them to run.sh files."""
    from recipe_engine.running.shell import git_access  # only a hook's process has the engine

    given = {**env, "CM_GIT_URL": where.url if where else ""}
    settings = git_access(given, os.environ.get("GIT_CONFIG_COUNT", ""))
    token = str(env.get("CM_GH_TOKEN") or "")
    return {**settings, **({"CM_GH_TOKEN": token} if settings and token else {})}


def repeat_command(inputs: dict[str, Any]) -> str:
    """The line that does the same again without pushing; it leaves out secrets and names them."""
    from recipe_engine.rules.rerun import given_line  # only a hook's process has the engine

    kept = {name: value for name, value in inputs.items() if name != "push"}
    kept["tags"] = ",".join(tag for tag in str(kept.get("tags", "")).split(",") if tag not in ("_push", "_dry-run"))
    line = given_line(kept)
    return f"{line.text}{' ...and ' + ', '.join(line.left_out) if line.left_out else ''}"
