"""Builds TensorRT engines from an ONNX model: `python3 -m harness.making.engine_trt --help`.

One optimisation profile for each network: batches of 1 to --largest_batch, tuned for the largest; a size that the
network's specification gives a name to gets its range from --sizes tokens=1:384:384 (smallest, tuned for, largest).

Precision is the file's: networks are strongly typed, so an fp16 file or one with QuantizeLinear/DequantizeLinear pairs
(recipe quantize-ml-model,_int8,_tensorrt, whose calibration they carry) is built as it is. A TensorRT too old for that
(before 9) gets the builder flags of the precision. The library is TensorRT or, where only that can be had, TensorRT-RTX
(PyPI: tensorrt_rtx), which builds without a GPU too and keeps no timing cache.

Building with TensorRT-RTX was run; with TensorRT it was not (its wheels need NVIDIA's index), and no engine was run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import registry
from harness.backends.tensorrt.library import LIBRARIES, SUFFIXES, load_library
from harness.errors import HarnessError
from harness.making.modelfiles import describe_files, versions, write_model_info
from harness.modelfacts import read_model_facts
from harness.tensors import NetworkSpec

Bounds = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to build. sizes: smallest, tuned for and largest value of each named size. timing_cache: read and written
    back. compute_capability: of the GPU to build for ("SM89"), where the library can name one; else this machine's."""

    model: str
    model_info: Path
    output_dir: Path
    library: str = "tensorrt"
    largest_batch: int = 1
    sizes: Mapping[str, Bounds] = field(default_factory=dict)
    workspace_mb: int | None = None
    timing_cache: Path | None = None
    compute_capability: str | None = None


def profile_shapes(spec: NetworkSpec, largest_batch: int, sizes: Mapping[str, Bounds]) -> dict[str, list[list[int]]]:
    """Return the smallest, tuned and largest shape of each input; raises HarnessError for a size without bounds."""
    named = {size for tensor in spec.inputs for size in tensor.shape if isinstance(size, str)}
    unknown = sorted(named - sizes.keys())
    if unknown:
        raise HarnessError(
            f"network {spec.name} has sizes without bounds: {', '.join(unknown)}",
            "give them as --sizes NAME=SMALLEST:TUNED_FOR:LARGEST, e.g. --sizes tokens=1:384:384",
        )
    shapes = {}
    for tensor in spec.inputs:
        rows = []
        for place, count in enumerate((1, largest_batch, largest_batch)):
            rows.append([count, *(size if isinstance(size, int) else sizes[size][place] for size in tensor.shape)])
        shapes[tensor.name] = rows
    return shapes


def build_engine(task: Task, spec: NetworkSpec, onnx_file: Path, precision: str) -> bytes:
    """Return the serialised engine of one network; raises HarnessError with what the parser or the builder said."""
    trt: Any = load_library(task.library)
    said: list[str] = []
    logger = _logger(trt, said)
    gc.collect()  # an old builder in a cycle, freed inside a call of the library, would wait for that call's own lock
    builder = trt.Builder(logger)
    typed = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    network = builder.create_network(0 if typed is None else 1 << int(typed))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(onnx_file)):
        errors = "; ".join(str(parser.get_error(number)) for number in range(parser.num_errors))
        raise HarnessError(f"{task.library} cannot read {onnx_file}: {errors}", "use the model's variation _onnx")
    config = builder.create_builder_config()
    _configure(trt, config, task, None if typed is not None else precision)
    profile = builder.create_optimization_profile()
    for name, (smallest, tuned, largest) in profile_shapes(spec, task.largest_batch, task.sizes).items():
        profile.set_shape(name, smallest, tuned, largest)
    config.add_optimization_profile(profile)
    cache = _timing_cache(config, task)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise HarnessError(f"{task.library} built no engine from {onnx_file}: {'; '.join(said[-3:])}", "see above")
    _keep_timing_cache(config, cache, task)
    return bytes(engine)


