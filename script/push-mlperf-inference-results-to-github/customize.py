"""Hooks of push-mlperf-inference-results-to-github: check a submission, show what a push would do, push when asked.

`request.py` reads the call, `address.py` keeps logins out of sight, `content.py` reads and checks the submission,
`changes.py` compares, `gitwork.py` runs git, `publication.py` is the way from beginning to end.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from dataclasses import replace
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import RecipeFailed, run_recipe
from crowdperf.kit.privacy import known_here
from crowdperf.rules.names import printable

from . import address, content, gitwork, publication, request

HISTORY_REMOTE = "origin"
"""The remote that get-git-history sets up; only by its name git leaves out the files of others."""

COMMAND = "cm run script --tags=push,github,mlperf,inference,submission --submission_dir=DIR --repo_url=ADDRESS"
LOGIN_HINT = (
    "is the address right, the connection up, the login known to git? CM_GH_TOKEN with CM_GIT_AUTH=yes is one way"
)


def plan(i):
    """Crowdperf hook of `cm plan script`: the recipe calls that preprocess will make; changes nothing."""
    try:
        where = request.repository_address(i)
    except address.AddressError as error:
        return failure(f"{error}\nhint: {COMMAND}")
    is_cached = where is not None and i["values"]["repo_path"] is None
    runs = [request.gate_inputs(i, ""), request.history_inputs(where) if is_cached else None]
    return {"return": 0, "runs": [run for run in runs if run]}


def preprocess(i):
    """CM hook: does all of it. Error when the submission must not be pushed or the push did not happen."""
    values = i["values"]
    folder = values["submission_dir"]
    if folder is None or not folder.is_dir():
        return failure(f"there is no submission in {folder or '--submission_dir'}\nhint: {COMMAND}")
    try:
        where = request.repository_address(i)
        found = content.read_content(folder, values["submitter"] or "")
        content.check_sizes(found, int(values["largest_mb"] * content.MEGABYTE))
    except address.AddressError as error:
        return failure(f"{error}\nhint: {COMMAND}")
    except content.ContentError as error:
        return failure(error)
    try:
        return push(i, where, found)
    except RecipeFailed as error:
        return error.answer
    except gitwork.GitError as error:
        return failure(f"{error}\nhint: {error.hint or LOGIN_HINT}")
    except (publication.PushError, content.ContentError) as error:
        return failure(error)


def push(i, where: address.Address | None, found: content.Content) -> dict:
    """Pushes a submission, or shows what would be pushed; CM's answer. Raises GitError, PushError, ContentError,
    RecipeFailed."""
    env, values = i["env"], i["values"]
    login = address.login_environment(where, os.environ) if where else {}
    settings = login or request.access_environment(env, where)
    identity = request.rehearsal_identity() if values["rehearsal"] else {}
    environment = gitwork.process_environment(os.environ, {**settings, **identity})
    public = (*(values["public"] or ()), found.submitter, *found.systems)
    known = known_here(gitwork.emails(environment), public)
    secrets = (*known.secrets, *request.secret_values(env), *(where.secrets if where else ()))
    known = replace(known, secrets=secrets)
    message, branch = values["commit_message"], values["branch"] or ""
    content.check_privacy(found, {"commit message": message, "branch": branch}, known)
    gate = request.gate_inputs(i, content.round_of(found))
    access = i["automation"].cmind.access
    if gate is not None:
        try:
            run_recipe(access, gate)
        except RecipeFailed as error:
            return {**error.answer, "error": f"{error}\nrefused by the submission checker: no files were pushed"}
    if values["repo_path"] is not None:
        folder = gitwork.folder_of_clone(values["repo_path"], environment)
        remote = where.url if where else gitwork.remote_of_clone(folder, environment)
    else:
        answer = run_recipe(access, request.history_inputs(where))
        folder, remote = Path(answer["new_env"]["CM_GIT_HISTORY_PATH"]), HISTORY_REMOTE
    order = publication.Order(
        content=found,
        branch=branch,
        message=message + "\n",
        is_push=bool(values["push"]),
        is_pruning=bool(values["prune"]),
        command=request.repeat_command(i["input"]),
    )
    with gitwork.locked(folder) as number:
        repository = gitwork.Repository(
            folder=folder, remote=remote, known=known, environment=environment, lock_number=number
        )
        outcome = publication.work(repository, order, lambda line: print(printable(line), flush=True))
        i["state"]["mlperf_push"] = publication.record(repository, found, outcome)
    if outcome.is_pushed:
        print(f"Pushed commit {outcome.commit} to branch {outcome.branch.name}.")
    elif outcome.commit is None:
        print(f"No files were pushed yet. To push exactly this:\n  {order.command} --push")
    env["CM_MLPERF_RESULTS_PUSHED_COMMIT"] = outcome.commit or ""
    return {"return": 0}
