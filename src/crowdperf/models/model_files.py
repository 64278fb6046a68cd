"""Writes the files of a model's networks, ONNX or safetensors, with torch; `model_json.py` describes them.

Each file is written beside its place and then moved there.
"""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec

SUFFIX_OF_FRAMEWORK = {"onnx": ".onnx", "pytorch": ".safetensors"}
OPERATOR_SET = 17
"""The newest ONNX operator set that torch's tracing exporter writes completely; LayerNormalization came with it."""
_LARGEST_ONNX_BYTES = 1_900_000_000
"""A protobuf message ends at 2 GiB; weights beyond that lie in a file beside the ONNX file."""


def file_name(stem: str, network: str, framework: str) -> str:
    """Return the name of a network's file: the stem alone for a model's only network."""
    middle = "" if network == "model" else f"-{network}"
    return f"{stem}{middle}{SUFFIX_OF_FRAMEWORK[framework]}"


def size_bytes(module: nn.Module) -> int:
    tensors = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def write_safetensors(module: nn.Module, path: Path) -> None:
    """Write the state dict of `module`; tensors that share their memory are written once for each name."""
    from safetensors.torch import save_file

    seen: set[int] = set()
    tensors: dict[str, torch.Tensor] = {}
    for name, value in module.state_dict().items():
        is_shared = value.untyped_storage().data_ptr() in seen and value.numel() > 0
        seen.add(value.untyped_storage().data_ptr())
        tensors[name] = value.clone() if is_shared else value.contiguous()
    unfinished = path.with_name(f"{path.name}.part")
    save_file(tensors, unfinished)
    os.replace(unfinished, path)


def write_onnx(module: nn.Module, spec: NetworkSpec, inputs: Sequence[torch.Tensor], path: Path) -> list[Path]:
    """Write `module` with free batch and named sizes; return the files written (weights of large ones lie beside)."""
    tensors = (*spec.inputs, *spec.outputs)
    unfinished = path.with_name(f"{path.name}.part")
    is_large = size_bytes(module) > _LARGEST_ONNX_BYTES
    folder = path.with_name(f"{path.name}.parts") if is_large else path.parent
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / path.name if is_large else unfinished
    with warnings.catch_warnings(), torch.inference_mode():
        # Tracing tells of every Python number in a shape, and that a newer exporter exists (it needs onnxscript).
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(inputs),
            str(target),
            dynamo=False,
            opset_version=OPERATOR_SET,
            input_names=[tensor.name for tensor in spec.inputs],
            output_names=[tensor.name for tensor in spec.outputs],
            dynamic_axes={tensor.name: dynamic_axes(tensor) for tensor in tensors},
        )
    if not is_large:
        os.replace(unfinished, path)
        return [path]
    return _join_weights(target, path)


def _join_weights(scattered: Path, path: Path) -> list[Path]:
    """Put the weights that torch wrote into one file for each tensor into one file beside `path`."""
    import onnx

    model = onnx.load(str(scattered))
    weights = path.with_name(f"{path.name}.data")
    weights.unlink(missing_ok=True)  # onnx appends
    onnx.save(model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=weights.name)
    for file in scattered.parent.iterdir():
        file.unlink()
    scattered.parent.rmdir()
    return [path, weights]


def dynamic_axes(tensor: TensorSpec) -> dict[int, str]:
    """Return the names of the axes whose size may change: the batch, and the named sizes."""
    named = {axis: size for axis, size in enumerate(tensor.shape, start=1) if isinstance(size, str)}
    return {0: "batch", **named}
