"""What hooks need to call other recipes: the name of CM's script automation, inputs that go on to each call, and the
inputs that give a run the shape of another one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

SCRIPT_AUTOMATION = "script,5b4e0237da074764"
"""CM's alias and uid of the automation that runs recipes."""

PASSED_ON_INPUTS = ("adr", "add_deps_recursive", "env")
"""Inputs of a call that also apply to every dependency."""

Access = Callable[[dict[str, Any]], dict[str, Any]]
"""CM's function that performs an action and returns its answer."""


class RecipeFailed(Exception):
    """A recipe ended with an error. answer: CM's, with the code and the engine's own error, which names the recipe."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(str(answer.get("error", "no reason given")))
        self.answer = dict(answer)


def run_recipe(access: Access, inputs: Mapping[str, Any], action: str = "run") -> dict[str, Any]:
    """Run a recipe, without questions unless `inputs` allow them, and return CM's answer. Raises RecipeFailed.

    action: another one of CM's for the recipe, such as plan. An empty text in `inputs` counts as not given.
    """
    given = {name: value for name, value in inputs.items() if value != ""}
    answer = access({"quiet": True, **given, "action": action, "automation": SCRIPT_AUTOMATION})
    if answer["return"] > 0:
        raise RecipeFailed(answer)
    return answer


def passed_on_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call that the recipes below get too."""
    return {name: inputs[name] for name in PASSED_ON_INPUTS if inputs.get(name)}


def given_inputs(i: Mapping[str, Any], left_out: Iterable[str] = ()) -> dict[str, Any]:
    """Return the inputs that the call of a hook was given, with those that the recipes below get too. left_out: inputs
    that are not returned, nor are their aliases."""
    mapping: Mapping[str, str] = i["meta"]["input_mapping"]
    keys = {mapping[name] for name in left_out}
    names = [name for name in (*mapping, *PASSED_ON_INPUTS) if mapping.get(name) not in keys]
    return {name: value for name in names if (value := i["input"].get(name)) not in (None, "", {})}


def threads_in_all(settings: Mapping[str, Any]) -> int | None:
    """Return the input `threads` that gives a run the shape in `settings` (the part `run` of result.json), or None.

    The input counts the CPU threads of all instances, result.json those of one.
    """
    each, instances = ((settings.get(name) or {}).get("value") for name in ("threads", "instances"))
    return each * (instances or 1) if each else None
