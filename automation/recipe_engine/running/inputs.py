"""Refuses, or warns of, inputs of a call that its recipe does not read, before anything runs."""

from __future__ import annotations

import logging

from ..disk.repos import RecipeSource
from ..rules.inputs import (
    UnknownInput,
    refusal,
    refuse_dry_run,
    refuse_inputs,
    refuse_values,
    refuses_unknown,
    remarks_on_handles,
    remarks_on_inputs,
    unknown_inputs,
)
from ..rules.model import Recipe, Request

logger = logging.getLogger(__name__)


def check_inputs(recipe: Recipe, request: Request, source: RecipeSource, reported: set[str]) -> None:
    """Raises RequestError for inputs that the recipe refuses, and, if its repository or the caller is strict, for those
    that it does not declare, for values that are not among an input's choices, and for an ``--adr.NAME`` that is nearly
    the name of a dependency of the recipes of ``source``.

    Else the console is warned, once for each line in ``reported``; a hook may read what its recipe does not describe.
    """
    inputs = request.inputs
    action = str(inputs.get("action") or "run")
    if action == "run":
        refuse_dry_run(recipe, inputs)
    is_refused = refuses_unknown(recipe, inputs)
    unknown = unknown_inputs(recipe, inputs, action)
    if unknown and is_refused:
        raise refusal(recipe, unknown, inputs, action)
    refuse_inputs(recipe, inputs)
    refuse_values(recipe, inputs)
    lines = remarks_on_inputs(recipe, inputs)
    if is_refused and request.recursive_overrides:
        lines += remarks_on_handles(recipe, inputs, request.recursive_overrides, source.dependency_names)
    lines += [_warning(recipe, each) for each in unknown if each.meant or not _names_input(recipe, each.name)]
    for line in dict.fromkeys(lines) if inputs.get("out") else ():
        if line not in reported:
            reported.add(line)
            logger.warning("! %s", line)


def _names_input(recipe: Recipe, name: str) -> bool:
    """Whether the text of the recipe's hooks holds an input's name."""
    return any(name in path.read_text(encoding="utf-8", errors="replace") for path in recipe.path.glob("*.py"))


def _warning(recipe: Recipe, unknown: UnknownInput) -> str:
    text = unknown.text(recipe.id.alias)
    return text if "no effect" in text or unknown.meant else f"{text}; it has no effect"
