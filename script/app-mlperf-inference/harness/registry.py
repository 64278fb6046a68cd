"""Which backends, models and data sets there are: one file in the folder of that name each, `base.py` excepted.

Listing looks at file names only and imports nothing, so a backend whose library is absent is still listed. A model
file whose name stands in the table of MLPerf benchmarks is asked for by the benchmarks' names ("bert-99").
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from mlperf_results.benchmarks import benchmarks_of, model_of

from harness.backends.base import BackendModule
from harness.datasets.base import DatasetModule
from harness.errors import ConfigError, HarnessError, Problem
from harness.models.base import ModelModule

_HERE = Path(__file__).parent


def _file_names(kind: str) -> tuple[str, ...]:
    stems = {path.stem for path in (_HERE / kind).glob("*.py")}
    return tuple(sorted(stems - {"__init__", "base"}))


def known_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of one kind: `backends`, `models` or `datasets`."""
    stems = _file_names(kind)
    if kind != "models":
        return stems
    names = {row.name for stem in stems for row in benchmarks_of(stem)}
    return tuple(sorted(names | {stem for stem in stems if not benchmarks_of(stem)}))


def _load(kind: str, name: str) -> ModuleType:
    if name not in known_names(kind):
        problem = Problem(kind.removesuffix("s"), repr(name), ", ".join(known_names(kind)))
        raise ConfigError("the run", [problem])
    stem = model_of(name) if kind == "models" else name
    try:
        return importlib.import_module(f"harness.{kind}.{stem}")
    except ImportError as error:
        message = f"cannot load {kind}/{stem}.py: {error}"
        raise HarnessError(message, "install its library into this environment") from error


def _require(kind: str, name: str, module: ModuleType, members: tuple[str, ...]) -> None:
    missing = [member for member in members if not hasattr(module, member)]
    if missing:
        message = f"{kind}/{name}.py lacks {', '.join(missing)}"
        raise HarnessError(message, f"see {kind}/base.py for what one file must have")


def load_backend(name: str) -> BackendModule:
    """Return the backend's module; raises ConfigError listing the known names."""
    module = _load("backends", name)
    _require("backends", name, module, ("DEVICES", "PRECISIONS", "FRAMEWORK", "BATCH_SIZE", "open_backend"))
    backend: BackendModule = module
    return backend


def load_model(name: str) -> ModelModule:
    """Return the module of the model or benchmark `name`; raises ConfigError listing the known names."""
    module = _load("models", name)
    _require("models", model_of(name), module, ("rules", "open_model"))
    model: ModelModule = module
    return model


def load_dataset(name: str) -> DatasetModule:
    """Return the data set's module; raises ConfigError listing the known names."""
    module = _load("datasets", name)
    _require("datasets", name, module, ("open_dataset",))
    dataset: DatasetModule = module
    return dataset
