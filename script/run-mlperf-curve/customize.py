"""Hooks of run-mlperf-curve: a curve of MLPerf Endpoints, measured by MLCommons' client as the points of a sweep.

What a curve is stands in `crowdperf/curves`; `commands.py` checks and shows finished ones.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from pathlib import Path
from typing import Any

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import RecipeFailed, given_inputs, run_recipe
from crowdperf.curves.curve import PAGE, Client, CurveRun, curve_points, plan_text
from crowdperf.curves.official import OfficialError
from crowdperf.curves.page import summary_text
from crowdperf.curves.probe import ProbeError, probe
from crowdperf.curves.request import CurveRequest, Inputs, read_request
from crowdperf.endpoints.findings import grouped
from crowdperf.endpoints.readtree import TREE, tree_of_curve
from crowdperf.kit.privacy import known_here, masked
from crowdperf.kit.user_paths import users_folder
from crowdperf.rules.names import printable_lines
from crowdperf.sweeps.commands import say
from crowdperf.sweeps.executor import ExecutorError
from crowdperf.sweeps.folder import State
from crowdperf.sweeps.local import LocalExecutor
from crowdperf.sweeps.sweep import Conduct, FolderInUse, exit_code

from . import commands

ACTION_KEY = "CM_MLPERF_CURVE_ACTION"
HINT = "hint: cm help script run-mlperf-curve   # its inputs, with what each may be"
FOLDER_HINT = "hint: cm run script --tags=run,mlperf,curve,_{} --curve_dir=results/NAME-curve"
FAILURES = (ValueError, OfficialError, ProbeError, FolderInUse, ExecutorError, OSError)


def refused(error: Exception | str, action: str = "") -> dict[str, Any]:
    """CM's answer for a call that cannot be carried out."""
    hint = FOLDER_HINT.format(action) if action in ("check", "view") else HINT
    if isinstance(error, ProbeError):
        hint = "hint: rerun the command once the server answers (no file was written)"
    return failure(printable_lines(str(error)), hint)


def command_of(i: dict[str, Any]) -> str:
    """The line that makes the curve again."""
    from recipe_engine.rules.rerun import given_line  # only a hook's process has the engine

    return given_line({**given_inputs(i), "tags": "run,mlperf,curve"}).text


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: checks the inputs; the points are no recipe calls. Changes nothing."""
    if i["env"].get(ACTION_KEY) in ("check", "view") or i["values"]["from_recorded"]:
        return {"return": 0, "runs": []}
    try:
        read_request(i["values"], users_folder(i["env"]))
    except FAILURES as error:
        return refused(error)
    return {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: makes, plans, checks or shows a curve. Codes: 1 wrong request, 2 no valid result, 16 no client."""
    given = Inputs(i["values"], users_folder(i["env"]))
    action = "plan" if i["values"]["plan"] else i["env"].get(ACTION_KEY, "")
    try:
        if action == "check":
            return check(i, given)
        if action == "view":
            say("\n".join(commands.view(given, Path(i["env"]["CM_MLPERF_ENDPOINTS_VIEWER_BIN_WITH_PATH"]))))
            return {"return": 0}
        if given.values["from_recorded"]:
            return from_recorded(i, given)
        request = read_request(given.values, given.here)
        if action == "plan":
            return show_plan(i, request)
        return measure(i, given, request)
    except FAILURES as error:
        return refused(error, action)


def show_plan(i: dict[str, Any], request: CurveRequest) -> dict[str, Any]:
    """Prints what a run would measure; the client need not be there."""
    points = request.point_inputs("", "")
    say(plan_text(request, points))
    i["state"]["mlperf_curve"] = {
        "name": request.name,
        "points": [{"name": one.name, "concurrency": one.concurrency, "floor_s": one.floor_s,
                    "accuracy": one.has_accuracy} for one in points],
        "notes": list(request.notes),
    }  # fmt: skip
    return {"return": 0}


