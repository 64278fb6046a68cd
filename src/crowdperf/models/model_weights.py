"""Completes a torch network whose weights were drawn, or loads those of a checkpoint.

The statistics of every batch normalisation of a drawn network are measured in one forward pass
(crowdperf/benchmarks/initial_weights.py draws the weights).
"""

import sys
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from crowdperf.harness.base.errors import HarnessError

_SHOWN_NAMES = 5
_MIN_VARIANCE = 1e-3


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
    part.running_var.copy_(values.var(dim=1, correction=0).clamp_min(_MIN_VARIANCE))  # type: ignore[operator]


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
            f"the weights are missing {_some(missing)} of network {network}. They have {_some(sorted(best))}",
            "use the published checkpoint given in the recipe's README",
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
