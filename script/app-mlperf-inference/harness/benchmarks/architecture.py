"""What an architecture is: a torch module built from the `config` of a model.json, one for each network of the model.

It is the file `network.py` of a benchmark's folder. Its parameters have the names of the published checkpoint,
so that real weights load with `load_state_dict`. It imports torch and nothing else that must be installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from harness.errors import HarnessError


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
        module: ArchitectureModule = importlib.import_module(f"harness.benchmarks.{name}.network")
    except ModuleNotFoundError as error:
        if error.name not in (f"harness.benchmarks.{name}", f"harness.benchmarks.{name}.network"):
            raise HarnessError(
                f"cannot load benchmarks/{name}/network.py: {error}", "install it into this Python"
            ) from error
        folder = Path(__file__).parent
        known = sorted(path.parent.name for path in folder.glob("*/network.py"))
        raise HarnessError(f"there is no architecture {name!r}; allowed: {', '.join(known)}") from error
    return module