def check(i: dict[str, Any], given: Inputs) -> dict[str, Any]:
    """Checks a tree by both checkers; an error when one refuses it."""
    checked = commands.check_both(given, Path(i["env"]["CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH"]))
    say("\n".join(checked.lines))
    i["state"]["mlperf_curve_check"] = {
        "own_errors": checked.own_errors, "official_errors": checked.official_errors, "findings": list(checked.lines),
    }  # fmt: skip
    if checked.is_accepted:
        return {"return": 0}
    counts = f"{checked.official_errors} errors of the official checker, {checked.own_errors} of the rules E1 to E19"
    return {"return": 1, "error": f"the tree is refused: {counts}"}


def results_folder(given: Inputs, name: str) -> Path:
    """Where a curve goes."""
    return Path(given.values["results_dir"].resolve(), name)


def from_recorded(i: dict[str, Any], given: Inputs) -> dict[str, Any]:
    """Lays recorded runs out as a tree and shows what the rules E1 to E19 find."""
    target = results_folder(given, given.text("curve", "recorded")) / TREE
    submission = commands.tree_from_recorded(given, given.values["from_recorded"].resolve(), target)
    say("\n".join(grouped(commands.own_check(given, submission, {}).findings)))
    return finished(i, submission, submission)


def finished(i: dict[str, Any], submission: Path, folder: Path) -> dict[str, Any]:
    """Says where the tree is and how it is checked. folder: the curve's, or the tree where there is none."""
    i["env"]["CM_MLPERF_CURVE_TREE"] = str(submission)
    where = shlex.quote(str(folder))
    say(f"Tree:  {submission}\nCheck: cm run script --tags=run,mlperf,curve,_check --curve_dir={where}")
    return {"return": 0}


def measure(i: dict[str, Any], given: Inputs, request: CurveRequest) -> dict[str, Any]:
    """Asks the server one question, then makes what is missing of the curve, its tree and its page."""
    conduct = Conduct(rerun=given.values["rerun"] or (), retries=given.values["retries"], at_once=1)
    answered = probe(request.settings.url, request.settings.model, request.settings.key_variable)
    path = {"path": str(client)} if (client := given.path("client")) else {}
    try:
        found = run_recipe(i["automation"].cmind.access, {"tags": "get,mlperf,endpoints,client", **path})
    except RecipeFailed as error:
        return error.answer
    keys = found["new_env"]
    start = "CM_MLPERF_ENDPOINTS_CLIENT"
    known = {name: keys[f"{start}_{name}"].replace("unknown", "") for name in ("VERSION", "COMMIT")}
    client = Client(program=Path(keys[f"{start}_WITH_PATH"]), version=known["VERSION"], commit=known["COMMIT"])
    say(f"server: first token after {answered.first_token_s * 1000:.0f} ms, {answered.pieces} pieces, "
        f"finish reason {answered.finish_reason}")  # fmt: skip
    say("\n".join(f"note: {note}" for note in (*answered.notes, *request.notes)))
    shown = masked(command_of(i), known_here())
    run = CurveRun(request=request, client=client, folder=results_folder(given, request.name),
                   submission=given.path("submission"), command=shown, say=say)  # fmt: skip
    states = run.make(LocalExecutor(say=say), conduct)
    return close(i, given, run, states)


def close(i: dict[str, Any], given: Inputs, run: CurveRun, states: dict[str, State]) -> dict[str, Any]:
    """Writes tree and page of what was measured, and gives CM's answer."""
    points = curve_points(run.request, run.client, run.folder)
    code = exit_code(states, list(states))
    submission: Path | None = None
    findings: tuple[str, ...] = ()
    if code == 0:
        submission = run.tree(points)
        findings = grouped(commands.own_check(given, *tree_of_curve(run.folder)).findings)
    page = run.collect(points, findings)
    say(f"\n{summary_text(page)}\nPage:  {run.folder / PAGE}\nAgain: {command_of(i)}")
    i["env"]["CM_MLPERF_CURVE_PATH"] = str(run.folder)
    i["state"]["mlperf_curve"] = {"folder": str(run.folder), "states": {key: one.value for key, one in states.items()}}
    if submission is not None:
        return finished(i, submission, run.folder)
    wrong = "\n  ".join(f"{one.name}: {one.state}" for one in page.rows if one.state != State.DONE.value)
    hint = "hint: rerun the command for the missing points. Add --rerun=invalid,failed to repeat these too"
    return {"return": code, "error": f"points without a valid result:\n  {wrong}\n{hint}"}
