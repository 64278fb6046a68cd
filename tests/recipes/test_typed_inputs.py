"""Each input of our recipes has a type: its default is of that type, and a value that is not ends the call before
anything runs, with the input's name, however it is given."""

import pytest
from helpers import recipe_metas
from recipe_engine.rules.configure import configure
from recipe_engine.rules.errors import RequestError
from recipe_engine.rules.input_types import Values, item_kind
from recipe_engine.rules.inputs import request_from_inputs
from recipe_engine.rules.model import Recipe, RunOptions
from recipe_engine.rules.schema import parse_recipe
from recipe_engine.running.context import remarks
from recipe_loader import RECIPES, ROOT, recipe_meta

WRONG = {
    "whole": "1.5",
    "number": "many",
    "yes_no": "perhaps",
    "choice": "none-of-these",
    "port": "65536",
    "size": "much",
    "duration": "soon",
    "url": "host:80",
    "sha256": "12",
}
"""A value that no input of the type takes; any text is a text and a path."""


def refusal(recipe: Recipe, name: str, value: str) -> str:
    """What the engine says of a value before a step's dependencies run; empty where it takes it."""
    try:
        remarks(configure(recipe, request_from_inputs({name: value}, options=RunOptions())))
    except RequestError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("alias", sorted(str(meta["alias"]) for meta in recipe_metas() if "input_description" in meta))
def test_each_input_has_a_type_and_a_wrong_value_is_refused_with_its_name(alias: str) -> None:
    recipe = parse_recipe(recipe_meta(alias), RECIPES / alias, ROOT)._replace(has_strict_inputs=True)
    assert [name for name, one in recipe.inputs.items() if not one.kind] == []
    plain = Values(recipe.inputs, {}, {})
    assert all(plain[name] is not None for name, one in recipe.inputs.items() if one.default)
    for name, one in recipe.inputs.items():
        wrong = WRONG.get(item_kind(one), "," if one.kind.startswith("list of") else "")
        if wrong:
            assert f"--{name}" in refusal(recipe, name, wrong)
            told = Values(recipe.inputs, {one.env_key: wrong}, {}).problems() if one.env_key else []
            assert not one.env_key or any(line.startswith(f"--{name} ({one.env_key})") for line in told)
