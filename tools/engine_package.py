"""Makes the package recipe_engine importable: `import engine_package` before the first import of it.

automation/ itself must not be on the path: it has packages of CM's names.
"""

import importlib.util
import sys
from pathlib import Path

ENGINE = Path(__file__).resolve().parent.parent / "automation" / "recipe_engine"

if "recipe_engine" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["recipe_engine"])
