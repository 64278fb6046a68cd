"""Reads the weights of checkpoints, as training programs and model hubs keep them: safetensors or torch files."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from harness.errors import HarnessError

_WRAPPERS = ("best_model_state_dict", "state_dict", "model_state_dict", "model", "network_weights")
"""Keys under which training programs put the state dict of a checkpoint."""


def read_checkpoint(path: Path) -> dict[str, torch.Tensor]:
    """Return the state dict in a safetensors or torch file, or in all such files of a folder (a sharded checkpoint).

    Of a folder that has them only in folders below it (a pipeline of networks), names begin with the folder's. Torch
    files are read with weights_only: no code in them is run. Raises HarnessError.
    """
    files = _weight_files(path) if path.is_dir() else [path]
    parts = [] if files else [part for part in sorted(path.iterdir()) if part.is_dir() and _weight_files(part)]
    if parts:
        return {f"{part.name}.{name}": value for part in parts for name, value in read_checkpoint(part).items()}
    if not files:
        raise HarnessError(f"{path} holds no *.safetensors, *.bin or *.pt file", "give the file of the weights")
    state: dict[str, torch.Tensor] = {}
    for file in files:
        state.update(_read_file(file))
    return state


def _weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin")) or sorted(folder.glob("*.pt*"))


def _read_file(path: Path) -> Mapping[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        values: Any = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError:
        raise
    except (OSError, pickle.UnpicklingError, RuntimeError, ValueError, EOFError) as error:
        raise HarnessError(f"cannot read the weights {path}: {error}", "get the file again") from error
    except Exception as error:  # safetensors' own error has no public base class
        raise HarnessError(f"cannot read the weights {path}: {error}", "get the file again") from error
    for key in _WRAPPERS:
        if isinstance(values, dict) and isinstance(values.get(key), dict):
            values = values[key]
    found = values if isinstance(values, dict) else {}
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise HarnessError(f"{path} holds no state dict (tensors by name)", "give the file of the weights")
    return tensors
