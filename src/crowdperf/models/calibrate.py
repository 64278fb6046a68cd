"""Calibrates an ONNX model on samples of a data set: `python3 -m crowdperf.models.calibrate --help`.

The model answers the samples through its own `predict`, batch by batch of one, with networks that tell every tensor
around an operator that can be quantised. Twice: once for the greatest magnitudes, and, where the method wants it, once
for the distribution. Writes the neutral file of `calibration.py`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from crowdperf.harness.backends.onnxruntime.backend import session_options
from crowdperf.harness.base.dataset import FACTS_FILE, ListedSamples
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model import Model
from crowdperf.harness.base.model_facts import CalibrationSource, ModelFacts, read_model_facts
from crowdperf.harness.base.store import open_store
from crowdperf.harness.base.tensors import Infer
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.components import RawSource
from crowdperf.harness.runner.qsl import Source, make_library
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models.calibration import DEFAULT_PERCENTILE, METHODS, Calibration, Observed, range_of, write_calibration
from crowdperf.models.calibration_samples import Choice, choose
from crowdperf.models.model_json import versions
from crowdperf.rules.benchmarks import model_of, record_of

STATIC_OPERATORS = (
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Add", "Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool",
    "Concat", "Resize", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Pad",
)  # fmt: skip
"""Operators that onnxruntime runs on 8 bits on the processor, and those that only move values between them."""
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to calibrate, and how. percentile: for that method only."""

    model: str
    model_info: Path
    dataset: Path
    preprocessed: Path | None
    method: str
    percentile: float
    choice: Choice
    threads: int


def calibrate(task: Task) -> Calibration:
    """Return the ranges; raises HarnessError when the model or the data set cannot be used."""
    facts = read_model_facts(None, task.model_info)
    if facts.framework not in (None, "onnx"):
        raise HarnessError(f"{task.model_info} describes a {facts.framework} model", "use the variation _onnx")
    model = registry.load_model(task.model).open_model(facts)
    name = record_of(task.model).dataset
    listed, made_with = choose(name, registry.load_dataset(name), task.dataset, task.choice)
    source = _source(task, listed, model)
    seen: dict[str, dict[str, Observed]] = {}
    sessions = {spec.name: _Watched(facts.files[spec.name].path, task.threads) for spec in model.networks}
    for name, watched in sessions.items():
        seen[name] = {tensor: Observed() for tensor in watched.tensors}
    _run(
        listed.indices,
        model,
        source,
        {name: watched.call(seen[name], Observed.widen) for name, watched in sessions.items()},
    )
    if task.method != "minmax":
        calls = {name: watched.call(seen[name], Observed.count) for name, watched in sessions.items()}
        _run(listed.indices, model, source, calls)
    return Calibration(
        method=task.method,
        networks={
            name: {tensor: range_of(observed, task.method, task.percentile) for tensor, observed in tensors.items()}
            for name, tensors in seen.items()
        },
        provenance=_provenance(task, facts, listed, made_with),
    )


def _source(task: Task, listed: ListedSamples, model: Model) -> Source:
    if task.preprocessed is None or not listed.is_measured:
        return RawSource(listed.dataset, model)
    return open_store(task.preprocessed, model_of(task.model), task.dataset, listed.dataset)


def _provenance(task: Task, facts: ModelFacts, listed: ListedSamples, made_with: CalibrationSource) -> dict[str, Any]:
    facts_file = task.dataset / FACTS_FILE
    return {
        "model": {
            "name": task.model,
            "is_synthetic": facts.is_synthetic,
            "sha256": {name: file_sha256(file.path) for name, file in sorted(facts.files.items())},
        },
        "dataset": {
            "folder": str(task.dataset),
            "facts_sha256": file_sha256(facts_file) if facts_file.is_file() else None,
            "count": listed.dataset.count,
            "is_synthetic": listed.dataset.facts.is_synthetic,
        },
        "calibration": asdict(made_with),
        "sample_ids": list(listed.indices),
        "percentile": task.percentile if task.method == "percentile" else None,
        "versions": versions("onnxruntime", "onnx", "numpy"),
    }


