"""Reads the weights of checkpoints, as training programs and model hubs keep them: safetensors or torch files.

Some published torch files hold no state dict but a module of classes that only the reference implementation has, so
that torch reads them only by running code from the file. Here the file's classes are replaced by empty ones, and
nothing is called but what rebuilds tensors: other names in the file are refused.
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from crowdperf.harness.base.errors import HarnessError

_WRAPPERS = ("best_model_state_dict", "state_dict", "model_state_dict", "model", "network_weights")
"""Keys under which training programs put the state dict of a checkpoint."""
_REBUILDERS = frozenset(
    {
        ("collections", "OrderedDict"),
        ("torch._utils", "_rebuild_tensor"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch._utils", "_rebuild_parameter"),
        ("torch.nn.parameter", "Parameter"),
        ("torch.serialization", "_get_layout"),
        ("torch", "Size"),
        ("torch", "device"),
    }
)
_BUILTINS = frozenset({"set", "frozenset", "list", "dict", "tuple", "slice", "complex"})
_OWN_MODULES = (
    "models.",
    "model.",
    "base_model",
    "ssd_",
    "__main__",
    "argparse",
    "torchvision.models.",
    "torchvision.ops.",
    "ultralytics.",
)
"""Modules whose classes are replaced by empty ones."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what the file's name stands for; raises UnpicklingError for what is not needed to hold weights."""
        is_storage = module == "torch" and name.endswith("Storage")
        is_layer = module.startswith("torch.nn.modules.") and "." not in name
        is_plain = module in ("builtins", "__builtin__") and name in _BUILTINS
        if is_storage or is_layer or is_plain or (module, name) in _REBUILDERS:
            found = super().find_class(module, name)
            if is_layer and not (isinstance(found, type) and issubclass(found, nn.Module)):
                raise pickle.UnpicklingError(f"{module}.{name} is not a layer")
            return found
        if f"{module}.".startswith(_OWN_MODULES):
            return type(name, (nn.Module,), {"__module__": __name__})
        raise pickle.UnpicklingError(f"the file uses {module}.{name}, which weights do not need")


class _Pickle:
    """What torch.load asks of a pickle module."""

    Unpickler = _Unpickler

    @staticmethod
    def load(file: Any, **options: Any) -> Any:
        """Return the next object of an old torch file: numbers and names in front of the module."""
        return _Unpickler(file, **options).load()


def read_checkpoint(path: Path) -> dict[str, torch.Tensor]:
    """Return the state dict in a safetensors or torch file, or in all such files of a folder (a sharded checkpoint).

    Of a folder that has them only in folders below it (a pipeline of networks), names begin with the folder's. No code
    in a file is run. Raises HarnessError.
    """
    files = _weight_files(path) if path.is_dir() else [path]
    parts = [] if files else [part for part in sorted(path.iterdir()) if part.is_dir() and _weight_files(part)]
    if parts:
        return {f"{part.name}.{name}": value for part in parts for name, value in read_checkpoint(part).items()}
    if not files:
        raise HarnessError(f"{path} contains no *.safetensors, *.bin or *.pt file", "give the file of the weights")
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
        values = _read_torch_file(path)
    except ImportError:
        raise
    except Exception as error:  # safetensors' own error has no public base class
        raise HarnessError(f"cannot read the weights {path}: {error}", "get the file again") from error
    for key in _WRAPPERS:
        if isinstance(values, dict) and isinstance(values.get(key), dict | nn.Module):
            values = values[key]
    found = values.state_dict() if isinstance(values, nn.Module) else values if isinstance(values, dict) else {}
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise HarnessError(f"{path} contains no state dict (tensors by name)", "give the file of the weights")
    return tensors


def _read_torch_file(path: Path) -> Any:
    """Return what a torch file holds: tensors in plain containers, or a module whose own classes are empty."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # classes that torch does not know
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=_Pickle)
