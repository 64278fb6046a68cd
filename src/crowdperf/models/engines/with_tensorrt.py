"""Builds engines of TensorRT from ONNX files.

Two optimisation profiles for each network: batches of 1 to --largest_batch, tuned for the largest, and batches of 1,
for which that one's kernels are a bad choice (SingleStream). A size that the network's specification gives a name to
gets its range from --sizes tokens=1:384:384 (smallest, tuned for, largest).

Precision is the file's: networks are strongly typed, so an fp16 file or one with QuantizeLinear/DequantizeLinear pairs
(recipe quantize-ml-model,_int8,_static,_tensorrt_fp16, whose calibration they carry) is built as it is. tf32 is an fp32
file that TensorRT may multiply in TensorFloat-32. A TensorRT too old for typed networks (before 9) is refused. The
library is TensorRT or, where only that can be had, TensorRT-RTX (PyPI: tensorrt_rtx), which builds without a GPU too
and keeps no timing cache.

Building with TensorRT-RTX was run; with TensorRT it was not (its wheels need NVIDIA's index), and no engine was run.
"""

import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.harness.backends.tensorrt.library import SUFFIXES, load_library
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.models.engines.task import Bounds, Task
from crowdperf.rules.benchmarks import RECORDS, model_of, record_of

READS = "onnx"
FRAMEWORK = "tensorrt"


def suffix(task: Task) -> str:
    """Return the end of the files' names, which tells the library."""
    return SUFFIXES[task.library]


def require_precision(found: str, wanted: str) -> None:
    """Raise HarnessError where files in the precision `found` make no engine in the precision `wanted`."""
    if found != wanted and (found, wanted) != ("fp32", "tf32"):
        raise HarnessError(
            f"the model's files are {found}, but {wanted} was requested, and an engine computes in the precision of "
            "its file",
            f"cm run script --tags=quantize,ml-model,_{wanted},_static,_tensorrt_fp16 makes them",
        )


def largest_batch(task: Task) -> int:
    """Return the most samples of one inference: as asked for, else where the harness's search for a batch ends."""
    return task.largest_batch or record_of(task.model).largest_batch_size


def bounds(task: Task) -> dict[str, Bounds]:
    """Return the bounds of named sizes: as asked for, else those of the benchmark's record."""
    record = RECORDS.get(model_of(task.model))
    return {**(record.size_bounds if record else {}), **task.sizes}


def facts(task: Task) -> dict[str, Any]:
    return {
        "largest_batch": largest_batch(task),
        "profile_batches": profile_batches(largest_batch(task)),
        "sizes": {name: list(values) for name, values in bounds(task).items()},
        "workspace_mb": task.workspace_mb,
        "compute_capability": task.compute_capability,
    }


def profile_batches(largest_batch: int) -> list[int]:
    """Return the batch that each profile is tuned for and ends at, in the order in which the tensorrt backend takes
    them: the one for single samples is the second."""
    return [largest_batch, 1] if largest_batch > 1 else [1]


def profile_shapes(spec: NetworkSpec, batch: int, sizes: Mapping[str, Bounds]) -> dict[str, list[list[int]]]:
    """Return the smallest, tuned and largest shape of each input for batches of 1 to `batch`; raises HarnessError for a
    size without bounds."""
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
        for place, count in enumerate((1, batch, batch)):
            rows.append([count, *(size if isinstance(size, int) else sizes[size][place] for size in tensor.shape)])
        shapes[tensor.name] = rows
    return shapes


def build_network(task: Task, spec: NetworkSpec, file: Path, precision: str) -> bytes:
    """Return the serialised engine of one network; raises HarnessError with what the parser or the builder said."""
    trt: Any = load_library(task.library)
    said: list[str] = []
    logger = _logger(trt, said)
    gc.collect()  # an old builder in a cycle, freed inside a call of the library, would wait for that call's own lock
    builder = trt.Builder(logger)
    network = builder.create_network(_typed(trt))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(file)):
        errors = "; ".join(str(parser.get_error(number)) for number in range(parser.num_errors))
        raise HarnessError(f"{task.library} cannot read {file}: {errors}", "use the model's variation _onnx")
    config = builder.create_builder_config()
    _configure(trt, config, task, precision)
    for batch in profile_batches(largest_batch(task)):
        profile = builder.create_optimization_profile()
        for name, (smallest, tuned, largest) in profile_shapes(spec, batch, bounds(task)).items():
            profile.set_shape(name, smallest, tuned, largest)
        config.add_optimization_profile(profile)
    cache = _timing_cache(config, task)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise HarnessError(f"{task.library} built no engine from {file}: {'; '.join(said[-3:])}", "see above")
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


def _typed(trt: Any) -> int:
    """Return the flags of a strongly typed network. From TensorRT 11 on every network is one, and the flag is ignored
    (docs.nvidia.com, Migrating from TensorRT 10.x to 11.x, read 2026-11-28); TensorRT-RTX, which counts otherwise, has
    it."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    if flag is not None:
        return 1 << int(flag)
    if int(str(trt.__version__).split(".")[0]) >= 11:
        return 0
    raise HarnessError(
        f"{trt.__name__} {trt.__version__} has no strongly typed networks: it would choose the precision itself",
        "cm run script --tags=get,generic-python-lib,_tensorrt --version_min=10.0",
    )


def _configure(trt: Any, config: Any, task: Task, precision: str) -> None:
    if task.workspace_mb is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, task.workspace_mb << 20)
    # TensorFloat-32 has ten bits of mantissa: another precision than fp32, although the files are the same.
    if precision == "tf32":
        config.set_flag(trt.BuilderFlag.TF32)
    else:
        config.clear_flag(trt.BuilderFlag.TF32)
    if task.compute_capability is not None:
        known = getattr(trt, "ComputeCapability", None)
        wanted = None if known is None else known.__members__.get(task.compute_capability)
        if wanted is None:
            names = "none by name" if known is None else ", ".join(known.__members__)
            raise HarnessError(
                f"{task.library} cannot build for {task.compute_capability}, only for: {names}",
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
    write_bytes_whole(task.timing_cache, bytes(kept.serialize()))
