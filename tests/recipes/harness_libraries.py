"""For tests that need what only the benchmark's environment has: numpy, scikit-learn, onnx, onnxruntime, LoadGen.

Without them such a test is skipped, saying so; where CROWDPERF_REQUIRE_HARNESS is set, their absence is a failure.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest

REQUIRE_VARIABLE = "CROWDPERF_REQUIRE_HARNESS"


def need(*names: str) -> tuple[ModuleType, ...]:
    """The modules of these names; skips the test when one is absent, or fails it where REQUIRE_VARIABLE is set."""
    modules = []
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            if os.environ.get(REQUIRE_VARIABLE):
                pytest.fail(f"{REQUIRE_VARIABLE} is set, but {name} cannot be imported: {error}")
            pytest.skip(f"{name} is not in this environment; run this test with the Python of the harness")
    return tuple(modules)
