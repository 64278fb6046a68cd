"""Writes a Triton model repository to keep, out of a model.json.

    python3 -m crowdperf.models.triton_repository --model=digits --model_info=model.json --output_dir=.

The model's files are hard links where the file system allows, else copies, so that the repository can be moved. A model
that was compiled for AWS Neuron gets NVIDIA's layout (backends/neuron/layout.py) and its model.py;
its largest batch is then the compiled one times cores and threads, as NVIDIA's class TritonHarnessInferentia (2022) has
it, which calls gen_triton_model.py (read 2026-11-23, in a public copy whose repository is not known).
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.harness.backends.neuron import layout
from crowdperf.harness.backends.triton import repository
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.harness.runner.registry import load_model
from crowdperf.kit.records import Record
from crowdperf.kit.whole_file import link_or_copy, write_json
from crowdperf.rules.backends import BACKENDS, misfit
from crowdperf.rules.benchmarks import model_of, record_of
from crowdperf.rules.names import Scenario, UnknownName
from crowdperf.rules.run_settings import SERVING
from crowdperf.rules.server_settings import ServedModel, ServingRequest, check_serving

SERVED = tuple(one.name for one in SERVING if one.name != "transport")
"""Options that the server needs; the transport is one of those who ask it."""
ONNXRUNTIME_CHOOSES = 0
"""As `intra_op_thread_count`: onnxruntime takes a thread for each core."""


def _sizes(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word.strip()]


TYPES: Mapping[str, Callable[[str], Any]] = {"batching": str, "preferred_batch_size": _sizes}
"""Of the options that are not whole numbers."""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; a wrong one ends the process with its name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--model_info", required=True, type=Path)
    parser.add_argument("--output_dir", required=True, type=Path)
    for name in SERVED:
        parser.add_argument(f"--{name}", type=TYPES.get(name, int))
    parser.add_argument("--threads", default=ONNXRUNTIME_CHOOSES, type=int)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--neuron_core_range", default="0:3")
    parser.add_argument("--threads_per_core", default=layout.THREADS_PER_CORE, type=int)
    return parser.parse_args(words)


def served_model(asked: argparse.Namespace, largest: int) -> ServedModel:
    """Return how the server runs the model; raises ConfigError for what does not go together. largest: the largest
    batch where none is given."""
    options = {name: getattr(asked, name) for name in SERVED}
    record = Record({"server": str(asked.output_dir), "transport": None, **options})
    request = record.filled(ServingRequest)
    if request is not None:
        check_serving(request, Scenario.OFFLINE, record.note)
    if request is None or record.problems:
        raise ConfigError("the options of the server", record.problems)
    return request.model(largest)


def neuron_settings(asked: argparse.Namespace, engine: Mapping[str, Any]) -> layout.NeuronSettings:
    """Return the settings of a compiled network; `engine`: what model.json says of it. Raises HarnessError."""
    bounds = re.fullmatch(r"(\d{1,4}):(\d{1,4})", asked.neuron_core_range)
    first, last = (int(text) for text in bounds.groups()) if bounds else (0, -1)
    if last < first:
        allowed = "FIRST:LAST, the numbers of two NeuronCores, as 0:3"
        raise HarnessError(f"--neuron_core_range={asked.neuron_core_range!r}; allowed: {allowed}")
    if asked.threads_per_core < 1:
        raise HarnessError("--threads_per_core starts at 1")
    layout.require_client_batches(asked.batching)
    cores = last - first + 1
    return layout.NeuronSettings(
        served=served_model(asked, int(engine["compiled_batch"]) * cores * asked.threads_per_core),
        cores=cores, first_core=first, threads_per_core=asked.threads_per_core, library=str(engine["runs_with"]),
    )  # fmt: skip


def _require_known(name: str, backend: str) -> None:
    try:
        record_of(name)
    except UnknownName as error:
        raise HarnessError(str(error)) from error
    if why := misfit(backend, name, BACKENDS[backend].devices[0]):
        raise HarnessError(why)


def generate(asked: argparse.Namespace) -> Path:
    """Write `repository/` and `repository.json` in the output folder and return the repository; raises HarnessError."""
    facts = read_model_facts(None, asked.model_info)
    is_neuron = facts.engine.get("runs_with") in layout.LIBRARIES
    if not is_neuron and facts.framework != "onnx":
        raise HarnessError(
            f"{asked.model_info} describes a model for {facts.framework}, but the server runs ONNX files"
        )
    _require_known(asked.model, str(facts.framework) if is_neuron else "triton")
    network = repository.require_servable(asked.model, load_model(asked.model).open_model(facts).networks)
    write = _write_neuron if is_neuron else _write_onnx
    name, file, folder = model_of(asked.model), facts.files[network.name], asked.output_dir / "repository"
    write(asked, facts, network, folder / name)
    about = {"model": asked.model, "name": name, "sha256": file.sha256, "device": asked.device}
    if is_neuron:
        about |= {"device": BACKENDS[str(facts.framework)].devices[0], "runs_with": facts.engine["runs_with"]}
    write_json(asked.output_dir / "repository.json", about)
    return Path(folder)


def _write_onnx(asked: argparse.Namespace, facts: ModelFacts, network: NetworkSpec, folder: Path) -> None:
    served = served_model(asked, record_of(asked.model).largest_batch_size)
    settings = repository.ModelSettings(served=served, threads=asked.threads, is_on_gpu=asked.device == "cuda")
    if served.is_batched_by_server:
        repository.require_fixed_sizes(asked.model, network)
    text = repository.config_text(folder.name, facts.files[network.name].path.name, network, settings)
    repository.require_valid(text, folder.name)
    shutil.rmtree(folder.parent, ignore_errors=True)
    version = folder / repository.VERSION
    version.mkdir(parents=True)
    entry = json.loads(asked.model_info.read_text(encoding="utf-8"))["files"][network.name]
    for row in (entry, *entry.get("beside", [])):
        link_or_copy(facts.folder / row["file"] if facts.folder else Path(row["file"]), version / row["file"])
    (folder / "config.pbtxt").write_text(text, encoding="utf-8")


def _write_neuron(asked: argparse.Namespace, facts: ModelFacts, network: NetworkSpec, folder: Path) -> None:
    compiled, settings = facts.files[network.name].path, neuron_settings(asked, facts.engine)
    wire = layout.wire_network(network, {str(name): int(size) for name, size in facts.engine["sizes"].items()})
    text = layout.config_text(folder.name, compiled.name, wire, settings)
    repository.require_valid(text, folder.name)
    layout.write_repository(folder.parent, folder.name, compiled, text, link_or_copy)


if __name__ == "__main__":
    try:
        print(generate(parse(sys.argv[1:])))
    except HarnessError as error:
        sys.exit(f"generate-triton-model-repository: {error.with_hint}")
