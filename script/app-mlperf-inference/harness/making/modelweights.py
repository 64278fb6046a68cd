"""Completes a torch network whose weights were drawn, or takes those of a checkpoint.

The statistics of every batch normalisation of a drawn network are measured in one forward pass
(benchmarks/initialweights.py draws the weights).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.errors import HarnessError

_WRAPPERS = ("best_model_state_dict", "state_dict", "model_state_dict", "model", "network_weights")
"""Keys under which training programs put the state dict of a checkpoint."""
_SHOWN_NAMES = 5
_LEAST_VARIANCE = 1e-3


def calibrate_normalisation(module: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    """Give each batch normalisation (frozen ones too) the mean and variance of what reaches it for `inputs`.

    The statistics are set just before a layer is used, so that later layers see normalised values. One thread: the
    same seed gives the same bytes whatever the machine's core count.
    """
    layers = [part for part in module.modules() if _has_statistics(part)]
    if not layers:
        return
    hooks = [part.register_forward_pre_hook(_measure) for part in layers]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            module(*inputs)
    finally:
        torch.set_num_threads(threads)
        for hook in hooks:
            hook.remove()


def _has_statistics(part: nn.Module) -> bool:
    mean, variance = (getattr(part, name, None) for name in ("running_mean", "running_var"))
    return isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor)


def _measure(part: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    values = inputs[0].transpose(0, 1).flatten(1)
    part.running_mean.copy_(values.mean(dim=1))  # type: ignore[operator]
    part.running_var.copy_(values.var(dim=1, correction=0).clamp_min(_LEAST_VARIANCE))  # type: ignore[operator]


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


def load_weights(module: nn.Module, network: str, state: Mapping[str, torch.Tensor]) -> None:
    """Load `state` into the network called `network`; names may start with "module." or with the network's name.

    Every parameter must be there in its shape, else HarnessError; what the network has no place for is told on stderr.
    """
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    candidates = [_without(prefix, state) for prefix in ("", "module.", f"{network}.")]
    best = max(candidates, key=lambda names: len(wanted.keys() & names.keys()))
    needed = {name for name in wanted if not name.endswith("num_batches_tracked")}
    missing = sorted(needed - best.keys())
    if missing:
        raise HarnessError(
            f"the weights lack {_some(missing)} of network {network}; they have {_some(sorted(best))}",
            "give the published checkpoint that the recipe's README names",
        )
    wrong = [
        f"{name} {list(best[name].shape)} (not {list(wanted[name])})"
        for name in sorted(needed)
        if tuple(best[name].shape) != wanted[name]
    ]
    if wrong:
        raise HarnessError(f"weights of another shape than network {network}: {_some(wrong)}", "wrong checkpoint?")
    unused = sorted(best.keys() - wanted.keys())
    if unused:
        print(f"makemodel: network {network} has no place for {_some(unused)}", file=sys.stderr)
    module.load_state_dict({name: best[name] for name in wanted if name in best}, strict=False)


def _without(prefix: str, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors whose name starts with `prefix`, by the rest of their name."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more
