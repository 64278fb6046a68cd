"""Hooks of the recipe run-in-container: a recipe or commands inside a container, or the whole plan of it.

`request.py` checks what is asked for, `facts.py` looks, `plan.py` decides (its parts: `image.py`, `launch.py`,
`dockerfile.py`), `session.py` carries it out. Which engines there are, the recipe get-docker tells.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from crowdperf.machine import selection
from crowdperf.machine.probe import Machine

from . import facts, launch, request, session
from . import plan as planning
from .bases import Base
from .plan import Plan
from .shell_words import RequestError

CHECKOUT = Path(__file__).resolve().parents[2]
NO_ENGINE_CODE = 16  # CM's code for "not found"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned: it prints the plan and starts nothing."""
    i["env"]["CM_CONTAINER_IS_PLAN"], i["env"]["CM_CONTAINER_SAVE"] = "yes", ""
    return preprocess(i)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints the plan or carries it out; the code is that of what was run inside."""
    env, state = i["env"], i["state"]
    try:
        machine = selection.of_call(i)
        asked = request.request_of(env, i["values"], machine.environment)
        engines = list(state.get("container_engines") or [])
        # The checkout is on this machine, also where the plan is for a recorded one.
        checkout = facts.source(i.get("machine") or Machine(), str(CHECKOUT))
        folder = Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())
        known = facts.look(machine, engines, checkout, folder, "PLAN" if asked.is_plan else os.urandom(4).hex())
        made = planning.make(asked, known)
        _note(i, made)
        if asked.save:
            session.save(made)
        if asked.is_plan:
            print(planning.told(made))
            return {"return": 0}
        if made.trouble or machine.is_recorded:
            print(planning.told(made))
            return {"return": NO_ENGINE_CODE, "error": _no_engine(made, is_recorded=machine.is_recorded)}
        for note in made.notes:
            print(f"note: {note}", file=sys.stderr)
        output = 2 if (i.get("input") or {}).get("out") == "json" else 1
        outcome = session.carry_out(made, lambda base: _remade(asked, known, base), output)
    except (selection.MachineError, RequestError) as error:
        return {"return": 1, "error": str(error)}
    except OSError as error:
        hint = "  hint: TMPDIR, CM_REPOS and --cache_path name folders that have to be writable and have room"
        return {"return": 1, "error": f"a file for the container cannot be made: {error}\n{hint}"}
    done = outcome.plan or made
    _note(i, done)
    if asked.save and done != made:
        session.save(done)
    env["CM_DOCKER_CONTAINER_ID"] = outcome.container_id
    if outcome.container_id:
        _tell_detached(done)
    if outcome.code:
        return {"return": outcome.code, "error": _failed(outcome)}
    return {"return": 0}


def _remade(asked: request.Request, known: facts.Facts, base: Base) -> Plan:
    return planning.make(asked._replace(base=base), known)


def _note(i: dict[str, Any], made: Plan) -> None:
    """Puts the plan into env and state."""
    i["env"]["CM_CONTAINER_BASE_IMAGE"] = made.request.base.reference
    i["env"]["CM_CONTAINER_ENGINE"] = made.container.engine
    i["env"]["CM_CONTAINER_IMAGE"] = made.container.image
    i["state"]["container_plan"] = {
        "action": made.request.action,
        "file": made.text,
        "commands": [list(line) for line in planning.lines(made)],
        "notes": list(made.notes),
        "trouble": made.trouble,
        "commit": made.request.repo_commit or made.commit,
    }


def _no_engine(made: Plan, *, is_recorded: bool) -> str:
    if is_recorded:
        return "a recorded machine cannot start containers. The plan is shown above.\n  hint: add _plan"
    return (
        f"no container can be started here: {made.trouble}. The plan is shown above. It was not executed.\n"
        "  hint: cm run script --tags=get,docker shows the fix. For the plan alone add _plan"
    )


def _failed(outcome: session.Outcome) -> str:
    what = shlex.join(outcome.failed) if outcome.failed else "the shell in the container"
    return f"code {outcome.code}: {what}\n  hint: its output is shown above. Successful steps of the image are kept"


def _tell_detached(made: Plan) -> None:
    print(f"the container {made.container.name} keeps running. To use it and to end it:")
    for words in (launch.execute(made.container, ("COMMAND",)), *launch.end(made.container)):
        print(f"  {shlex.join(words)}")
