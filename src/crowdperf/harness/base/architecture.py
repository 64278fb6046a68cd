"""What an architecture is: a torch module built from the `config` of a model.json, one for each network of the model.

It is the file `network.py` of a benchmark's folder. Its parameters have the names of the published checkpoint,
so that real weights load with `load_state_dict`. It imports torch and nothing else that must be installed.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import torch

from crowdperf.harness.base.errors import HarnessError
from crowdperf.rules.record_files import records_folder

_Module = TypeVar("_Module", bound="WithTables")


class WithTables(torch.nn.Module):
    """A module whose own buffers are tables of numbers (times, positions): they keep their type in a module of another
    one. float16 has 11 bits, and bfloat16 has 8, which is 4 pixels at the far side of a picture of 640."""

    def _apply(self: _Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> _Module:
        """Move the module, and its tables without a change of type: `.half()` and `.to()` come here."""
        tables = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, table in tables.items():
            setattr(self, name, table.to(getattr(self, name).device))
        return self


class ArchitectureModule(Protocol):
    """The members of a `network.py`."""

    CONFIGS: Mapping[str, Mapping[str, Any]]
    """`full`: the size of the MLPerf benchmark; `tiny`: the same structure, small, for tests."""

    def build(self, network: str, config: Mapping[str, Any]) -> torch.nn.Module:
        """Return the network `network` of the model in eval mode, weights not yet set.

        Its `forward` takes the tensors of the model's NetworkSpec inputs in their order and returns a tuple of those
        of its outputs in their order.
        """


def architecture_of(name: str) -> ArchitectureModule:
    """Return the architecture's file; raises HarnessError listing those there are."""
    try:
        module: ArchitectureModule = importlib.import_module(f"crowdperf.benchmarks.{name}.network")
    except ModuleNotFoundError as error:
        if error.name not in (f"crowdperf.benchmarks.{name}", f"crowdperf.benchmarks.{name}.network"):
            raise HarnessError(
                f"cannot load benchmarks/{name}/network.py: {error}", "install it into this Python"
            ) from error
        known = sorted(path.parent.name for path in records_folder("benchmarks").glob("*/network.py"))
        raise HarnessError(f"unknown architecture {name!r}; allowed: {', '.join(known)}") from error
    return module
