"""Takes the weights out of a whole torch module that was pickled: `python3 -m harness.making.pickled_weights --help`.

    python3 -m harness.making.pickled_weights --input resnet34-ssd1200.pytorch --output weights.safetensors

Some published PyTorch files hold no state dict but a module of classes that only the reference implementation has, so
that torch reads them only by running code from the file. Here the file's classes are replaced by empty ones, and
nothing is called but what rebuilds tensors: other names in the file are refused.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.errors import HarnessError

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
                raise pickle.UnpicklingError(f"{module}.{name} is no layer")
            return found
        if f"{module}.".startswith(_OWN_MODULES):
            return type(name, (nn.Module,), {"__module__": __name__})
        raise pickle.UnpicklingError(f"the file wants {module}.{name}, which weights do not need")


class _Pickle:
    """What torch.load asks of a pickle module."""

    Unpickler = _Unpickler

    @staticmethod
    def load(file: Any, **options: Any) -> Any:
        """Return the next object of an old torch file: numbers and names in front of the module."""
        return _Unpickler(file, **options).load()


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the state dict of the module, or of the checkpoint with the key "model", in `path`; raises
    HarnessError."""
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=False, pickle_module=_Pickle)
    except (OSError, pickle.UnpicklingError, RuntimeError, ValueError, EOFError, AttributeError, KeyError) as error:
        raise HarnessError(f"cannot read the weights {path}: {error}", "get the file again") from error
    if isinstance(found, dict) and isinstance(found.get("model"), dict | nn.Module):
        found = found["model"]
    state = found.state_dict() if isinstance(found, nn.Module) else found
    if not isinstance(state, dict):
        raise HarnessError(f"{path} holds a {type(found).__name__}, neither a module nor a state dict")
    tensors = {str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise HarnessError(f"{path} holds no tensors", "give the file that the recipe's README names")
    return tensors


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; return the exit code."""
    from safetensors.torch import save_file

    parser = argparse.ArgumentParser(
        prog="python3 -m harness.making.pickled_weights", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--input", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path, help="safetensors file to write")
    given = parser.parse_args(words)
    try:
        tensors = read_weights(given.input)
    except HarnessError as error:
        print(f"pickled_weights: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, given.output)
    print(f"{given.input}: {len(tensors)} tensors -> {given.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
