"""Makes the calls of a plan, one after the other, and shows their answers in the workspace.

Effects: calls recipes, makes links and folders below the workspace, prints. The story goes to stderr; stdout gets what
those calls print whose output is the answer.
"""

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from itertools import takewhile
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe

from . import views
from .plans import Plan, RecipeCall
from .request import MakeError

_AFTER_REASON = re.compile(r"\s*(chain|hint|resume): ")
"""Where in an error of the engine its reason ends."""


def perform(plan: Plan, access: Access, common: Mapping[str, Any], folder: Path) -> list[str]:
    """Makes the calls, each with the inputs `common`, too; gives what did not pass. Raises RecipeFailed, MakeError."""
    refuse_impossible(plan, access, common)
    problems = [line for copy in plan.copies for line in views.show(copy, {}, "", folder)]
    for number, call in enumerate(plan.calls, start=1):
        views.say(f"\n[{number}/{len(plan.calls)}] {call.line}")
        try:
            with output_of(call, folder):
                if call.is_planned_first:
                    _plan(call, access, common)
                answer = run_recipe(access, {**common, **call.inputs, "tags": call.tags})
        except RecipeFailed as error:
            if not call.may_fail:
                raise
            views.say(str(error))
            problems.append(f"{call.line}: {str(error).splitlines()[0].removesuffix(' Tried:')}")
            continue
        problems += not_passed(answer)
        problems += [line for view in call.views for line in views.show(view, answer, call.line, folder)]
    return problems


def refuse_impossible(plan: Plan, access: Access, common: Mapping[str, Any]) -> None:
    """Raises MakeError for an engine that cannot be made, before anything is installed for any.

    The engine plans what a user calls first, and not what a recipe calls.
    """
    for call in plan.calls:
        if call.views and not call.may_fail:
            try:
                _plan(call, access, common)
            except RecipeFailed as error:
                said = "\n".join(takewhile(lambda line: not _AFTER_REASON.match(line), str(error).splitlines()))
                hint = (
                    "make ... SOURCE=tiny tries it with a small synthetic model, make plan TARGET=... shows all steps"
                )
                raise MakeError(said, hint, code=error.answer["return"]) from None


def _plan(call: RecipeCall, access: Access, common: Mapping[str, Any]) -> None:
    """Plan a call, which prints nothing. Raises RecipeFailed with the whole error of the run."""
    request = {**common, **call.inputs, "tags": call.tags, "before_run": True, "silent": True}
    try:
        with redirect_stdout(io.StringIO()):
            run_recipe(access, request, "plan")
    except RecipeFailed as error:
        whole = str((error.answer.get("plan", {}).get("errors") or [error])[0])
        raise RecipeFailed({**error.answer, "error": whole.removeprefix("the run would fail: ")}) from None


@contextmanager
def output_of(call: RecipeCall, folder: Path) -> Iterator[None]:
    """Sends what a call prints, its children's output too, to where it belongs: a log is printed at the end."""
    log = folder / call.log
    if call.log:
        log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    saved = os.dup(1)
    with open(log, "wb") if call.log else nullcontext(sys.stdout if call.is_answer else sys.stderr) as target:
        os.dup2(target.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
        if call.log:
            print(log.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
            views.say(f"kept in {log}")


def not_passed(answer: Mapping[str, Any]) -> list[str]:
    """Why runs do not pass, as run-mlperf-inference says it: INVALID, below the accuracy target, or not made."""
    results = (answer.get("new_state") or {}).get("mlperf_results") or {}
    problems = [problem for row in results.get("scenarios", ()) for problem in row["problems"]]
    return [f"{results['model']} {problem}" for problem in (*problems, *results.get("missing", ()))]
