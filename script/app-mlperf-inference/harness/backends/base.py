"""What a backend is: something that opens a model file on a device and answers batches. It knows no LoadGen, no data
set, no accuracy.

A backend file holds the members of BackendModule; see `null.py` for the smallest and docs/howto/add-backend.md for
the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import ConfigError, Problem
from harness.tensors import Tensors, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRequest:
    """What to open. `threads` is the number of CPU threads that one call of `infer` may use.

    `model_path` is None only for a backend with NEEDS_MODEL_FILE = False.
    """

    model_path: Path | None
    device: str
    threads: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


class Backend(Protocol):
    """An opened model."""

    def infer(self, inputs: Tensors) -> Tensors:
        """Return every tensor of the request's `outputs` for a batch of 1 to N samples.

        Each output has the batch as its first axis. Called from several threads at once in Offline.
        """

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the libraries that answer, for result.json."""

    def close(self) -> None:
        """Free what was opened."""


class BackendModule(Protocol):
    """The members of one file in this folder."""

    DEVICES: tuple[str, ...]
    """Allowed values of the request's device."""
    NEEDS_MODEL_FILE: bool
    """False when no model file is read."""
    BATCH_SIZE: int | None
    """Batch size that suits this backend whatever the model; None leaves it to the model's RULES."""

    def open_backend(self, request: BackendRequest) -> Backend:
        """Return the opened backend; raises HarnessError when the model or the device cannot be used."""


def require_device(backend: str, device: str, devices: tuple[str, ...]) -> None:
    """Raise ConfigError when `device` is not one of the backend's `devices`."""
    if device not in devices:
        raise ConfigError("the run", [Problem("device", repr(device), f"{', '.join(devices)} (backend {backend})")])
