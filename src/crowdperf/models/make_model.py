"""Makes the files of a model from its architecture: `python3 -m crowdperf.models.make_model --help`.

    python3 -m crowdperf.models.make_model --architecture resnet50 --config tiny --framework onnx --output_dir FOLDER

With --weights a published checkpoint is taken over; without it the weights are random, seeded
(`crowdperf/benchmarks/initial_weights.py`) and the same for both frameworks. A program that fits a model calls the
functions:

    request = ModelRequest(architecture="rnnt", config="tiny", framework="onnx", output_dir=folder, seed=1)
    modules = build_modules(request)            # torch modules by network, random weights, BN calibrated
    ...fit them...
    write_model(modules, request, {"reference": {"WER": 97.1}, "license": "Apache-2.0"})

An architecture (crowdperf/benchmarks/<folder>/network.py) may have, in addition to what
`crowdperf/harness/base/architecture.py` requires:

    example_inputs(network, config, count, generator) -> tuple of torch tensors: inputs of the scale the model meets;
        without it floats are N(0, 1), whole numbers are 1, and every named size is 16
    initialise(module, generator) -> None: draws the weights; without it `initial_weights.draw_weights`
    convert_checkpoint(network, state) -> state: renames the tensors of a published checkpoint
"""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from crowdperf.benchmarks.initial_weights import draw_weights, seeded
from crowdperf.harness.base.architecture import architecture_of
from crowdperf.harness.base.checkpoints import read_checkpoint
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model import Model
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.harness.watch.machine import free_memory_bytes
from crowdperf.models.model_files import file_name, size_bytes, write_onnx, write_safetensors
from crowdperf.models.model_json import describe_files, versions, write_model_info
from crowdperf.models.model_weights import calibrate_normalisation, load_weights

FRAMEWORKS = ("onnx", "pytorch")
_EXAMPLE_SIZE = 16
_EXAMPLE_COUNT = 2
_CALIBRATION_COUNT = 4
_MEMORY_FACTOR = 2.5
"""Weights, the copy that is written, and activations, as a multiple of the weights (bert-large measured: 2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What model to make.

    architecture: a folder in benchmarks/. config: "full", "tiny" or a mapping of one's own. weights: a checkpoint
    instead of random weights.
    """

    architecture: str
    config: str | Mapping[str, Any]
    framework: str
    output_dir: Path
    seed: int = 0
    weights: Path | None = None

    def __post_init__(self) -> None:
        if self.framework not in FRAMEWORKS:
            raise HarnessError(f"framework is {self.framework!r}; allowed: {', '.join(FRAMEWORKS)}")

    @property
    def values(self) -> dict[str, Any]:
        """The architecture's configuration; raises HarnessError for an unknown name."""
        if not isinstance(self.config, str):
            return dict(self.config)
        known = architecture_of(self.architecture).CONFIGS
        if self.config not in known:
            raise HarnessError(
                f"{self.architecture} has no configuration {self.config!r}; allowed: {', '.join(sorted(known))}"
            )
        return dict(known[self.config])


def network_specs(request: ModelRequest) -> tuple[NetworkSpec, ...]:
    """Return the networks of the requested model as the benchmark's model.py describes them."""
    facts = ModelFacts(folder=request.output_dir, framework=request.framework, config=request.values, is_synthetic=True)
    try:
        module = importlib.import_module(f"crowdperf.benchmarks.{request.architecture}.model")
    except ModuleNotFoundError as error:
        raise HarnessError(f"cannot load benchmarks/{request.architecture}/model.py: {error}") from error
    model: Model = module.open_model(facts)
    return model.networks


def example_inputs(request: ModelRequest, spec: NetworkSpec, count: int) -> tuple[torch.Tensor, ...]:
    """Return `count` samples of inputs that the network can take, seeded."""
    generator = seeded(request.seed + 1)
    own = getattr(architecture_of(request.architecture), "example_inputs", None)
    if own is not None:
        return tuple(own(spec.name, request.values, count, generator))
    inputs = []
    for tensor in spec.inputs:
        shape = (count, *(size if isinstance(size, int) else _EXAMPLE_SIZE for size in tensor.shape))
        dtype: torch.dtype = getattr(torch, tensor.dtype)
        is_float = dtype.is_floating_point
        inputs.append(torch.randn(shape, generator=generator).to(dtype) if is_float else torch.ones(shape, dtype=dtype))
    return tuple(inputs)


