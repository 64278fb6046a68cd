"""What an architecture is: a torch module built from the `config` of a model.json, one for each network of the model.

It is the file `network.py` of a benchmark's folder. Its parameters have the names of the published checkpoint,
so that real weights load with `load_state_dict`. It imports torch and nothing else that must be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch


class ArchitectureModule(Protocol):
    """The members of a `network.py`."""

    CONFIGS: Mapping[str, Mapping[str, Any]]
    """`full`: the size of the MLPerf benchmark; `tiny`: the same structure, small, for tests."""

    def build(self, network: str, config: Mapping[str, Any]) -> torch.nn.Module:
        """Return the network `network` of the model in eval mode, weights not yet set.

        Its `forward` takes the tensors of the model's NetworkSpec inputs in their order and returns a tuple of those
        of its outputs in their order.
        """
