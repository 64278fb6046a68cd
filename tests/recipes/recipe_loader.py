"""Loads recipes for their tests: `load_recipe` imports a recipe's customize.py as the engine does, as a package."""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "script"
FIXTURES = Path(__file__).resolve().parent / "fixtures"


def load_recipe(alias: str) -> types.ModuleType:
    """The recipe's customize.py as a package with the recipe's folder as its place; loaded once per alias."""
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
    return module


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