def _logger(trt: Any, said: list[str]) -> Any:
    """Return a logger that keeps errors for messages and passes them on to stderr."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            if severity in (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR):
                said.append(text)
                print(f"{trt.__name__}: {text}", file=sys.stderr)

    return Logger()


def _configure(trt: Any, config: Any, task: Task, weak_precision: str | None) -> None:
    if task.workspace_mb is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, task.workspace_mb << 20)
    # fp32 stays fp32: TensorFloat-32 has ten bits of mantissa and would be another precision under the same name.
    config.clear_flag(trt.BuilderFlag.TF32)
    if weak_precision in ("fp16", "int8"):
        config.set_flag(getattr(trt.BuilderFlag, weak_precision.upper()))
    if task.compute_capability is not None:
        known = getattr(trt, "ComputeCapability", None)
        wanted = None if known is None else known.__members__.get(task.compute_capability)
        if wanted is None:
            names = "none by name" if known is None else ", ".join(known.__members__)
            raise HarnessError(
                f"{task.library} cannot build for {task.compute_capability}; it can for: {names}",
                "build on a machine with that GPU, without --compute_capability",
            )
        config.num_compute_capabilities = 1
        config.set_compute_capability(wanted, 0)


def _timing_cache(config: Any, task: Task) -> Any:
    if task.timing_cache is None or task.library == "tensorrt_rtx":
        return None
    content = task.timing_cache.read_bytes() if task.timing_cache.is_file() else b""
    cache = config.create_timing_cache(content)
    if cache is not None:
        config.set_timing_cache(cache, False)
    return cache


def _keep_timing_cache(config: Any, cache: Any, task: Task) -> None:
    if cache is None or task.timing_cache is None:
        return
    kept = config.get_timing_cache()
    if kept is None:
        return
    unfinished = task.timing_cache.with_name(f"{task.timing_cache.name}.part")
    unfinished.write_bytes(bytes(kept.serialize()))
    os.replace(unfinished, task.timing_cache)


def build(task: Task) -> Path:
    """Write an engine for each network and model.json last; return its path. Raises HarnessError."""
    facts = read_model_facts(None, task.model_info)
    if facts.framework != "onnx":
        raise HarnessError(f"{task.model_info} describes a {facts.framework} model", "take the variation _onnx")
    info = json.loads(task.model_info.read_text(encoding="utf-8"))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    files = {}
    for spec in registry.load_model(task.model).open_model(facts).networks:
        source = facts.files[spec.name].path
        path = task.output_dir / f"{source.stem}{SUFFIXES[task.library]}"
        unfinished = path.with_name(f"{path.name}.part")
        unfinished.write_bytes(build_engine(task, spec, source, facts.precision))
        os.replace(unfinished, path)
        files[spec.name] = [path]
    return write_model_info(
        task.output_dir,
        {
            **{key: value for key, value in info.items() if key not in ("format", "sha256", "size_bytes")},
            "framework": "tensorrt",
            "files": describe_files(files),
            "engine": {
                "library": task.library,
                "largest_batch": task.largest_batch,
                "sizes": {name: list(bounds) for name, bounds in task.sizes.items()},
                "workspace_mb": task.workspace_mb,
                "compute_capability": task.compute_capability,
                "from_sha256": {network: file.sha256 for network, file in facts.files.items()},
                "versions": versions(task.library),
            },
        },
    )


def parse_sizes(texts: Sequence[str]) -> dict[str, Bounds]:
    """Return the bounds in words such as "tokens=1:384:384"; raises HarnessError."""
    sizes = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        try:
            smallest, tuned, largest = (int(number) for number in numbers.split(":"))
        except ValueError:
            smallest = tuned = largest = 0
        if not name or not 1 <= smallest <= tuned <= largest:
            raise HarnessError(f"--sizes {text!r}; allowed: NAME=SMALLEST:TUNED_FOR:LARGEST, rising, from 1")
        sizes[name] = (smallest, tuned, largest)
    return sizes


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m harness.making.engine_trt", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", required=True, help="name of the model or benchmark")
    parser.add_argument("--model_info", required=True, type=Path, help="model.json of the ONNX model")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--library", default="tensorrt", choices=LIBRARIES)
    parser.add_argument("--largest_batch", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--sizes", nargs="*", default=[], metavar="NAME=SMALLEST:TUNED_FOR:LARGEST")
    parser.add_argument("--workspace_mb", type=int, help="most memory of the builder's scratch buffers")
    parser.add_argument("--timing_cache", type=Path, help="file with kernel timings, read and written back")
    parser.add_argument("--compute_capability", help="GPU to build for, e.g. SM89; this machine's by default")
    given = vars(parser.parse_args(words))
    start_s = time.perf_counter()
    try:
        path = build(Task(**{**given, "sizes": parse_sizes(given["sizes"])}))
    except HarnessError as error:
        print(f"engine_trt: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    size = sum(row["size_bytes"] for row in json.loads(path.read_text(encoding="utf-8"))["files"].values())
    print(f"{given['library']}: {size / 1e6:.1f} MB of engines in {time.perf_counter() - start_s:.1f} s -> {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
