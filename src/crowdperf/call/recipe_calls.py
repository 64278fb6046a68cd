"""What hooks need to call other recipes: the name of CM's script automation, inputs that go on to each call, and the
inputs that give a run the shape of another one."""

from collections.abc import Mapping
from typing import Any

SCRIPT_AUTOMATION = "script,5b4e0237da074764"
"""CM's alias and uid of the automation that runs recipes."""

PASSED_ON_INPUTS = ("adr", "add_deps_recursive", "env")
"""Inputs of a call that also apply to every dependency."""


def passed_on_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call that the recipes below get too."""
    return {name: inputs[name] for name in PASSED_ON_INPUTS if inputs.get(name)}


def threads_in_all(settings: Mapping[str, Any]) -> int | None:
    """Return the input `threads` that gives a run the shape in `settings` (the part `run` of result.json), or None.

    The input counts the CPU threads of all instances, result.json those of one.
    """
    each, instances = ((settings.get(name) or {}).get("value") for name in ("threads", "instances"))
    return each * (instances or 1) if each else None
