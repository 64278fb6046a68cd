"""What programs that fit a small model have in common: the command line, the steps of the fit, the score, the files.

    def fit(request: ModelRequest, dataset_dir: Path) -> Fitted: ...

    if __name__ == "__main__":
        sys.exit(fitting.main(__doc__, fit, "rgat"))

The measured samples give the score that model.json has as its reference, by the benchmark's own code. A model below
`Fitted.least` is not written. Seeded, one thread: the same library versions on the same kind of processor give the same
weights.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model import Model
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec
from crowdperf.models.make_model import FRAMEWORKS, ModelRequest, write_model
from crowdperf.standins.responses import responses_of

_REPORTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A fitted model. metrics: those of the score that are the reference, all by default. least: scores by metric name
    below which the model is no good. facts: further keys of model.json."""

    modules: Mapping[str, nn.Module]
    score: Score
    metrics: tuple[str, ...] = ()
    least: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """How weights are fitted: AdamW, its rate rising for a share of the steps and then falling (OneCycleLR), or
    constant where `rising_share` is None. largest_norm: what gradients are clipped to, unless None."""

    steps: int
    rate: float
    rising_share: float | None = 0.3
    weight_decay: float = 0.0
    largest_norm: float | None = None


def descend(parameters: Iterable[nn.Parameter], loss: Callable[[], Tensor], descent: Descent) -> None:
    """Fit the parameters in place; `loss` gives that of the next batch, and is called once in each step."""
    fitted = list(parameters)
    optimizer = torch.optim.AdamW(fitted, lr=descent.rate, weight_decay=descent.weight_decay)
    schedule = None
    if descent.rising_share is not None:
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=descent.rate, total_steps=descent.steps, pct_start=descent.rising_share
        )
    for step in range(1, descent.steps + 1):
        value = loss()
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        if descent.largest_norm is not None:
            nn.utils.clip_grad_norm_(fitted, descent.largest_norm)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if step * _REPORTS % descent.steps < _REPORTS:
            print(f"step {step} of {descent.steps}: loss {value.item():.4f}", flush=True)


def calls_of(model: Model, modules: Mapping[str, nn.Module]) -> dict[str, Infer]:
    """Return the networks as a model calls them."""

    def call_of(spec: NetworkSpec) -> Infer:
        module = modules[spec.name].eval()

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Array]:
            with torch.inference_mode():
                answers = module(*(torch.as_tensor(inputs[tensor.name]) for tensor in spec.inputs))
            rows = answers if isinstance(answers, tuple) else (answers,)
            return {tensor.name: row.numpy() for tensor, row in zip(spec.outputs, rows, strict=True)}

        return call

    return {spec.name: call_of(spec) for spec in model.networks}


def score_of(model: Any, modules: Mapping[str, nn.Module], dataset: Any, batch: int = 1) -> Score:
    """Return the benchmark's score of the networks on the measured samples; they are left in eval mode."""
    score: Score = model.score(responses_of(model, calls_of(model, modules), dataset, batch), dataset)
    return score


def write_fitted(request: ModelRequest, fitted: Fitted) -> Path:
    """Write the model with its score as the reference; return the path of model.json. Raises HarnessError."""
    for name, least in fitted.least.items():
        if fitted.score.values[name] < least:
            raise HarnessError(
                f"the fitted {request.architecture} has {name} {fitted.score.values[name]:.4g}, below {least:g}: "
                "it is not saved",
                f"report this with the version of torch: {torch.__version__}",
            )
    reference = {name: fitted.score.values[name] for name in fitted.metrics or fitted.score.values}
    facts = {"license": "Apache-2.0 (made by this project)", "reference": reference, **fitted.facts}
    return write_model(fitted.modules, request, facts)


def main(
    description: str | None,
    fit: Callable[[ModelRequest, Path], Fitted],
    *architectures: str,
    configs: tuple[str, ...] = ("tiny",),
) -> int:
    """Command line entry: fit what is asked for and write it; return the exit code.

    architectures: those that `fit` takes; where there are several, the command line says which.
    """
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    is_one = len(architectures) == 1
    parser.add_argument("--architecture", choices=architectures, default=architectures[0], required=not is_one)
    parser.add_argument("--config", choices=configs, default=configs[0])
    parser.add_argument("--framework", choices=FRAMEWORKS, default="onnx")
    parser.add_argument(
        "--dataset_dir", type=Path, required=True, help="a synthetic data set: the score is measured on it"
    )
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    request = ModelRequest(
        architecture=given.architecture,
        config=given.config,
        framework=given.framework,
        output_dir=given.output_dir,
        seed=given.seed,
    )
    start_s = time.perf_counter()
    if given.config == "tiny":
        torch.set_num_threads(1)  # for these sizes faster than two, and the same sums in the same order each time
    try:
        fitted = fit(request, given.dataset_dir)
        write_fitted(request, fitted)
    except HarnessError as error:
        print(f"{parser.prog}: {error.with_hint}", file=sys.stderr)
        return error.exit_code
    print(f"{given.architecture} ({given.config}): {fitted.score.line} in {time.perf_counter() - start_s:.1f} s")
    return 0