def build_modules(request: ModelRequest) -> dict[str, nn.Module]:
    """Return the networks by name in eval mode: random weights, or those of the checkpoint. Raises HarnessError."""
    state = read_checkpoint(request.weights) if request.weights is not None else None
    modules = {}
    for spec in network_specs(request):
        require_memory(request, spec.name)
        torch.manual_seed(request.seed)  # some layers draw while they are built
        module = architecture_of(request.architecture).build(spec.name, request.values).eval()
        if state is None:
            initialise = getattr(architecture_of(request.architecture), "initialise", draw_weights)
            initialise(module, seeded(request.seed))
            calibrate_normalisation(module, example_inputs(request, spec, _CALIBRATION_COUNT))
        else:
            convert = getattr(architecture_of(request.architecture), "convert_checkpoint", lambda network, found: found)
            load_weights(module, spec.name, convert(spec.name, state))
        modules[spec.name] = module
    return modules


def require_memory(request: ModelRequest, network: str) -> None:
    """Raise HarnessError when the network's weights do not fit into the free memory; nothing is allocated."""
    try:
        with torch.device("meta"):
            needed = int(
                size_bytes(architecture_of(request.architecture).build(network, request.values)) * _MEMORY_FACTOR
            )
    except (RuntimeError, NotImplementedError):
        return  # reads values while it is built, so that its size is known only afterwards
    free = free_memory_bytes()
    if free is not None and needed > free:
        raise HarnessError(
            f"making network {network} of {request.architecture} needs about {needed / 2**30:.1f} GiB of memory, "
            f"but {free / 2**30:.1f} GiB are free",
            "use the variation _tiny, or a machine with more memory",
        )


def write_model(
    modules: Mapping[str, nn.Module], request: ModelRequest, facts: Mapping[str, Any] = MappingProxyType({})
) -> Path:
    """Write the networks' files and model.json into the request's folder; return the path of model.json.

    facts: further keys of model.json: `reference`, the fp32 score by metric name where it means something, and what
    people want to know.
    """
    request.output_dir.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Path]] = {}
    for spec in network_specs(request):
        module = modules[spec.name].eval()
        path = request.output_dir / file_name(request.architecture, spec.name, request.framework)
        try:
            if request.framework == "pytorch":
                write_safetensors(module, path)
                files[spec.name] = [path]
            else:
                files[spec.name] = write_onnx(module, spec, example_inputs(request, spec, _EXAMPLE_COUNT), path)
        except OSError as error:
            raise HarnessError(f"cannot write {path}: {error.strerror}", "free space, or use another folder") from error
    info = {
        "name": request.architecture,
        "framework": request.framework,
        "precision": "fp32",
        "is_synthetic": request.weights is None,
        "architecture": request.architecture,
        "config_name": request.config if isinstance(request.config, str) else "own",
        "config": request.values,
        "seed": request.seed if request.weights is None else None,
        "files": describe_files(files),
        "reference": None,
        "parameter_count": sum(value.numel() for module in modules.values() for value in module.parameters()),
        "versions": versions("torch", "numpy", "onnx" if request.framework == "onnx" else "safetensors"),
        **facts,
    }
    return write_model_info(request.output_dir, info)


def make_model(request: ModelRequest, facts: Mapping[str, Any] = MappingProxyType({})) -> Path:
    """Build the requested model, write it and return the path of its model.json; raises HarnessError."""
    return write_model(build_modules(request), request, facts)


def _parse(words: Sequence[str] | None) -> tuple[ModelRequest, Mapping[str, Any]]:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.models.make_model", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--architecture", required=True, help="folder in crowdperf/benchmarks")
    parser.add_argument(
        "--config",
        default="full",
        help="full, tiny, or a JSON object with the differences from full (default: %(default)s)",
    )
    parser.add_argument("--framework", default="onnx", choices=FRAMEWORKS)
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of random weights (default: %(default)s)")
    parser.add_argument("--weights", type=Path, help="checkpoint to convert: safetensors, torch file or folder")
    parser.add_argument("--facts", type=json.loads, default={}, help="JSON object of further keys of model.json")
    given = parser.parse_args(words)
    config = given.config
    if config.startswith("{"):
        try:
            config = {**architecture_of(given.architecture).CONFIGS["full"], **json.loads(config)}
        except ValueError as error:
            raise HarnessError(f"the configuration {config} is not a JSON object: {error}") from error
    request = ModelRequest(
        architecture=given.architecture,
        config=config,
        framework=given.framework,
        output_dir=given.output_dir,
        seed=given.seed,
        weights=given.weights,
    )
    return request, given.facts


@program("makemodel")
def main(words: Sequence[str] | None) -> None:
    start_s = time.perf_counter()
    request, facts = _parse(words)
    info = json.loads(make_model(request, facts).read_text(encoding="utf-8"))
    size = sum(entry["size_bytes"] for entry in info["files"].values())
    print(
        f"{info['name']} ({info['config_name']}, {info['framework']}): {info['parameter_count']} parameters, "
        f"{size / 1e6:.1f} MB in {time.perf_counter() - start_s:.1f} s -> {request.output_dir}"
    )


if __name__ == "__main__":
    sys.exit(main())
