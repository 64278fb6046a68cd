"""Which benchmarks, backends and data sets there are: a folder with a record each, and a file in datasets/.

Listing reads records and imports nothing else, so a backend whose library is absent is still listed.
A benchmark is asked for by its official name ("bert-99"), one that is not MLPerf's by its own.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from mlperf_results.backends import BACKENDS
from mlperf_results.benchmarks import RECORDS, model_of, record_of

from harness.backends.base import BackendModule
from harness.benchmarks.base import ModelModule
from harness.datasets.base import DatasetModule
from harness.errors import ConfigError, HarnessError, Problem


def known_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of one kind: `backends`, `models` or `datasets`."""
    if kind == "models":
        return tuple(sorted(name for record in RECORDS.values() for name in record.names))
    return tuple(BACKENDS) if kind == "backends" else tuple(sorted({one.dataset for one in RECORDS.values()}))


def _load(kind: str, name: str) -> ModuleType:
    if name not in known_names(kind):
        problem = Problem(kind.removesuffix("s"), repr(name), ", ".join(known_names(kind)))
        raise ConfigError("the run", [problem])
    places = {"models": f"benchmarks.{model_of(name)}.model", "backends": f"backends.{name}.backend"}
    module = places.get(kind, f"{kind}.{name}")
    try:
        return importlib.import_module(f"harness.{module}")
    except ImportError as error:
        message = f"cannot load harness.{module}: {error}"
        raise HarnessError(message, "install its library into this environment") from error


def _require(kind: str, name: str, module: ModuleType, members: tuple[str, ...]) -> None:
    missing = [member for member in members if not hasattr(module, member)]
    if missing:
        message = f"{kind}/{name}.py lacks {', '.join(missing)}"
        raise HarnessError(message, f"see {kind}/base.py for what one file must have")


def load_backend(name: str) -> BackendModule:
    """Return the backend's module; raises ConfigError listing the known names."""
    module = _load("backends", name)
    _require("backends", f"{name}/backend", module, ("open_backend",))
    backend: BackendModule = module
    return backend


def load_model(name: str) -> ModelModule:
    """Return the module of the model or benchmark `name`; raises ConfigError listing the known names."""
    module = _load("models", name)
    _require("benchmarks", f"{model_of(name)}/model", module, ("open_model",))
    model: ModelModule = module
    return model


def load_dataset(name: str) -> DatasetModule:
    """Return the data set's module; raises ConfigError listing the known names."""
    module = _load("datasets", name)
    _require("datasets", name, module, ("open_dataset",))
    dataset: DatasetModule = module
    return dataset


def load_dataset_of(model: str) -> DatasetModule:
    """Return the module of the data set that a benchmark's record names; raises UnknownName."""
    return load_dataset(record_of(model).dataset)
