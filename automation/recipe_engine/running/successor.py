"""What ``customize.py`` of a recipe for CM's successor imports, so that its package need not be installed.

``from mlc import utils`` gets cmind's functions, which have the same names and answers; ``mlc.access`` asks cmind, so
that what a recipe calls runs on this engine even where the successor is installed. ``utils`` is ``automation/utils.py``
of the recipe's repository, or, where only the ``script/`` folder was copied, our version of its few functions.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from ..rules.conditions import FALSE_WORDS, TRUE_WORDS
from ..rules.model import Recipe
from .compat import ActionObject, logger

PACKAGE = "mlc"
HELPERS = "utils"


_helpers: dict[str, ModuleType] = {}
"""The modules ``utils`` of this process by their file; the empty name is for ours."""


def offer_imports(recipe: Recipe) -> None:
    """Makes ``mlc`` and the ``utils`` of the recipe's repository importable; does nothing where no cmind called us.

    A ``utils`` that something else has put there stays.
    """
    cmind = sys.modules.get("cmind")
    if cmind is None:
        return
    if not hasattr(sys.modules.get(PACKAGE), "crowdperf"):
        _offer_package(cmind)
    if HELPERS not in sys.modules or sys.modules[HELPERS] in _helpers.values():
        _offer_helpers(recipe)


def _offer_package(cmind: ModuleType) -> None:
    package, functions = ModuleType(PACKAGE, __doc__), ModuleType(f"{PACKAGE}.{HELPERS}")
    vars(functions).update({name: value for name, value in vars(cmind.utils).items() if not name.startswith("__")})
    vars(functions).update(logger=logger)
    vars(package).update(crowdperf=True, utils=functions, access=ActionObject(cmind).access, __path__=[])
    sys.modules[PACKAGE] = package
    sys.modules[functions.__name__] = functions


def _offer_helpers(recipe: Recipe) -> None:
    roots = (recipe.repo_path, Path(os.path.realpath(recipe.path)).parent.parent)
    path = next((found for root in roots if (found := root / "automation" / f"{HELPERS}.py").is_file()), None)
    known = _helpers.get(str(path or ""))
    if known:
        sys.modules[HELPERS] = known
        return
    spec = importlib.util.spec_from_file_location(HELPERS, path) if path else None
    module = importlib.util.module_from_spec(spec) if spec else ModuleType(HELPERS)
    sys.modules[HELPERS] = module
    if spec and spec.loader:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[HELPERS]
            raise
    else:
        vars(module).update(vars(sys.modules[f"{PACKAGE}.{HELPERS}"]))
        vars(module).update(__name__=HELPERS, is_true=is_true, is_false=is_false)
    _helpers[str(path or "")] = module


def is_true(value: object) -> bool:
    """Whether a value is one of the words for yes."""
    return str(value).lower() in TRUE_WORDS


def is_false(value: object) -> bool:
    """Whether a value is one of the words for no."""
    return str(value).lower() in FALSE_WORDS
