"""TensorRT and TensorRT-RTX: which of them a file is for, and how the library is loaded."""

import importlib
from types import ModuleType

from crowdperf.harness.base.errors import HarnessError

LIBRARIES = ("tensorrt", "tensorrt_rtx")
SUFFIXES = {"tensorrt": ".engine", "tensorrt_rtx": ".rtx.engine"}
"""An engine runs only with the library that built it, so the file's name tells which."""


def load_library(name: str) -> ModuleType:
    """Return TensorRT's module; raises HarnessError with the command that gets it."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise HarnessError(
            f"{name} cannot be loaded: {error}",
            f"cm run script --tags=get,generic-python-lib,_{name} --adr.python.name=mlperf-inference",
        ) from error
