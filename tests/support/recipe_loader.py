"""Loads recipes for their tests: `load_recipe` imports a recipe's customize.py as the engine does, as a package."""

import fnmatch
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "script"
PYTHONPATH = os.pathsep.join(str(ROOT / name) for name in ("src", "tests/support"))
"""For processes of tests that load recipes."""


HOOKS = ("predeps", "preprocess", "postprocess", "plan", "plan_reuse")


def load_recipe(alias: str) -> types.ModuleType:
    """The recipe's customize.py as a package with the recipe's folder as its place; loaded once per alias.

    Its hooks get `i["values"]`, as from the engine.
    """
    name = "recipe_" + alias.replace("-", "_")
    if name in sys.modules:
        return sys.modules[name]
    folder = RECIPES / alias
    spec = importlib.util.spec_from_file_location(
        name, folder / "customize.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    for hook in HOOKS:
        if hasattr(module, hook):
            setattr(module, hook, _with_values(alias, getattr(module, hook)))
    return module


def _with_values(alias: str, hook: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @wraps(hook)
    def call(i: dict[str, Any]) -> dict[str, Any]:
        from recipe_engine.running.hooks import typed_values  # here, because child processes of tests have no engine

        i["values"] = typed_values(_parsed(alias), i)
        return hook(i)

    return call


@cache
def _parsed(alias: str) -> Any:
    from recipe_engine.rules.schema import parse_recipe

    return parse_recipe(recipe_meta(alias), RECIPES / alias, ROOT)


def input_values(alias: str, env: dict[str, Any], **inputs: Any) -> Any:
    """The typed values of a recipe's inputs, for rules that take them instead of a hook's dict."""
    from recipe_engine.running.hooks import typed_values

    return typed_values(_parsed(alias), {"env": env, "input": inputs})


def load_module(alias: str, module: str) -> types.ModuleType:
    """A sibling module of a recipe's customize.py."""
    return importlib.import_module(f"{load_recipe(alias).__name__}.{module}")


def recipe_meta(alias: str) -> dict[str, Any]:
    """The recipe's `_cm.yaml`, with what it takes over from its base."""
    from recipe_engine.disk.metadata import read_meta  # here, because child processes of tests have no engine

    return read_meta(RECIPES / alias).values


def exported(alias: str, env: dict[str, Any]) -> dict[str, Any]:
    """The part of env that leaves the recipe: the keys that its `new_env_keys` let through."""
    patterns = [str(key) for key in recipe_meta(alias)["new_env_keys"]]
    return {key: value for key, value in env.items() if any(fnmatch.fnmatchcase(key, p) for p in patterns)}
