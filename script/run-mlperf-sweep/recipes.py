"""What the recipe of a sweep takes, as the engine knows it. Only a hook's process has the engine."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.sweeps.expand import OWN_INPUTS
from crowdperf.sweeps.planning import Program

ENGINE_INPUTS = frozenset(("adr", "add_deps_recursive", "ad", "add_deps", "env", "const", "mixed_versions", "version",
                           "version_max", "version_min"))  # fmt: skip
"""Inputs of every recipe that a point may have: they change what is run, not how the call behaves."""
OUTCOMES = {"run-mlperf-inference": "{id}/results.json"}
"""The file with the verdict, below the results folder of a call."""
NOT_SWEPT = ("compliance", "submission", "sweep", "curve")
"""Words in the tags of recipes that make many runs themselves, or work on finished ones."""
HOME_VARIABLES = ("CM_REPOS", "CM_HOME", "CROWDPERF_CACHE", "CROWDPERF_CM")


class UnknownRecipe(Exception):
    """No recipe has these tags, or it is none that can be swept."""


@dataclass(frozen=True)
class RecipeInputs:
    """`expand.InputRules` of a recipe (the engine's rules.model.Recipe)."""

    recipe: Any

    def is_input(self, name: str) -> bool:
        """Whether the recipe, or the engine for every recipe, has this input."""
        from recipe_engine.rules.inputs import declared_inputs

        return name in declared_inputs(self.recipe) or name.partition(".")[0] in ENGINE_INPUTS

    def problem(self, name: str, value: str) -> str:
        """Why the value is none of the input's; empty where it is one."""
        from recipe_engine.rules.inputs import wrong_values
        from recipe_engine.rules.secrets import holds_secret

        if name in self.recipe.refused_inputs:
            return f"{name}: {self.recipe.refused_inputs[name]}"
        if holds_secret(name, value):
            return f"{name} looks like a secret, and every point would show it. Give it with --secrets=FILE"
        return "; ".join(wrong.text for wrong in wrong_values(self.recipe, {name: value}))

    def meant(self, name: str) -> str:
        """The input that was probably meant by a name that is none."""
        from recipe_engine.rules.inputs import unknown_inputs

        return next((unknown.meant for unknown in unknown_inputs(self.recipe, [name])), "")


def _cmind(automation: Any) -> Any:
    """The object of cmind; a plan hands none to hooks, and then it is made."""
    known = getattr(automation, "cmind", None)
    if known is not None:
        return known
    from cmind.core import CM  # here, because a run has one

    made = CM()
    made.access({"action": "version", "automation": "core"})  # any call makes it read its repositories
    return made


def find_recipe(automation: Any, tags: str) -> Any:
    """The recipe that `cm run script --tags=TAGS` runs. Raises UnknownRecipe."""
    from recipe_engine.actions.adapter import home_of
    from recipe_engine.disk.repos import RecipeSource
    from recipe_engine.rules.errors import RecipeError
    from recipe_engine.rules.query import candidates, parse_query

    home = home_of(_cmind(automation))
    source = RecipeSource(home.repos, home.index_folder)
    try:
        entry = candidates(parse_query(tags.split(",")), "", source.index)[0]
    except RecipeError as error:
        raise UnknownRecipe(f"recipe {tags}: {error.message}") from None
    recipe = source.recipe(entry)
    if found := [word for word in entry.tags if word in NOT_SWEPT]:
        raise UnknownRecipe(f"recipe {tags} ({recipe.id.alias}) cannot be swept: it is about {', '.join(found)}")
    return recipe


def program_of(recipe: Any, tags: str, cwd: Path) -> Program:
    """How calls of the recipe are made on this machine, and on nodes that see the same file system."""
    from recipe_engine.rules.inputs import declared_inputs

    beside = Path(sys.executable).with_name("cm")
    cm = str(beside) if beside.is_file() else shutil.which("cm")
    return Program(
        words=(sys.executable, cm) if cm else (sys.executable, "-m", "cmind.cli"),
        recipe=tags,
        cwd=str(cwd),
        environment={name: os.environ[name] for name in HOME_VARIABLES if os.environ.get(name)},
        own=frozenset(declared_inputs(recipe)) & set(OWN_INPUTS),
        outcome=OUTCOMES.get(recipe.id.alias),
    )


def nested(inputs: Mapping[str, str]) -> dict[str, Any]:
    """Inputs with dotted keys as the engine gets them from a command line: adr.python.name below adr, python."""
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        *above, last = name.split(".")
        place = found
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    return found
