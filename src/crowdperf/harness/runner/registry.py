"""The existing benchmarks, backends and data sets, and their modules.

A benchmark and a backend are a folder with a record each. A data set is a file in datasets/, or `dataset.py` in the
folder of the one benchmark that has it. Listing reads only records, so a backend whose library is absent is still
listed. A benchmark is identified by its official name ("bert-99"), or its own name if it is not one of MLPerf.
"""

import importlib
from types import ModuleType

from crowdperf.harness.base.backend import BackendModule
from crowdperf.harness.base.dataset import DatasetModule
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.model import ModelModule
from crowdperf.harness.text.engine import EngineModule
from crowdperf.harness.text.model import TextModule
from crowdperf.kit.records import Problem
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, dataset_module, model_of, record_of


def known_names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of one kind: `backends`, `models` or `datasets`."""
    if kind == "models":
        return tuple(sorted(name for record in RECORDS.values() for name in record.names))
    return tuple(BACKENDS) if kind == "backends" else tuple(sorted({one.dataset for one in RECORDS.values()}))


def _load(kind: str, name: str, place: str, member: str) -> ModuleType:
    """Return the module at `place` in crowdperf. Raises HarnessError if it cannot be imported or has no `member`."""
    if name not in known_names(kind):
        problem = Problem(kind.removesuffix("s"), repr(name), ", ".join(known_names(kind)))
        raise ConfigError("the run", [problem])
    try:
        module = importlib.import_module(f"crowdperf.{place}")
    except ImportError as error:
        message = f"cannot load {place.replace('.', '/')}.py: {error}"
        raise HarnessError(message, "install its library into this environment") from error
    if not hasattr(module, member):
        message = f"{place.replace('.', '/')}.py is missing {member}"
        raise HarnessError(message, "crowdperf/harness/base lists the required members")
    return module


def load_backend(name: str) -> BackendModule:
    """Return the backend's module. Raises ConfigError with the known names."""
    backend: BackendModule = _load("backends", name, f"harness.backends.{name}.backend", "open_backend")
    return backend


def load_model(name: str) -> ModelModule:
    """Return the module of the model or benchmark `name`. Raises ConfigError with the known names."""
    model: ModelModule = _load("models", name, f"benchmarks.{model_of(name)}.model", "open_model")
    return model


def load_engine(name: str) -> EngineModule:
    """Return the module of a backend that answers prompts. Raises ConfigError with the known names."""
    engine: EngineModule = _load("backends", name, f"harness.backends.{name}.engine", "open_engine")
    return engine


def load_text(name: str) -> TextModule:
    """Return the module of a benchmark whose answers are texts. Raises ConfigError with the known names."""
    text: TextModule = _load("models", name, f"benchmarks.{model_of(name)}.text", "open_text")
    return text


def load_dataset(name: str) -> DatasetModule:
    """Return the data set's module. Raises ConfigError with the known names."""
    place = dataset_module(name).removeprefix("crowdperf.")
    dataset: DatasetModule = _load("datasets", name, place, "open_dataset")
    return dataset


def load_dataset_of(model: str) -> DatasetModule:
    """Return the module of the data set in a benchmark's record. Raises UnknownName."""
    return load_dataset(record_of(model).dataset)