def _run(indices: Sequence[int], model: Model, source: Source, networks: Mapping[str, Infer]) -> None:
    """Let the model answer every sample; tells the progress on stderr."""
    library = make_library(source, model)
    told_s = time.monotonic()
    for number, index in enumerate(indices, start=1):
        library.load([index])
        model.predict(networks, library.single[index])
        if time.monotonic() - told_s > _PROGRESS_S:
            told_s = time.monotonic()
            print(f"calibrate: {number} of {len(indices)} samples", file=sys.stderr)


class _Watched:
    """A session whose outputs are the network's own and every tensor that may be quantised."""

    def __init__(self, path: Path, threads: int) -> None:
        model = onnx.load(str(path))
        self.outputs = [value.name for value in model.graph.output]
        self.tensors = watched_tensors(model)
        inputs = {value.name for value in model.graph.input}
        added = [name for name in self.tensors if name not in inputs and name not in self.outputs]
        model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
                                  for name in added)  # fmt: skip
        options = session_options(threads)
        # Fusions would remove the very tensors that are asked for.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._names = [*self.outputs, *added]
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions share no base class of their own
            raise HarnessError(f"onnxruntime cannot open {path} for calibration: {error}", "see the README") from error

    def call(self, seen: Mapping[str, Observed], note: Callable[[Observed, np.ndarray[Any, Any]], None]) -> Infer:
        """Return the network as a model calls it; each watched tensor is noted."""

        def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            answers = dict(zip(self._names, self._session.run(self._names, inputs), strict=True))
            for name, observed in seen.items():
                note(observed, answers[name] if name in answers else inputs[name])
            return {name: answers[name] for name in self.outputs}

        return infer


def watched_tensors(model: onnx.ModelProto) -> list[str]:
    """Return the names of float32 activations around operators that can be quantised, in the graph's order."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    weights = {initializer.name for initializer in graph.initializer}
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info, *graph.output)}
    names: dict[str, None] = {}
    for node in graph.node:
        if node.op_type in STATIC_OPERATORS:
            for name in (*node.input, *node.output):
                if name and name not in weights and types.get(name) == onnx.TensorProto.FLOAT:
                    names[name] = None
    return list(names)


def _parse(words: Sequence[str] | None) -> tuple[Task, Path]:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.models.calibrate", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", required=True, help="name of the model or benchmark")
    parser.add_argument("--model_info", required=True, type=Path, help="its model.json")
    parser.add_argument("--dataset", required=True, type=Path, help="folder of the data set")
    parser.add_argument("--preprocessed", type=Path, help="store of preprocessed samples of that data set")
    parser.add_argument("--method", default="minmax", choices=METHODS)
    parser.add_argument("--percentile", type=float, default=DEFAULT_PERCENTILE, help="share of values kept, percent")
    parser.add_argument("--list", default="", help="file name of the official list, if there are several")
    parser.add_argument("--count", type=int, help="so many samples chosen by --seed, instead of the official list")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample_list", type=Path, help="file with one sample index in each line, instead of a list")
    parser.add_argument("--threads", type=int, default=0, help="0: as onnxruntime chooses")
    parser.add_argument("--output", required=True, type=Path, help="calibration.json to write")
    given = parser.parse_args(words)
    if not 50.0 < given.percentile <= 100.0:
        raise HarnessError(f"percentile is {given.percentile}; allowed: above 50, up to 100")
    if sum((bool(given.list), given.count is not None, given.sample_list is not None)) > 1:
        raise HarnessError("--list, --count and --sample_list exclude each other", "give one of them")
    task = Task(
        model=given.model,
        model_info=given.model_info,
        dataset=given.dataset,
        preprocessed=given.preprocessed,
        method=given.method,
        percentile=given.percentile,
        choice=Choice(list_name=given.list, sample_list=given.sample_list, count=given.count, seed=given.seed),
        threads=given.threads,
    )
    return task, given.output


@program("calibrate")
def main(words: Sequence[str] | None) -> None:
    start_s = time.perf_counter()
    task, output = _parse(words)
    calibration = calibrate(task)
    write_calibration(output, calibration)
    tensors = sum(len(rows) for rows in calibration.networks.values())
    samples = calibration.provenance["calibration"]["name"]
    took = f"in {time.perf_counter() - start_s:.1f} s -> {output}"
    print(f"{task.model}: ranges of {tensors} tensors ({task.method}) with {samples} {took}")


if __name__ == "__main__":
    sys.exit(main())
