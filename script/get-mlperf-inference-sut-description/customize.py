"""Hooks of get-mlperf-inference-sut-description: the 35 facts of a system, each with its origin, or the open questions.

`discovery.py` looks, `answers.py` has what the user said, `description.py` puts it together, `questions.py` asks.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import is_yes
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine import selection
from crowdperf.rules.names import counted

from . import answers, description, discovery, questions

TEMPLATE_NAME = "system_facts.yaml"
NAME_KEY = "CM_HW_NAME"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, but nobody is asked and nothing is written."""
    return _describe(i, is_run=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: the description in state CM_SUT_META, with origins in CM_SUT_DESCRIPTION; error with what is open."""
    return _describe(i, is_run=True)


def _call_facts(asked: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, description.Fact]:
    """What the call decides: division, submitter, category, framework and the run's software."""
    values = {
        "division": asked["division"],
        "submitter": asked["submitter"],
        "system_type": asked["category"],
        "framework": asked["framework"],
        "other_software_stack": inputs.get("software"),
    }
    found = {}
    for key, value in values.items():
        if value:
            try:
                found[key] = description.Fact(questions.checked(key, value), "given in the command")
            except questions.BadAnswer as error:
                raise answers.AnswersError(str(error)) from error
    return found


def _local_repo(i: dict[str, Any]) -> Path | None:
    """The folder of CM's local repository; None in a plan, which has no CM."""
    from recipe_engine.actions.adapter import home_of  # only a hook's process has the engine

    cmind = getattr(i.get("automation"), "cmind", None)
    return home_of(cmind).local_repo if cmind is not None else None


def _gather(i: dict[str, Any]) -> tuple[description.Sources, bool]:
    """All that is known, and whether the runs (if any) were made on this machine."""
    env, inputs, system = i["env"], i["input"], i["state"]["mlperf_system"]
    given = answers.from_call(inputs, env)
    if i["values"]["system_facts"]:
        given = {**answers.from_file(i["values"]["system_facts"]), **given}
    looked_at = selection.choose(str(env.get("CM_MLPERF_SYSTEM_MACHINE") or ""), users_folder(env)).machine
    machine = inputs.get("run_machine") or {}
    is_here = not machine or description.is_this_machine(machine, system)
    run = description.of_run(machine)
    if is_here:
        run.pop("operating_system", None)  # the detected one also names the distribution
    return (
        description.Sources(
            given=given,
            remembered={},
            call=_call_facts(i["values"], inputs),
            run=run,
            detected=discovery.detected(system, env, looked_at) if is_here else {},
        ),
        is_here,
    )


def _describe(i: dict[str, Any], *, is_run: bool) -> dict[str, Any]:
    env, state = i["env"], i["state"]
    try:
        sources, is_here = _gather(i)
    except (answers.AnswersError, selection.MachineError) as error:
        return {"return": 1, "error": f"{error}\nhint: correct the values, then rerun the command"}
    name = i["values"]["name"] or description.name_of(description.describe(sources))
    local = _local_repo(i)
    sources = dataclasses.replace(sources, remembered=answers.remembered(local, name) if local else {})
    found = description.describe(sources)
    missing = description.missing(found)
    if is_run and missing and _may_ask(env):
        print(
            f"{counted(len(missing), 'fact')} of the system {name} cannot be detected. An empty answer leaves one open."
        )
        said = questions.ask(missing, input, print)
        asked = {key: description.Fact(value, "answered on the terminal") for key, value in said.items()}
        sources = dataclasses.replace(sources, given={**sources.given, **asked})
        found = description.describe(sources)
        missing = description.missing(found)
    if is_run and local:
        answers.remember(local, name, sources.given)
    for key in ("hw_notes", "sw_notes"):
        found = description.with_note(found, key, " ".join((i["values"][f"{key}_extra"] or "").split()))
    env[NAME_KEY] = name
    state["CM_SUT_META"] = {key: fact.value for key, fact in found.items()}
    state["CM_SUT_DESCRIPTION"] = {
        "name": name,
        "is_this_machine": is_here,
        "facts": {key: {"value": fact.value, "origin": fact.origin} for key, fact in found.items()},
        "missing": list(missing),
        "questions": {key: questions.QUESTIONS[key] for key in missing},
        "template": questions.template(name, missing),
    }
    if not is_run:
        return {"return": 0}
    if missing and is_yes(env.get("CM_SUT_DESC_IS_COMPLETE_NEEDED")):
        return _refusal(env, name, missing)
    print(f"System {name}: {len(found) - len(missing)} of {len(found)} facts are known", flush=True)
    return {"return": 0}


def _may_ask(env: Mapping[str, Any]) -> bool:
    return not is_yes(env.get("CM_QUIET")) and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _refusal(env: Mapping[str, Any], name: str, missing: tuple[str, ...]) -> dict[str, Any]:
    """CM's answer when questions are open: the whole list, and a file with them (an existing one is left alone)."""
    path = users_folder(env) / TEMPLATE_NAME
    where = f"fill in {path} and add --system_facts={TEMPLATE_NAME}"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(questions.template(name, missing))
    except FileExistsError:
        where = f"write them to a file (there is a {TEMPLATE_NAME} already) and add --system_facts=FILE"
    except OSError:
        where = "write them as key: value lines to a file and add --system_facts=FILE"
    verb = "is" if len(missing) == 1 else "are"
    lines = [f"{counted(len(missing), 'fact')} of the system {name} {verb} not known and never invented:"]
    lines += [f"  {key}: {questions.QUESTIONS[key]}" for key in missing]
    first = missing[0]
    return {"return": 1, "error": "\n".join([*lines, f"hint: {where}, or --system.{first}=..."])}
