"""Makes the calls of a plan, one after the other, and shows their answers in the workspace.

Effects: calls recipes, makes links and folders below the workspace, prints. The story goes to stderr; stdout gets what
those calls print whose output is the answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlperf_results.names import Mode
from mlperf_results.recipecalls import SCRIPT_AUTOMATION
from mlperf_results.wholefile import read_object

from . import views
from .calls import RecipeCall, View
from .plans import Plan
from .request import MakeError

INNER = {Mode.PERFORMANCE: "performance/run_1", Mode.ACCURACY: "accuracy"}


class CallFailed(Exception):
    """A recipe ended with an error that the others cannot go on after; `answer` is CM's answer."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(str(answer.get("error", "")))
        self.answer = dict(answer)


def perform(
    plan: Plan, access: Callable[[dict[str, Any]], dict[str, Any]], common: Mapping[str, Any], folder: Path
) -> list[str]:
    """Makes the calls, each with the inputs `common`, too; gives what did not pass. Raises CallFailed and MakeError."""
    problems = [line for copy in plan.copies for line in _copied(copy, folder)]
    for number, call in enumerate(plan.calls, start=1):
        say(f"\n[{number}/{len(plan.calls)}] {call.line}")
        own = {"action": "run", "automation": SCRIPT_AUTOMATION, "tags": call.tags, "quiet": True}
        with output_of(call, folder):
            answer = access({**common, **call.inputs, **own})
        if answer["return"] == 0:
            problems += not_passed(answer)
            for view in call.views:
                show(view, answer, call.line, folder)
        elif call.may_fail:
            say(str(answer.get("error", "")))
            problems.append(f"{call.line}: {str(answer.get('error', '')).splitlines()[0]}")
        else:
            raise CallFailed(answer)
    return problems


def say(text: str) -> None:
    """A line of the story."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def output_of(call: RecipeCall, folder: Path) -> Iterator[None]:
    """Sends what a call prints, its children's output too, to where it belongs."""
    if call.is_answer and not call.log:
        yield
        return
    sys.stdout.flush()
    saved, log = os.dup(1), folder / call.log
    handle = 2
    if call.log:
        log.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(handle, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
        if call.log:
            os.close(handle)
            print(log.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
            say(f"kept in {log}")


def show(view: View, answer: Mapping[str, Any], line: str, folder: Path) -> None:
    """Shows an answer in the workspace. Raises MakeError where something else is in its place."""
    if view.kind == "run":
        _show_run(view, line, folder)
        return
    env = answer.get("new_env") or {}
    path = next((Path(str(env[key])) for key in view.keys if env.get(key)), None)
    if path is None:
        raise MakeError(f"{line} gave none of {', '.join(view.keys)}")
    target = path.parent if view.kind == "folder" and path.is_file() else path
    views.link(folder, view.place, target, line)
    say(f"{view.place} -> {target}")


def _show_run(view: View, line: str, folder: Path) -> None:
    """The runs of a scenario in the folder that NVIDIA's harness would have; the system's other name is a link."""
    for mode in view.modes:
        place = folder / view.place / (INNER[mode] if len(view.modes) > 1 else "")
        views.show_folder(folder / view.source / INNER[mode], place)
    views.note(folder, {"place": view.place, "target": view.source, "made_by": line, "kind": "run"})
    system = (folder / view.place).parents[1]
    alias = system.with_name(system.name.rpartition("_")[0])
    if not alias.is_symlink() and not alias.exists():
        alias.symlink_to(system.name)
    say(f"logs: {folder / view.place}")


def not_passed(answer: Mapping[str, Any]) -> list[str]:
    """Why runs do not pass: INVALID, or below the accuracy target."""
    problems = []
    for row in ((answer.get("new_state") or {}).get("mlperf_results") or {}).get("scenarios", ()):
        name = f"{row['model']} {row['scenario']}" if "model" in row else row["scenario"]
        parts = [part for part in (row["performance"], row["accuracy"]) if part is not None]
        problems += [f"{name} is INVALID: {'; '.join(part['invalid_reasons'])}" for part in parts if not part["valid"]]
        if row["accuracy"] is not None and row["accuracy"].get("passed") is False:
            problems.append(f"{name} is below its accuracy target; the score is recorded")
    return problems


def _copied(view: View, folder: Path) -> list[str]:
    """Copies what a submission holds, or the compliance tests that passed; gives those that did not."""
    problems = []
    if view.kind == "stage":
        views.stage(folder, view.place)
        return []
    for test in sorted((folder / view.source).glob("TEST*")):
        if (read_object(test / "compliance.json") or {}).get("passed"):
            count = views.copy_test(test, folder / view.place / test.name)
            print(f"{view.place}/{test.name}: {count} files", flush=True)
        else:
            problems.append(f"{view.source}/{test.name} has not passed; it was not copied")
    return problems
