"""Imports a library that only some models and metrics need; a run with another model gets along without it."""

import importlib
from types import ModuleType

from crowdperf.harness.base.errors import HarnessError


def import_library(module: str, package: str) -> ModuleType:
    """Return the module; raises HarnessError naming the PyPI package when it cannot be imported."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise HarnessError(
            f"the Python package {package} is needed here: {error}", f"python3 -m pip install {package}"
        ) from error
