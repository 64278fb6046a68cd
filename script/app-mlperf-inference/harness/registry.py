"""Which backends, models and data sets there are: one file in the folder of that name each, `base.py` excepted.

Listing looks at file names only and imports nothing, so a backend whose library is absent is still listed.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from harness.backends.base import BackendModule
from harness.datasets.base import DatasetModule
from harness.errors import ConfigError, HarnessError, Problem
from harness.models.base import ModelModule

_HERE = Path(__file__).parent


def known_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of one kind: `backends`, `models` or `datasets`."""
    stems = {path.stem for path in (_HERE / kind).glob("*.py")}
    return tuple(sorted(stems - {"__init__", "base"}))


def _load(kind: str, name: str) -> ModuleType:
    if name not in known_names(kind):
        problem = Problem(kind.removesuffix("s"), repr(name), ", ".join(known_names(kind)))
        raise ConfigError("the run", [problem])
    try:
        return importlib.import_module(f"harness.{kind}.{name}")
    except ImportError as error:
        message = f"cannot load {kind}/{name}.py: {error}"
        raise HarnessError(message, "install its library into this environment") from error


def _require(kind: str, name: str, module: ModuleType, members: tuple[str, ...]) -> None:
    missing = [member for member in members if not hasattr(module, member)]
    if missing:
        message = f"{kind}/{name}.py lacks {', '.join(missing)}"
        raise HarnessError(message, f"see {kind}/base.py for what one file must have")


def load_backend(name: str) -> BackendModule:
    """Return the backend's module; raises ConfigError listing the known names."""
    module = _load("backends", name)
    _require("backends", name, module, ("DEVICES", "NEEDS_MODEL_FILE", "BATCH_SIZE", "open_backend"))
    backend: BackendModule = module
    return backend


def load_model(name: str) -> ModelModule:
    """Return the model's module; raises ConfigError listing the known names."""
    module = _load("models", name)
    _require("models", name, module, ("RULES", "INPUTS", "OUTPUTS", "RESPONSE", "preprocess", "postprocess", "score"))
    model: ModelModule = module
    return model


def load_dataset(name: str) -> DatasetModule:
    """Return the data set's module; raises ConfigError listing the known names."""
    module = _load("datasets", name)
    _require("datasets", name, module, ("open_dataset",))
    dataset: DatasetModule = module
    return dataset
