"""For tests of programs that recipes run in environments of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).resolve().parents[1] / "script"


def program(alias: str, name: str) -> ModuleType:
    """A recipe's own file, loaded as Python loads what it runs: what stands beside it can be imported while it is
    loaded, and is loaded again for another recipe with a file of that name."""
    folder = SCRIPTS / alias
    spec = importlib.util.spec_from_file_location(f"{alias}_{name}".replace("-", "_"), folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for other in set(sys.modules) - before:
            if str(getattr(sys.modules[other], "__file__", "")).startswith(f"{folder}/"):
                del sys.modules[other]
    return module
